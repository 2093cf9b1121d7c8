/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the URL to the library's configuration. Options with a dot are the library's own properties. Refused with
 * the reason: what would break a guarantee, what the URL says in another way, and what loads code.
 */
#include "transport/kafka/driver.h"

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ERROR_MAX 300
/* For rounding, the header of a message set and the library's own estimate. */
#define WINDOW_MARGIN 2000

static const struct {
	const char *name, *allowed, *reason;
} refused[] = {
	{ "enable.idempotence", "true",
	  "without it, retries inside the library can reorder and duplicate messages" },
	{ "acks", "all", "an acknowledgement must come from all replicas in sync" },
	{ "request.required.acks", "all", "an acknowledgement must come from all replicas in sync" },
	{ "retries", NULL, "the target's publish deadline ends them" },
	{ "message.send.max.retries", NULL, "the target's publish deadline ends them" },
	{ "message.timeout.ms", NULL, "it follows the target's publish deadline" },
	{ "delivery.timeout.ms", NULL, "it follows the target's publish deadline" },
	{ "linger.ms", NULL, "a batch is sent at once and whole, which keeps its order" },
	{ "queue.buffering.max.ms", NULL, "a batch is sent at once and whole, which keeps its order" },
	{ "delivery.report.only.error", "false", "the reports are the acknowledgements" },
	{ "enable.gapless.guarantee", "false", "the driver keeps order itself, for each key" },
	{ "transactional.id", NULL, "the outbox has no transactions with the broker" },
	{ "plugin.library.paths", NULL, "it would load code" },
	{ "ssl.engine.location", NULL, "it would load code" },
	{ "ssl.engine.id", NULL, "it would load code" },
	{ "ssl.providers", NULL, "it would load code" },
	{ "sasl.kerberos.kinit.cmd", NULL, "it would run a command" },
	{ "test.mock.num.brokers", NULL, "it acknowledges without a broker" },
	{ "bootstrap.servers", NULL, "write the hosts in the URL" },
	{ "metadata.broker.list", NULL, "write the hosts in the URL" },
	{ "security.protocol", NULL, "write kafka:// or kafkas://" },
	{ "sasl.username", NULL, "write the user in the URL" },
	{ "sasl.password", NULL, "write it in the URL or in password_file" },
	{ "sasl.mechanism", NULL, "use the option sasl" },
	{ "sasl.mechanisms", NULL, "use the option sasl" },
	{ "ssl.ca.location", NULL, "use the option ca" },
	{ "ssl.certificate.location", NULL, "use the option cert" },
	{ "ssl.key.location", NULL, "use the option key" },
	{ "enable.ssl.certificate.verification", NULL, "use the option verify" },
	{ "ssl.endpoint.identification.algorithm", NULL, "use the option verify" },
};

static int check_property(const struct url_option *option, struct outbox_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (strcmp(option->name, refused[i].name) != 0)
			continue;
		if (refused[i].allowed &&
		    (strcasecmp(option->value, refused[i].allowed) == 0 ||
		     (strcmp(refused[i].allowed, "all") == 0 && strcmp(option->value, "-1") == 0)))
			return OUTBOX_OK;
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s cannot be set%s%s: %s",
				   option->name, refused[i].allowed ? " to anything but " : "",
				   refused[i].allowed ? refused[i].allowed : "", refused[i].reason);
	}
	return OUTBOX_OK;
}

static int set(struct kafka_transport *kafka, const char *name, const char *value,
	       struct outbox_error *err)
{
	char text[ERROR_MAX], shown[ERROR_MAX];

	if (rd_kafka_conf_set(kafka->conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return OUTBOX_OK;
	/* The library's error texts repeat the value. */
	return outbox_fail(err, OUTBOX_ECONFIG, "option %s: %s", name,
			   secret_is_name(name) ? "librdkafka refuses its value"
						: text_shown(shown, sizeof(shown), text));
}

static int set_all(struct kafka_transport *kafka, const char *const (*pairs)[2], size_t n,
		   struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < n && !r; i++)
		r = set(kafka, pairs[i][0], pairs[i][1], err);
	return r;
}

static int set_properties(struct kafka_transport *kafka, struct url *url, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < url->n_options && !r; i++) {
		struct url_option *option = &url->options[i];
		bool plain =
			strcmp(option->name, "acks") == 0 || strcmp(option->name, "retries") == 0;

		if (!plain && !strchr(option->name, '.'))
			continue;
		option->used = true;
		r = check_property(option, err);
		if (!r)
			r = set(kafka, option->name, option->value, err);
		if (!r && strcmp(option->name, "allow.auto.create.topics") == 0)
			kafka->auto_create = strcmp(option->value, "true") == 0;
	}
	return r;
}

static int set_partitioner(struct kafka_transport *kafka, struct url *url, struct outbox_error *err)
{
	const char *partitioner = url_option(url, "partitioner");

	if (partitioner && strcmp(partitioner, "random") == 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option partitioner: random spreads the messages of a key over "
				   "partitions, where they have no order");
	return set(kafka, "partitioner", partitioner ? partitioner : "murmur2_random", err);
}

/* ---- who, and how it is protected ------------------------------------------------------------ */

static int set_login(struct kafka_transport *kafka, const struct endpoint *endpoint,
		     const char *mechanism, struct outbox_error *err)
{
	static const char *const names[] = { "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512" };
	const char *chosen = NULL;
	char shown[80];
	int r;

	if (!endpoint->user)
		return mechanism
			       ? outbox_fail(err, OUTBOX_ECONFIG,
					     "option sasl needs a user: write kafka://user@host/...")
			       : OUTBOX_OK;
	if (!endpoint->password)
		return outbox_fail_detail(
			err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
			"a user without a password; write user:password@ or password_file");
	for (size_t i = 0; mechanism && i < ARRAY_SIZE(names); i++)
		if (strcasecmp(mechanism, names[i]) == 0)
			chosen = names[i];
	if (mechanism && !chosen)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"option sasl: \"%s\" is not valid; use plain, scram-sha-256 or scram-sha-512",
			text_shown(shown, sizeof(shown), mechanism));
	if (chosen == names[0] && !endpoint->tls && !endpoint_is_loopback(endpoint))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option sasl: plain would send the password in the clear; use "
				   "kafkas:// or scram-sha-512");
	r = set(kafka, "sasl.mechanisms", chosen ? chosen : "SCRAM-SHA-512", err);
	if (!r)
		r = set(kafka, "sasl.username", endpoint->user, err);
	return r ? r : set(kafka, "sasl.password", endpoint->password, err);
}

static int set_security(struct kafka_transport *kafka, const struct endpoint *endpoint,
			struct outbox_error *err)
{
	const char *const tls[][2] = {
		{ "ssl.ca.location", endpoint->ca },
		{ "enable.ssl.certificate.verification", endpoint->verify ? "true" : "false" },
		{ "ssl.endpoint.identification.algorithm", endpoint->verify ? "https" : "none" },
		{ "ssl.certificate.location", endpoint->cert },
		{ "ssl.key.location", endpoint->key },
	};
	const char *protocol = endpoint->tls ? (endpoint->user ? "sasl_ssl" : "ssl")
					     : (endpoint->user ? "sasl_plaintext" : "plaintext");
	int r = set(kafka, "security.protocol", protocol, err);

	if (r || !endpoint->tls)
		return r;
	return set_all(kafka, tls, endpoint->cert ? 5 : 3, err);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int set_topic(struct kafka_transport *kafka, const struct url *url, struct outbox_error *err)
{
	const char *path = url->path + (url->path[0] == '/');
	char shown[100];
	int r;

	if (!path[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: needs a topic; write %s://host:9092/orders or .../{topic}",
				   url->scheme, url->scheme);
	kafka->topic_text = strdup(path);
	if (!kafka->topic_text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = template_parse("topic", kafka->topic_text, &kafka->topic, err);
	if (!r && template_is_constant(&kafka->topic) && !kafka_topic_name_ok(path))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "topic: \"%s\" is not a topic's name; Kafka takes letters, digits, "
				   "'.', '_' and '-', at most 249",
				   text_shown(shown, sizeof(shown), path));
	return r;
}

static int set_own(struct kafka_transport *kafka, struct outbox_error *err)
{
	/* What the engine relies on comes last: nothing in the URL can undo it. */
	const char *const own[][2] = {
		{ "bootstrap.servers", kafka->broker.endpoint.hosts },
		{ "enable.idempotence", "true" },
		{ "acks", "all" },
		{ "message.timeout.ms", "0" }, /* the deadline of publish() ends it, for all at once */
		{ "linger.ms", "900000" },     /* rd_kafka_flush() sends */
	};

	return set_all(kafka, own, ARRAY_SIZE(own), err);
}

static int set_defaults(struct kafka_transport *kafka, struct outbox_error *err)
{
	static const char *const defaults[][2] = {
		{ "client.id", "outbox" },
		{ "allow.auto.create.topics", "false" },
		{ "message.max.bytes", "20000000" }, /* the broker knows its limit, and says so */
		{ "topic.metadata.propagation.max.ms", "1000" },
		{ "reconnect.backoff.max.ms", "1000" },
		{ "socket.keepalive.enable", "true" },
		{ "socket.nagle.disable", "true" },
		{ "log.connection.close", "false" },
	};

	return set_all(kafka, defaults, ARRAY_SIZE(defaults), err);
}

static size_t property(const struct kafka_transport *kafka, const char *name)
{
	char text[32];
	size_t size = sizeof(text);

	if (rd_kafka_conf_get(kafka->conf, name, text, &size) != RD_KAFKA_CONF_OK)
		return 0;
	return (size_t)strtoull(text, NULL, 10);
}

static void set_window(struct kafka_transport *kafka)
{
	size_t batch = property(kafka, "batch.size"), most = property(kafka, "message.max.bytes");
	size_t bytes = batch < most ? batch : most;

	kafka->window_bytes = bytes > 2 * WINDOW_MARGIN ? bytes - WINDOW_MARGIN : bytes / 2;
	kafka->window_messages = property(kafka, "batch.num.messages");
}

int kafka_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct kafka_transport *kafka = kafka_downcast(&broker->base);
	int r;

	(void)config;
	kafka->name.max = 8192;
	kafka->conf = rd_kafka_conf_new();
	r = set_topic(kafka, url, err);
	if (!r)
		r = set_defaults(kafka, err);
	if (!r)
		r = set_properties(kafka, url, err);
	if (!r)
		r = set_partitioner(kafka, url, err);
	if (!r)
		r = set_login(kafka, &broker->endpoint, url_option(url, "sasl"), err);
	if (!r)
		r = set_security(kafka, &broker->endpoint, err);
	if (!r)
		r = set_own(kafka, err);
	if (!r)
		set_window(kafka);
	return r;
}
