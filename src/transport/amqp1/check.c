/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What "accepted" is worth here. The broker says in its open what it is; Artemis also answers questions, if we may ask.
 */

#include "transport/amqp1/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <proton/codec.h>
#include <proton/connection.h>

/* A text of the map that the broker sent with its open; "" when there is none. */
static void read_property(pn_data_t *map, const char *wanted, char *out, size_t size)
{
	out[0] = '\0';
	pn_data_rewind(map);
	if (!pn_data_next(map) || pn_data_type(map) != PN_MAP)
		return;
	pn_data_enter(map);
	while (pn_data_next(map)) {
		pn_bytes_t name = pn_data_get_bytes(map), value;

		if (!pn_data_next(map))
			break;
		value = pn_data_get_bytes(map);
		if (name.size == strlen(wanted) && memcmp(name.start, wanted, name.size) == 0)
			snprintf(out, size, "%.*s", (int)(value.size < size ? value.size : size - 1),
				 value.start ? value.start : "");
	}
	pn_data_exit(map);
	text_clean(out);
}

/* ---- Artemis ------------------------------------------------------------------------------------------ */

static void put_text(pn_data_t *map, const char *name, const char *value)
{
	pn_data_put_string(map, pn_bytes(strlen(name), name));
	pn_data_put_string(map, pn_bytes(strlen(value), value));
}

/* Ask its management for an attribute; its answer is JSON, "[true]". */
static int ask_artemis(struct amqp1_transport *t, const char *resource, const char *attribute,
		       outbox_time deadline, char *out, size_t size, struct outbox_error *err)
{
	pn_message_t *question = pn_message(), *reply;
	pn_data_t *map = pn_message_properties(question), *body;
	pn_bytes_t text = { 0 };
	int r;

	pn_data_put_map(map);
	pn_data_enter(map);
	put_text(map, "_AMQ_ResourceName", resource);
	put_text(map, "_AMQ_Attribute", attribute);
	pn_data_exit(map);
	pn_data_put_string(pn_message_body(question), pn_bytes(0, ""));
	r = amqp1_request(t, "activemq.management", true, question, deadline, &reply, err);
	pn_message_free(question);
	if (r != OUTBOX_OK)
		return r;
	body = pn_message_body(reply);
	pn_data_rewind(body);
	if (pn_data_next(body))
		text = pn_data_get_bytes(body);
	snprintf(out, size, "%.*s", (int)(text.size < size ? text.size : size - 1),
		 text.start ? text.start : "");
	text_clean(out);
	return OUTBOX_OK;
}

static void judge_artemis(struct amqp1_transport *t, outbox_time deadline, struct findings *f)
{
	char answer[100], resource[AMQP1_ADDRESS_MAX + 20];
	enum amqp1_capability capability;

	if (ask_artemis(t, "broker", "PersistenceEnabled", deadline, answer, sizeof(answer),
			NULL) != OUTBOX_OK) {
		findings_add(f, FINDING_NOTE,
			     "accepted when in the journal, if persistence is enabled, which could not be "
			     "asked (permission to send to activemq.management and to manage)");
		return;
	}
	if (strstr(answer, "true"))
		findings_add(f, FINDING_OK, "accepted when in the broker's journal");
	else
		findings_add(f, FINDING_WARNING,
			     "accepted when in the broker's memory: persistence is disabled, so a restart "
			     "loses it; set persistence-enabled");
	if (!t->constant || amqp1_address(t, NULL, &capability, NULL) != OUTBOX_OK)
		return;
	snprintf(resource, sizeof(resource), "address.%s", buf_str(&t->text));
	if (ask_artemis(t, resource, "QueueNames", deadline, answer, sizeof(answer), NULL) ==
		    OUTBOX_OK &&
	    strcmp(answer, "[[]]") == 0)
		findings_add(f, FINDING_WARNING,
			     "the address has no queue: what is sent there is accepted and dropped; "
			     "create one, or subscribe");
}

/* ---- the others ---------------------------------------------------------------------------------------- */

static void judge_rabbitmq(struct findings *f, const char *version)
{
	long major = strtol(version, NULL, 10);
	const char *dot = strchr(version, '.');
	long minor = dot ? strtol(dot + 1, NULL, 10) : 0;

	if (major > 0 && (major < 3 || (major == 3 && minor < 11)))
		findings_add(f, FINDING_ERROR,
			     "RabbitMQ %s accepts messages that no queue takes, and they are lost; use "
			     "amqp:// (AMQP 0-9-1), which refuses them, or RabbitMQ 3.11 or later",
			     version);
	else
		findings_add(f, FINDING_OK,
			     "accepted when every queue has it: quorum queues on disk of a majority, "
			     "classic ones on this node");
}

static void judge(struct amqp1_transport *t, outbox_time deadline, struct findings *f)
{
	pn_data_t *map = pn_connection_remote_properties(t->driver.connection);
	char product[80], version[40];

	read_property(map, "product", product, sizeof(product));
	read_property(map, "version", version, sizeof(version));
	if (t->azure)
		findings_add(f, FINDING_OK, "accepted when stored by the service");
	else if (strstr(product, "artemis"))
		judge_artemis(t, deadline, f);
	else if (strcmp(product, "RabbitMQ") == 0)
		judge_rabbitmq(f, version);
	else
		findings_add(f, FINDING_NOTE,
			     "accepted by %s%s%s, whose durability is not known here: see whether its "
			     "queues are durable and what it does with messages that no queue takes",
			     product[0] ? product : "a broker without a name",
			     version[0] ? " " : "", version);
}

int amqp1_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct amqp1_transport *t = amqp1_downcast(transport);
	struct findings f = FINDINGS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = broker_ready(&t->broker, !amqp1_ended(t), deadline, &err);

	if (r == OUTBOX_OK)
		judge(t, deadline, &f);
	request_end(t);
	return findings_finish(&f, r, &err, text, size);
}
