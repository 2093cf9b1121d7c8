/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch goes out whole, then its answers are awaited; answers that come meanwhile are read meanwhile, so that
 * never both sides wait for the other to read.
 *
 * Every message is a request with a reply subject of its own, <inbox>.<number>. JetStream's answer, the PubAck,
 * comes to that subject and says which message it is about. The calling thread reads one wildcard subscription, so that an
 * answer counts for exactly one message of exactly this batch, and a late one for none.
 *
 * When a batch ends with messages unanswered, the next one gets a new inbox: what still comes to the old one is
 * dropped by the server.
 */

#include "transport/nats/driver.h"

#include "transport/transport.h"

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

/* ---- a message ---------------------------------------------------------------------------------------- */

struct outgoing {
	struct outbox_header fixed[FIXED_HEADERS];
	size_t n_fixed;
	size_t size; /* headers and body, as the server counts them */
};

static void add_fixed(struct outgoing *wire, const char *name, const char *value)
{
	wire->fixed[wire->n_fixed++] = (struct outbox_header){ name, value };
	wire->size += strlen(name) + strlen(value) + strlen(": \r\n");
}

/* What the driver adds, and how large it all becomes. EINVAL: it cannot be sent. */
static int prepare(struct nats_transport *t, const struct outbox_message *message,
		   const struct outbox_encoded *encoded, struct outgoing *wire,
		   struct outbox_error *err)
{
	const char *id;
	int r;

	*wire = (struct outgoing){ .size = strlen(HEADER_LINE) + strlen("\r\n") + encoded->size };
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

static void put_headers(struct buf *out, const struct outbox_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_text(out, headers[i].name);
		buf_append(out, ": ", 2);
		buf_text(out, headers[i].value);
		buf_append(out, "\r\n", 2);
	}
}

static void put_message(struct nats_transport *t, const struct outbox_encoded *encoded,
			const struct outgoing *wire)
{
	struct buf *out = &t->wire.out;

	buf_append(out, "HPUB ", 5);
	buf_append(out, t->text.data, t->text.size);
	buf_char(out, ' ');
	buf_append(out, t->reply.data, t->reply.size);
	buf_char(out, ' ');
	buf_number(out, wire->size - encoded->size);
	buf_char(out, ' ');
	buf_number(out, wire->size);
	buf_text(out, "\r\n" HEADER_LINE);
	put_headers(out, wire->fixed, wire->n_fixed);
	put_headers(out, encoded->headers, encoded->n_headers);
	buf_append(out, "\r\n", 2);
	buf_append(out, encoded->body, encoded->size);
	buf_append(out, "\r\n", 2);
}

/* ---- the window ------------------------------------------------------------------------------------- */

static int begin(struct nats_transport *t, struct outbox_batch *batch, outbox_time deadline,
		 struct outbox_error *err)
{
	struct window *w = &t->window;
	outbox_time quarter = broker_time_left(&t->broker, deadline) / 4;

	if (batch->count > w->capacity) {
		struct slot *slots = reallocarray(w->slots, batch->count, sizeof(*slots));

		if (!slots)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		w->slots = slots;
		w->capacity = batch->count;
	}
	w->batch = batch;
	w->count = w->open = w->acked = w->unheard = w->asked = 0;
	w->no_stream = false;
	w->first = t->number;
	w->reserve = quarter < SILENCE ? quarter : SILENCE;
	return OUTBOX_OK;
}

/* What came so far. */
static void take_answers(struct nats_transport *t)
{
	struct nats_frame frame;

	while (pump_next(t, &frame)) {
		if (frame.kind == FRAME_ERROR)
			settle_note(t, frame.text);
		else
			settle_message(t, &frame);
	}
}

/* Write and read for up to `wait`. False: nothing happened. */
static bool turn(struct nats_transport *t, outbox_time wait)
{
	bool moved = wire_wait(&t->wire, wait);

	take_answers(t);
	return moved;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* One item. OK also when it is refused: then it has its verdict. */
static int send_item(struct nats_transport *t, size_t i, size_t *sent, struct outbox_error *err)
{
	struct window *w = &t->window;
	const struct outbox_item *item = w->batch->items[i];
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_encoded encoded;
	struct outgoing wire = { 0 };
	int r = nats_subject(t, item->message, &why);

	if (r == OUTBOX_OK)
		r = outbox_encode(t->broker.encoder, item, &encoded, &why);
	if (r == OUTBOX_OK)
		r = prepare(t, item->message, &encoded, &wire, &why);
	if (r != OUTBOX_OK)
		return transport_reject(w->batch, i, r, &why, err);
	/* From here on it counts as sent, whatever becomes of it. */
	pump_next_reply(t);
	w->slots[w->count++] = (struct slot){ .item = i };
	w->open++;
	put_message(t, &encoded, &wire);
	if (t->wire.out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*sent += wire.size;
	return OUTBOX_OK;
}

/* Write what was gathered. The socket is full: wait for room, and read answers meanwhile. */
static int make_room(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	outbox_time wait = 0;

	for (;;) {
		bool moved = turn(t, wait);

		if (t->wire.ended)
			return pump_why(t, err);
		if (wire_unsent(&t->wire) <= BUFFER_MAX)
			return OUTBOX_OK;
		if (wait && !moved)
			break;
		wait = broker_time_left(&t->broker, deadline);
		if (wait <= 0)
			break;
	}
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: it takes no more data", t->broker.shown);
}

static int send_all(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	size_t gathered = 0;

	for (size_t i = 0; i < t->window.batch->count; i++) {
		int r = send_item(t, i, &gathered, err);

		if (r == OUTBOX_OK && gathered >= WRITE_AT) {
			gathered = 0;
			r = make_room(t, deadline, err);
			if (r == OUTBOX_OK && broker_time_left(&t->broker, deadline) <= 0)
				r = outbox_fail(err, OUTBOX_ETIMEDOUT,
						"%s: the batch could not be sent in time",
						t->broker.shown);
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

	while (w->asked < w->count && w->open > w->unheard && !t->wire.ended)
		if (!settle_silence(t, w->asked++, deadline))
			return;
}

/* Until everything that can be answered is. */
static void await_answers(struct nats_transport *t, outbox_time deadline)
{
	const struct window *w = &t->window;

	turn(t, 0);
	while (w->open > w->unheard && !t->wire.ended) {
		outbox_time until = deadline - (t->doubts.count ? w->reserve : 0);
		outbox_time left = broker_time_left(&t->broker, until);

		if (left <= 0)
			return;
		if (turn(t, left < SILENCE ? left : SILENCE))
			continue;
		if (left <= SILENCE)
			return;
		look_into_silence(t, until);
	}
}

static void look_into_duplicates(struct nats_transport *t, outbox_time deadline)
{
	while (!t->wire.ended && doubts_ask(t)) {
		outbox_time left = broker_time_left(&t->broker, deadline);

		if (left <= 0 || !turn(t, left))
			break;
	}
	t->stale |= t->doubts.open > 0;
	doubts_end(t, t->wire.ended ? NULL : "no answer came in time");
}

/* Has the other end closed it? */
static bool hung_up(const struct nats_transport *t)
{
	char byte;
	ssize_t n = recv(t->wire.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Nobody looked at the connection since the last batch. Did it end? Then nothing is lost by another one. */
static int wake_up(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	while (!t->wire.ended && !hung_up(t) && turn(t, 0))
		if (broker_time_left(&t->broker, deadline) <= 0)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "%s: the server sends without end, so nothing could be sent",
					   t->broker.shown);
	if (t->wire.ended || hung_up(t))
		return nats_connect(&t->broker.base, deadline, err);
	if (t->stale)
		nats_new_inbox(t);
	return OUTBOX_OK;
}

/*
 * Messages that did not go out are settled as unknown, and may be discarded or sent again: they must not leave first with
 * the next batch, however late that is. Perhaps half of one is out, so the connection is of no use.
 */
static void end_with_unsent(struct nats_transport *t)
{
	size_t unsent;

	wire_send(&t->wire); /* a PONG was perhaps written down just now */
	unsent = wire_unsent(&t->wire);
	take_answers(t);
	if (unsent > 0 && t->window.open > 0)
		wire_end(&t->wire, OUTBOX_ETIMEDOUT, "the batch could not be sent in time");
}

static int exchange(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int sent = send_all(t, deadline, err);
	int r;

	if (sent == OUTBOX_OK) {
		await_answers(t, deadline);
		look_into_duplicates(t, deadline);
	}
	end_with_unsent(t);
	r = settle_batch(t, deadline, sent == OUTBOX_OK ? err : NULL);
	return sent != OUTBOX_OK ? sent : r;
}

int nats_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err)
{
	struct nats_transport *t = nats_downcast(transport);
	int r = broker_ready(&t->broker, t->wire.fd >= 0, deadline, err);

	if (r == OUTBOX_OK)
		r = wake_up(t, deadline, err);
	if (r == OUTBOX_OK)
		r = begin(t, batch, deadline, err);
	if (r == OUTBOX_OK)
		r = exchange(t, deadline, err);
	doubts_clear(t);
	t->window.batch = NULL;
	t->window.count = 0;
	return r;
}
