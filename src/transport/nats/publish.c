/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch goes out whole, then its answers are awaited; answers that come meanwhile are read meanwhile, so that
 * never both sides wait for the other to read.
 *
 * Every message is a request with a reply subject of its own, <inbox>.<number>. JetStream's answer, the PubAck,
 * comes to that subject and says which message it is about. libnats has js_PublishMsgAsync() for this, with
 * callbacks in threads of its own; here the calling thread reads one wildcard subscription, so that an answer
 * counts for exactly one message of exactly this batch, and a late one for none.
 *
 * When a batch ends with messages unanswered, the next one gets a new inbox: what still comes to the old one is
 * dropped by the server.
 */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "transport/nats/notes.h"
#include "transport/nats/watchdog.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WRITE_AT 32768       /* write what has been gathered */
#define BUFFER_MAX (1 << 20) /* the socket is full: wait for room */
#define FIXED_HEADERS 3      /* Nats-Msg-Id, Nats-Expected-Stream, Content-Type */
#define SILENCE (2 * OUTBOX_SECONDS)
#define HEADER_LINE "NATS/1.0\r\n"

static void free_text(char **text)
{
	free(*text);
}

static outbox_time left_until(const struct nats_transport *t, outbox_time deadline)
{
	return deadline - t->clock->mono(t->clock);
}

/* ---- a message ---------------------------------------------------------------------------------------- */

struct wire {
	struct outbox_header fixed[FIXED_HEADERS];
	size_t n_fixed;
	size_t size; /* headers and body, as the server counts them */
};

static void add_fixed(struct wire *wire, const char *name, const char *value)
{
	wire->fixed[wire->n_fixed++] = (struct outbox_header){ name, value };
	wire->size += strlen(name) + strlen(value) + strlen(": \r\n");
}

/* What the driver adds, and how large it all becomes. EINVAL: it cannot be sent. */
static int prepare(struct nats_transport *t, const struct outbox_message *message,
		   const struct outbox_encoded *encoded, struct wire *wire, struct outbox_error *err)
{
	const char *id;
	int r;

	*wire = (struct wire){ .size = strlen(HEADER_LINE) + strlen("\r\n") + encoded->size };
	r = nats_msg_id(t, message, &id, err);
	if (r != OUTBOX_OK)
		return r;
	add_fixed(wire, "Nats-Msg-Id", id);
	if (t->stream)
		add_fixed(wire, "Nats-Expected-Stream", t->stream);
	if (encoded->content_type) {
		add_fixed(wire, "Content-Type", encoded->content_type);
		r = nats_header_check(&wire->fixed[wire->n_fixed - 1], err);
		if (r != OUTBOX_OK)
			return r;
	}
	for (size_t i = 0; i < encoded->n_headers; i++) {
		r = nats_header_check(&encoded->headers[i], err);
		if (r != OUTBOX_OK)
			return r;
		wire->size += strlen(encoded->headers[i].name) + strlen(encoded->headers[i].value) +
			      strlen(": \r\n");
	}
	/* The server ends the connection at a larger one, and with it everything else in flight. */
	if (wire->size > INT_MAX || (t->max_payload > 0 && (int64_t)wire->size > t->max_payload))
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"%zu bytes with headers are more than the server takes (max_payload %lld)",
			wire->size, (long long)t->max_payload);
	return OUTBOX_OK;
}

static natsStatus make(const char *subject, const char *reply, const struct outbox_encoded *encoded,
		       const struct wire *wire, natsMsg **ret_message)
{
	natsStatus s =
		natsMsg_Create(ret_message, subject, reply, encoded->body, (int)encoded->size);

	for (size_t i = 0; i < wire->n_fixed && s == NATS_OK; i++)
		s = natsMsgHeader_Add(*ret_message, wire->fixed[i].name, wire->fixed[i].value);
	for (size_t i = 0; i < encoded->n_headers && s == NATS_OK; i++)
		s = natsMsgHeader_Add(*ret_message, encoded->headers[i].name,
				      encoded->headers[i].value);
	return s;
}

/* ---- the window ------------------------------------------------------------------------------------- */

static int begin(struct nats_transport *t, struct outbox_batch *batch, outbox_time deadline,
		 struct outbox_error *err)
{
	struct window *w = &t->window;
	outbox_time quarter = left_until(t, deadline) / 4;

	if (batch->count > w->capacity) {
		struct slot *slots = reallocarray(w->slots, batch->count, sizeof(*slots));

		if (!slots)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		w->slots = slots;
		w->capacity = batch->count;
	}
	w->batch = batch;
	w->count = w->open = w->acked = w->no_responders = w->asked = 0;
	w->no_stream = false;
	w->first = t->number;
	w->reserve = quarter < SILENCE ? quarter : SILENCE;
	return OUTBOX_OK;
}

/* What came so far. */
static void take_answers(struct nats_transport *t)
{
	for (;;) {
		natsMsg *msg = NULL;
		natsStatus s = natsSubscription_NextMsg(&msg, t->answers, 0);

		if (s == NATS_NO_RESPONDERS)
			t->window.no_responders++;
		else if (s == NATS_OK)
			settle_message(t, msg);
		else
			return;
		bin_drop(t, msg);
	}
}

static void take_notes(struct nats_transport *t)
{
	for (;;) {
		_cleanup_(free_text) char *text = notes_take(t->notes);

		if (!text)
			return;
		settle_note(t, text);
	}
}

/* Write and read for up to `wait`. False: nothing happened. */
static bool turn(struct nats_transport *t, outbox_time wait)
{
	bool moved = pump(t, wait);

	take_answers(t);
	if (moved)
		take_notes(t);
	return moved;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* One item. OK also when it is refused: then it has its verdict. */
static int send_item(struct nats_transport *t, size_t i, size_t *sent, struct outbox_error *err)
{
	struct window *w = &t->window;
	const struct outbox_item *item = w->batch->items[i];
	natsMsg *message = NULL;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_encoded encoded;
	struct wire wire = { 0 };
	natsStatus s;
	int r;

	r = nats_subject(t, item->message, &why);
	if (r == OUTBOX_OK)
		r = outbox_encode(t->encoder, item, &encoded, &why);
	if (r == OUTBOX_OK)
		r = prepare(t, item->message, &encoded, &wire, &why);
	if (r == OUTBOX_EINVAL) {
		outbox_batch_verdict(w->batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
		return OUTBOX_OK;
	}
	if (r != OUTBOX_OK)
		return outbox_fail(err, r, "%s", why.message);
	/* From here on it counts as sent, whatever becomes of it. */
	pump_next_reply(t);
	w->slots[w->count++] = (struct slot){ .item = i };
	w->open++;
	s = make(t->text.data, t->reply, &encoded, &wire, &message);
	if (s == NATS_OK)
		s = natsConnection_PublishMsg(t->nc, message);
	bin_drop(t, message);
	if (s != NATS_OK)
		return pump_closed(t) ? pump_why(t, err)
				      : outbox_fail_native(err, OUTBOX_ECONN, (int)s, "NATS %s: %s",
							   t->endpoint.shown, natsStatus_GetText(s));
	*sent += wire.size;
	return OUTBOX_OK;
}

/* Write what was gathered. The socket is full: wait for room, and read answers meanwhile. */
static int make_room(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	outbox_time wait = 0;

	for (;;) {
		bool moved = turn(t, wait);

		if (pump_closed(t))
			return pump_why(t, err);
		if (natsConnection_Buffered(t->nc) <= BUFFER_MAX)
			return OUTBOX_OK;
		if (wait && !moved)
			break;
		wait = left_until(t, deadline);
		if (wait <= 0)
			break;
	}
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "NATS %s: it takes no more data",
			   t->endpoint.shown);
}

static int send_all(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	size_t gathered = 0;

	for (size_t i = 0; i < t->window.batch->count; i++) {
		int r = send_item(t, i, &gathered, err);

		if (r == OUTBOX_OK && gathered >= WRITE_AT) {
			gathered = 0;
			r = make_room(t, deadline, err);
			if (r == OUTBOX_OK && left_until(t, deadline) <= 0)
				r = outbox_fail(err, OUTBOX_ETIMEDOUT,
						"NATS %s: the batch could not be sent in time",
						t->endpoint.shown);
		}
		if (r != OUTBOX_OK)
			return r;
	}
	return OUTBOX_OK;
}

/*
 * A subject that somebody listens to, and no stream, is answered by nobody: the server says that nobody listens
 * only where it is so. Ask JetStream about the messages without an answer, until one has a stream: then it is
 * merely slow.
 */
static void look_into_silence(struct nats_transport *t, outbox_time deadline)
{
	struct window *w = &t->window;

	while (w->asked < w->count && w->open > w->no_responders && !pump_closed(t))
		if (!settle_silence(t, w->asked++, deadline))
			return;
}

/* Until everything that can be answered is. */
static void await_answers(struct nats_transport *t, outbox_time deadline)
{
	const struct window *w = &t->window;

	/* Write the rest, then let the library free while we wait: both at once is a fight for the heap. */
	turn(t, 0);
	bin_empty(t);
	while (w->open > w->no_responders && !pump_closed(t)) {
		outbox_time until = deadline - (t->doubts.count ? w->reserve : 0);
		outbox_time left = left_until(t, until);

		if (left <= 0)
			return;
		if (turn(t, left < SILENCE ? left : SILENCE))
			continue;
		if (left <= SILENCE)
			return;
		look_into_silence(t, until);
	}
}

/* No more answers are awaited, so a 503 that comes now is taken as one to a question. */
static void look_into_duplicates(struct nats_transport *t, outbox_time deadline)
{
	struct window *w = &t->window;
	const size_t unheard = w->no_responders;

	while (!pump_closed(t) && doubts_ask(t)) {
		outbox_time left = left_until(t, deadline);

		if (left <= 0 || !turn(t, left))
			break;
		if (w->no_responders > unheard)
			doubts_end(t, "nobody answers to " NATS_MSG_GET "* in this account");
	}
	w->no_responders = unheard;
	t->stale |= t->doubts.open > 0;
	doubts_end(t, pump_closed(t) ? NULL : "no answer came in time");
}

/* Has the other end closed it? The library may need a moment to say so. */
static bool hung_up(const struct nats_transport *t)
{
	char byte;
	ssize_t n = recv(t->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Nobody looked at the connection since the last batch. Did it end? Then nothing is lost by another one. */
static int wake_up(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	while (!pump_closed(t) && !hung_up(t) && turn(t, 0))
		if (left_until(t, deadline) <= 0)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "NATS %s: it talks without end, nothing could be sent",
					   t->endpoint.shown);
	if (pump_closed(t) || hung_up(t))
		return nats_dial(t, deadline, err);
	return t->stale ? nats_new_inbox(t, err) : OUTBOX_OK;
}

static int exchange(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int sent = send_all(t, deadline, err);
	int r;

	if (sent == OUTBOX_OK) {
		await_answers(t, deadline);
		look_into_duplicates(t, deadline);
	}
	r = settle_batch(t, deadline, sent == OUTBOX_OK ? err : NULL);
	return sent != OUTBOX_OK ? sent : r;
}

int nats_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err)
{
	struct nats_transport *t = container_of(transport, struct nats_transport, base);
	int r;

	if (!t->nc)
		return outbox_fail(err, OUTBOX_ECONN, "NATS %s: not connected", t->endpoint.shown);
	if (left_until(t, deadline) <= 0)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "NATS %s: the deadline has passed",
				   t->endpoint.shown);
	pump_guard(t, deadline);
	r = wake_up(t, deadline, err);
	if (r == OUTBOX_OK)
		r = begin(t, batch, deadline, err);
	if (r == OUTBOX_OK) {
		pump_guard(t, deadline); /* perhaps it is another connection now */
		r = exchange(t, deadline, err);
	}
	watchdog_disarm(t->watchdog);
	doubts_clear(t);
	t->window.batch = NULL;
	t->window.count = 0;
	return r;
}
