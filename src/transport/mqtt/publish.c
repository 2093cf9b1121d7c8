/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch in windows: the library is given a message only when it may be on its way at once, so there is never anything
 * in its queue that a later call could send. Answers may come in any order, and are found by their packet identifier.
 *
 * With one topic for all messages, a refusal that lies in the topic is the target's: nothing more is sent, all that is
 * on its way is waited for, and what was refused has no verdict, so that EAUTH and EFULL keep their promise. When the
 * broker ends the connection in between, what it has not answered is UNKNOWN.
 */

#include "transport/mqtt/driver.h"

#include "base/text.h"
#include "base/thread.h"
#include "transport/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <mqtt_protocol.h>

/* ---- answers ------------------------------------------------------------------------------------- */

/* "topic "a/b": Not authorized (0x87); what to do: what the broker says" */
static void describe(struct mqtt_transport *t, size_t i, int code,
		     const mosquitto_property *properties, char *out, size_t size)
{
	const struct mqtt_code *row = mqtt_code_find(code);
	char topic[120], text[200], said[200] = "", *reason = NULL;

	mosquitto_property_read_string(properties, MQTT_PROP_REASON_STRING, &reason, false);
	if (reason)
		text_shown(said, sizeof(said), reason);
	free(reason);
	if (mqtt_topic(t, t->batch->items[i]->message, NULL) != OUTBOX_OK)
		buf_clear(&t->text);
	snprintf(out, size, "topic \"%s\": %s%s%s",
		 text_shown(topic, sizeof(topic), buf_str(&t->text)),
		 mqtt_code_text(row, code, text, sizeof(text)), said[0] ? ": " : "", said);
}

void mqtt_settle(struct mqtt_transport *t, int id, int code, const mosquitto_property *properties)
{
	const struct mqtt_code *row = mqtt_code_find(code);
	uint32_t place = id > 0 && id <= UINT16_MAX ? t->waiting[id] : 0;
	char why[600];

	if (!place || !t->batch)
		return;
	t->waiting[id] = 0;
	t->open--;
	if (code < MQTT_REFUSED) {
		outbox_batch_verdict(t->batch, place - 1, OUTBOX_ACKED, code, NULL);
		return;
	}
	describe(t, place - 1, code, properties, why, sizeof(why));
	if (!t->constant || !row->place)
		outbox_batch_verdict(t->batch, place - 1, row->verdict, code, "%s", why);
	else if (!t->refusal.status)
		outbox_fail_native(&t->refusal, row->place, code, "%s: %s", t->shown, why);
}

/* No answers will come any more. */
static void give_up(struct mqtt_transport *t)
{
	for (size_t id = 1; t->open && id <= UINT16_MAX; id++) {
		if (!t->waiting[id])
			continue;
		outbox_batch_verdict(t->batch, t->waiting[id] - 1, OUTBOX_UNKNOWN, 0,
				     "sent, and the connection ended before the broker's answer");
		t->waiting[id] = 0;
		t->open--;
	}
}

/* ---- sending --------------------------------------------------------------------------------------- */

/* While a window is filled its packets are collected, and sent when there is nothing to add. */
static void cork(struct mqtt_transport *t, int on)
{
	int fd = mosquitto_socket(t->client);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static int await_turn(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	if (broker_time_left(&t->broker, deadline) <= 0)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", t->shown);
	return mqtt_client_turn(t, true, deadline, err);
}

/* The library numbers from 1 on, and does not look whether a number is in use. */
static bool has_room(const struct mqtt_transport *t)
{
	uint16_t next = (uint16_t)(t->last_id + 1);

	return t->open < t->link.window && !t->waiting[next ? next : 1] &&
	       !mosquitto_want_write(t->client);
}

static int await_room(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (has_room(t))
		return OUTBOX_OK;
	cork(t, 0);
	while (r == OUTBOX_OK && !has_room(t))
		r = await_turn(t, deadline, err);
	if (r == OUTBOX_OK)
		cork(t, 1);
	return r;
}

/* Was it refused by the library, with nothing written? */
static bool is_own_refusal(int rc)
{
	return rc == MOSQ_ERR_INVAL || rc == MOSQ_ERR_PAYLOAD_SIZE ||
	       rc == MOSQ_ERR_MALFORMED_UTF8 || rc == MOSQ_ERR_OVERSIZE_PACKET ||
	       rc == MOSQ_ERR_QOS_NOT_SUPPORTED || rc == MOSQ_ERR_DUPLICATE_PROPERTY;
}

static int send_one(struct mqtt_transport *t, size_t i, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct mqtt_message m;
	int id = 0, rc, r = mqtt_message(t, t->batch->items[i], &m, &why);

	if (r != OUTBOX_OK)
		return transport_reject(t->batch, i, r, &why, err);
	rc = mosquitto_publish_v5(t->client, &id, m.topic, (int)m.size, m.body, t->qos, t->retain,
				  m.properties);
	mosquitto_property_free_all(&m.properties);
	if (is_own_refusal(rc)) {
		outbox_batch_verdict(t->batch, i, OUTBOX_REJECTED, rc, "the MQTT library: %s",
				     mosquitto_strerror(rc));
		return OUTBOX_OK;
	}
	if (id > 0) {
		t->last_id = (uint16_t)id;
		t->waiting[id] = (uint32_t)i + 1;
		t->open++;
	}
	return rc == MOSQ_ERR_SUCCESS ? OUTBOX_OK : mqtt_client_fail(t, rc, err);
}

static int send_all(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	cork(t, 1);
	for (size_t i = 0; r == OUTBOX_OK && i < t->batch->count && !t->refusal.status; i++) {
		r = await_room(t, deadline, err);
		if (r == OUTBOX_OK && !t->refusal.status)
			r = send_one(t, i, err);
	}
	if (r == OUTBOX_OK)
		cork(t, 0);
	while (r == OUTBOX_OK && t->open)
		r = await_turn(t, deadline, err);
	return r;
}

/* ---- the batch -------------------------------------------------------------------------------------- */

/* Nobody looked at the connection since the last batch. Did it end? Then nothing is lost by another one. */
static int wake_up(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	if (mqtt_client_turn(t, false, deadline, NULL) == OUTBOX_OK)
		return OUTBOX_OK;
	return mqtt_connect(&t->broker.base, deadline, err);
}

/* It broke; what the broker said before is still worth hearing: fewer duplicates. */
static void hear_the_rest(struct mqtt_transport *t)
{
	size_t before;

	do {
		before = t->open;
		if (t->open && !t->link.ended && mosquitto_socket(t->client) >= 0)
			mosquitto_loop_read(t->client, 1);
	} while (t->open < before);
	give_up(t);
}

static int run_batch(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = wake_up(t, deadline, err);

	if (r != OUTBOX_OK)
		return r;
	r = send_all(t, deadline, err);
	if (r == OUTBOX_OK && t->refusal.status)
		return outbox_fail_native(err, t->refusal.status, t->refusal.native, "%s",
					  t->refusal.message);
	if (r != OUTBOX_OK) {
		hear_the_rest(t);
		mqtt_client_drop(t);
	}
	return r;
}

int mqtt_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err)
{
	struct mqtt_transport *t = mqtt_downcast(transport);
	struct held_signals signals;
	int r = broker_ready(&t->broker, t->client, deadline, err);

	if (r != OUTBOX_OK)
		return r;
	signals_hold(&signals);
	t->batch = batch;
	t->refusal = (struct outbox_error)OUTBOX_ERROR_INIT;
	r = run_batch(t, deadline, err);
	t->batch = NULL;
	signals_release(&signals);
	return r;
}
