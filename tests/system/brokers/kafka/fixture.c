/* SPDX-License-Identifier: Apache-2.0 */
/* kafka:// under the transport contract: a real broker behind a proxy, a topic for each case. */

#include "place.h"
#include "transport_proxied.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct outbox_transport_ops kafka_transport_ops;

#define MESSAGE_BYTES 150 /* less than one of the suite's messages in a message set */

struct place {
	struct proxied link;
	rd_kafka_t *admin; /* past the proxy */
	char topic[64];
};

static const char *unavailable(void)
{
	if (getenv("OUTBOX_TEST_KAFKA_MOCK"))
		return "no real broker could be had; the mock cluster's tests are kafka-mock";
	return getenv("KAFKA_PORT") ? NULL : "no broker; run it with tests/support/with-kafka";
}

static void *setup(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	place->admin = place_admin(place_broker());
	place->link.message_bytes = MESSAGE_BYTES;
	place->link.proxy =
		proxy_start_at(atoi(getenv("KAFKA_PROXY")), atoi(getenv("KAFKA_PROXIED")));
	snprintf(place->topic, sizeof(place->topic), "case-%d", ++number);
	place_topic(place->admin, place->topic, 1, NULL);
	snprintf(place->link.url, sizeof(place->link.url), "kafka://127.0.0.1:%s/%s",
		 getenv("KAFKA_PROXY"), place->topic);
	/* Port 1 (tcpmux) has no server anywhere that tests run. */
	snprintf(place->link.missing, sizeof(place->link.missing), "kafka://127.0.0.1:1/orders");
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	proxy_stop(place->link.proxy);
	rd_kafka_destroy(place->admin);
	free(place);
}

static void read_back(void *state, struct arrivals *arrivals)
{
	place_read(place_broker(), ((struct place *)state)->topic, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "kafka:", "host" },
	{ "kafka:///orders", "host" },
	{ "kafka://127.0.0.1:99999/orders", "port" },
	{ "kafka://127.0.0.1", "topic" },
	{ "kafka://127.0.0.1/", "topic" },
	{ "kafka://127.0.0.1/a/b", "topic" },
	{ "kafka://127.0.0.1/shop orders", "topic" },
	{ "kafka://127.0.0.1/..", "topic" },
	{ "kafka://127.0.0.1/{typo}", "typo" },
	{ "kafka://127.0.0.1/{type", "{type}" },
	{ "kafka://127.0.0.1/t?no.such.property=1", "no.such.property" },
	{ "kafka://127.0.0.1/t?compression.type=zip", "compression.type" },
	{ "kafka://127.0.0.1/t?enable.idempotence=false", "reorder" },
	{ "kafka://127.0.0.1/t?acks=1", "all replicas" },
	{ "kafka://127.0.0.1/t?request.required.acks=0", "all replicas" },
	{ "kafka://127.0.0.1/t?retries=3", "deadline" },
	{ "kafka://127.0.0.1/t?message.timeout.ms=5", "deadline" },
	{ "kafka://127.0.0.1/t?linger.ms=5", "order" },
	{ "kafka://127.0.0.1/t?delivery.report.only.error=true", "acknowledgements" },
	{ "kafka://127.0.0.1/t?transactional.id=x", "transactions" },
	{ "kafka://127.0.0.1/t?plugin.library.paths=x", "code" },
	{ "kafka://127.0.0.1/t?ssl.engine.location=/nowhere/x.so", "load code" },
	{ "kafka://127.0.0.1/t?ssl.engine.id=x", "load code" },
	{ "kafka://127.0.0.1/t?ssl.providers=x", "load code" },
	{ "kafka://127.0.0.1/t?sasl.kerberos.kinit.cmd=true", "command" },
	{ "kafka://127.0.0.1/t?test.mock.num.brokers=1", "without a broker" },
	{ "kafka://127.0.0.1/t?security.protocol=plaintext", "kafkas://" },
	{ "kafka://127.0.0.1/t?partitioner=random", "order" },
	{ "kafka://127.0.0.1/t?partitioner=mine", "partitioner" },
	{ "kafka://127.0.0.1/t?sasl=plain", "user" },
	{ "kafka://relay@127.0.0.1/t", "password" },
	{ "kafka://relay:secret@127.0.0.1/t?sasl=gssapi", "scram-sha-512" },
	{ "kafka://relay:secret@broker.example/t?sasl=plain", "clear" },
	{ "kafka://127.0.0.1/t?ca=/etc/passwd", "TLS" },
	{ "kafkas://127.0.0.1/t?ca=/nowhere/ca.crt", "/nowhere/ca.crt" },
	{ "kafkas://127.0.0.1/t?enable.ssl.certificate.verification=false", "verify" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_kafka",
	.ops = &kafka_transport_ops,
	.unavailable = unavailable,
	.setup = setup,
	.teardown = teardown,
	PROXIED_OPS,
	.bad_urls = bad_urls,
	.missing_status = OUTBOX_ECONN,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
