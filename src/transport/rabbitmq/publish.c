/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch is one window, unless the broker closes the channel on the way: then the window ends there, the guilty
 * are found, a new channel is opened and the rest of the batch is the next window. Each such end consumes at
 * least the message that caused it.
 */
#include "transport/rabbitmq/driver.h"

#include "base/text.h"
#include "transport/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Look for answers after so many messages or bytes. */
#define READ_EVERY 32
#define READ_EVERY_BYTES 65536

/* Full packets instead of one per message; uncorking sends the rest. */
static void cork(struct rabbit *rabbit, int on)
{
	setsockopt(amqp_get_sockfd(rabbit->connection), IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static bool passed(const struct rabbit *rabbit, outbox_time deadline)
{
	return broker_time_left(&rabbit->broker, deadline) <= 0;
}

static int too_late(const struct rabbit *rabbit, struct outbox_error *err)
{
	if (rabbit->blocked)
		return outbox_fail(err, OUTBOX_EFULL,
				   "%s: the broker accepts no messages for now: %s",
				   rabbit->broker.shown, rabbit->blocked_reason);
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: not confirmed in time", rabbit->broker.shown);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Its exchange does not exist: it gets its verdict without being sent. */
static bool refuse(struct rabbit *rabbit, struct outbox_batch *batch, size_t i)
{
	const struct rabbit_exchange *exchange = NULL;

	if (!rabbit->constant)
		exchange = rabbit_exchanges_find(rabbit, buf_str(&rabbit->exchange_name));
	if (!exchange || !exchange->missing)
		return false;
	outbox_batch_verdict(batch, i, rabbit_code_find(exchange->code, exchange->missing)->verdict,
			     exchange->code, "%s", exchange->missing);
	return true;
}

/* One message; *bytes grows by what was written. */
static int send_one(struct rabbit *rabbit, struct outbox_batch *batch, size_t i, size_t *bytes,
		    struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct rabbit_message m;
	int r, status;

	r = rabbit_message(rabbit, batch->items[i], &m, &why);
	if (r != OUTBOX_OK)
		return transport_reject(batch, i, r, &why, err);
	if (refuse(rabbit, batch, i))
		return OUTBOX_OK;
	confirms_send(&rabbit->confirms, i);
	status = amqp_basic_publish(rabbit->connection, RABBIT_PUBLISH_CHANNEL, m.exchange, m.key,
				    m.mandatory, 0, &m.properties, m.body);
	*bytes += m.body.len;
	return status == AMQP_STATUS_OK ? OUTBOX_OK
					: rabbit_fail(rabbit, status, NULL, "connection lost", err);
}

/* While an alarm lasts nothing is written: the broker would not read it. */
static int wait_unblocked(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && rabbit->blocked && !rabbit->closed_code) {
		if (passed(rabbit, deadline))
			return too_late(rabbit, err);
		r = rabbit_answers(rabbit, true, deadline, err);
	}
	return r;
}

/* Send from *next on, until all is sent or the channel is closed. */
static int send_window(struct rabbit *rabbit, struct outbox_batch *batch, size_t *next,
		       outbox_time deadline, struct outbox_error *err)
{
	size_t bytes = 0, since = 0;
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && *next < batch->count && !rabbit->closed_code) {
		r = send_one(rabbit, batch, (*next)++, &bytes, err);
		if (r != OUTBOX_OK || (++since < READ_EVERY && bytes < READ_EVERY_BYTES))
			continue;
		since = bytes = 0;
		r = rabbit_answers(rabbit, false, deadline, err);
		if (r == OUTBOX_OK && rabbit->blocked)
			r = wait_unblocked(rabbit, deadline, err);
		if (r == OUTBOX_OK && passed(rabbit, deadline))
			r = too_late(rabbit, err);
	}
	return r;
}

static int await_confirms(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && rabbit->confirms.open && !rabbit->closed_code) {
		if (passed(rabbit, deadline))
			return too_late(rabbit, err);
		r = rabbit_answers(rabbit, true, deadline, err);
	}
	return r;
}

/* ---- a closed channel ------------------------------------------------------------------------- */

/* "message size 2000 is larger than configured max size 1000" */
static void learn_size_max(struct rabbit *rabbit)
{
	const char *at = strstr(rabbit->closed_text, "max size ");
	char digits[24] = "";
	int64_t max;

	if (!at)
		return;
	at += strlen("max size ");
	snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at, "0123456789"), at);
	if (number_parse("max size", digits, 1, INT64_MAX, &max, NULL) == OUTBOX_OK)
		rabbit->size_max = (uint64_t)max;
}

/* "access to topic 'routing key' in exchange 'name' in vhost ... refused": a topic permission. NULL: not that. */
static const char *forbidden_topic(const struct rabbit *rabbit)
{
	const char *at = strstr(rabbit->closed_text, "access to topic '");

	return rabbit->closed_code == AMQP_ACCESS_REFUSED && at ? at + strlen("access to ") : NULL;
}

/* Is it this routing key that may not be used? The broker's words end early, with dots, when they are long. */
static bool is_forbidden(struct rabbit *rabbit, const char *topic)
{
	char named[2 * RABBIT_SHORT_MAX + 64];
	size_t said = strlen(topic), length;

	snprintf(named, sizeof(named), "topic '%s' in exchange '%s' in vhost",
		 buf_str(&rabbit->key), buf_str(&rabbit->exchange_name));
	text_clean(named);
	length = strlen(named);
	if (said >= 3 && strcmp(topic + said - 3, "...") == 0)
		said -= 3;
	return strncmp(topic, named, said < length ? said : length) == 0;
}

/* Did this message make the broker close the channel? False also if it cannot be told. */
static bool is_guilty(struct rabbit *rabbit, const struct outbox_item *item,
		      const struct rabbit_code *row)
{
	const char *topic = forbidden_topic(rabbit);
	struct rabbit_message m;
	char named[RABBIT_SHORT_MAX + 32];
	int r = rabbit_message(rabbit, item, &m, NULL);

	if (row->verdict == OUTBOX_REJECTED)
		return rabbit->size_max &&
		       r == OUTBOX_EINVAL; /* it was valid before the limit was known */
	if (r != OUTBOX_OK)
		return false;
	if (topic)
		return is_forbidden(rabbit, topic);
	snprintf(named, sizeof(named), "exchange '%s' in vhost", buf_str(&rabbit->exchange_name));
	return strstr(rabbit->closed_text, named);
}

/* Is the place that the broker refuses the only one of the target? */
static bool is_only_place(const struct rabbit *rabbit)
{
	return rabbit->constant &&
	       (!forbidden_topic(rabbit) || template_is_constant(&rabbit->routing_key));
}

/*
 * Verdicts for a window that the broker ended. With one exchange for all, a reason that lies in the exchange is
 * the target's: it fails as a whole and nobody is charged. A routing key that is forbidden is its messages' alone,
 * unless all have the same.
 */
static int settle_closed(struct rabbit *rabbit, struct outbox_batch *batch, size_t sent,
			 struct outbox_error *err)
{
	const struct rabbit_code *row = rabbit_code_find(rabbit->closed_code, rabbit->closed_text);
	size_t guilty = 0;

	confirms_finish(&rabbit->confirms);
	rabbit_exchanges_forget(rabbit);
	if (row->verdict == OUTBOX_REJECTED)
		learn_size_max(rabbit);
	else if (is_only_place(rabbit))
		return rabbit_fail(rabbit, rabbit->closed_code, rabbit->closed_text,
				   "channel closed", err);
	for (size_t i = 0; i < sent; i++) {
		if (batch->items[i]->verdict != OUTBOX_UNKNOWN ||
		    !is_guilty(rabbit, batch->items[i], row))
			continue;
		outbox_batch_verdict(batch, i, row->verdict, rabbit->closed_code, "%s%s%s",
				     rabbit->closed_text, row->note ? "; " : "",
				     row->note ? row->note : "");
		guilty++;
	}
	if (!guilty && rabbit->constant && row->verdict != OUTBOX_REJECTED)
		return rabbit_fail(rabbit, rabbit->closed_code, rabbit->closed_text,
				   "channel closed", err);
	return OUTBOX_OK;
}

/* ---- the batch ---------------------------------------------------------------------------------- */

static int run_window(struct rabbit *rabbit, struct outbox_batch *batch, size_t *next,
		      outbox_time deadline, struct outbox_error *err)
{
	int r = confirms_begin(&rabbit->confirms, batch, err);

	if (r == OUTBOX_OK)
		r = rabbit_exchanges_prepare(rabbit, batch, deadline, err);
	if (r != OUTBOX_OK)
		return r;
	if (batch->count > 1)
		cork(rabbit, 1);
	r = send_window(rabbit, batch, next, deadline, err);
	if (batch->count > 1)
		cork(rabbit, 0);
	if (r == OUTBOX_OK)
		r = await_confirms(rabbit, deadline, err);
	if (r != OUTBOX_OK)
		return r;
	if (!rabbit->closed_code) {
		confirms_finish(&rabbit->confirms);
		return OUTBOX_OK;
	}
	r = settle_closed(rabbit, batch, *next, err);
	return r == OUTBOX_OK ? rabbit_open_channel(rabbit, deadline, err) : r;
}

static int run_batch(struct rabbit *rabbit, struct outbox_batch *batch, outbox_time deadline,
		     struct outbox_error *err)
{
	size_t next = 0;
	int r;

	/* What came while nobody looked: heartbeats, an alarm, the end of the connection. */
	r = rabbit_answers(rabbit, false, deadline, err);
	if (r == OUTBOX_OK)
		r = wait_unblocked(rabbit, deadline, err);
	if (r == OUTBOX_OK && rabbit->closed_code)
		r = rabbit_open_channel(rabbit, deadline, err);
	while (r == OUTBOX_OK && next < batch->count) {
		if (passed(rabbit, deadline))
			return too_late(rabbit, err);
		r = run_window(rabbit, batch, &next, deadline, err);
	}
	return r;
}

/* Writing failed in the middle. What the broker said before is still worth hearing: fewer duplicates. */
static void hear_the_rest(struct rabbit *rabbit)
{
	if (rabbit->confirms.batch && !rabbit->deaf)
		(void)!rabbit_answers(rabbit, false, 0, NULL);
	confirms_finish(&rabbit->confirms);
}

int rabbit_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		   outbox_time deadline, struct outbox_error *err)
{
	struct rabbit *rabbit = rabbit_downcast(transport);
	int r = broker_ready(&rabbit->broker, rabbit->connection, deadline, err);
	bool late;

	if (r != OUTBOX_OK)
		return r;
	rabbit_watchdog_arm(&rabbit->watchdog, broker_time_left(&rabbit->broker, deadline));
	r = run_batch(rabbit, batch, deadline, err);
	if (r != OUTBOX_OK)
		hear_the_rest(rabbit);
	late = rabbit_watchdog_disarm(&rabbit->watchdog);
	if (late)
		r = too_late(rabbit, err);
	if (r != OUTBOX_OK)
		rabbit_drop(rabbit, false);
	return r;
}
