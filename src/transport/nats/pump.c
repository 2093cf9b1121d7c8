/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I/O is done by the worker that publishes: one thread, a deadline on every wait, and a TLS session that only one thread
 * ever touches. The price: between two batches nobody answers the server's pings, and after some minutes it ends the
 * idle connection. publish() sees that before it sends anything, and connects again.
 */

#include "transport/nats/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool nats_is_login_error(const char *text)
{
	return strcasestr(text, "authorization") || strcasestr(text, "authentication");
}

bool pump_next(struct nats_transport *t, struct nats_frame *ret_frame)
{
	while (nats_frame_next(&t->wire, ret_frame)) {
		if (ret_frame->kind == FRAME_PING)
			buf_text(&t->wire.out, "PONG\r\n");
		if (ret_frame->kind == FRAME_MESSAGE && ret_frame->sid == t->sid)
			return true;
		if (ret_frame->kind != FRAME_ERROR)
			continue;
		if (strcasestr(ret_frame->text, "permissions violation"))
			return true;
		/* Its words explain more than the reset that perhaps came with them. */
		t->wire.ended = false;
		wire_end(&t->wire,
			 nats_is_login_error(ret_frame->text) ? OUTBOX_EAUTH : OUTBOX_ECONN,
			 ret_frame->text);
		return false;
	}
	return false;
}

int pump_why(const struct nats_transport *t, struct outbox_error *err)
{
	return outbox_fail(err, t->wire.status ? t->wire.status : OUTBOX_ECONN,
			   "%s: the connection ended: %s", t->broker.shown,
			   t->wire.why[0] ? t->wire.why : "closed by the server");
}

/* ---- requests and answers --------------------------------------------------------------------------- */

uint64_t pump_next_reply(struct nats_transport *t)
{
	t->reply.size = t->reply_length;
	buf_number(&t->reply, t->number);
	return t->number++;
}

bool pump_number(const struct nats_transport *t, const char *subject, uint64_t *ret_number)
{
	unsigned long long number;
	char *end;

	if (strncmp(subject, t->reply.data, t->reply_length) != 0)
		return false;
	subject += t->reply_length;
	if (subject[0] < '0' || subject[0] > '9')
		return false;
	errno = 0;
	number = strtoull(subject, &end, 10);
	if (*end || errno)
		return false;
	*ret_number = number;
	return true;
}

void pump_put_request(struct nats_transport *t, const char *subject, const char *json)
{
	buf_printf(&t->wire.out, "PUB %s %s %zu\r\n%s\r\n", subject, t->reply.data, strlen(json),
		   json);
}

/* Take what is there. OK with *ret_answer NULL: the answer is not among it. */
static int find_answer(struct nats_transport *t, const char *subject, uint64_t number,
		       char **ret_answer, struct outbox_error *err)
{
	struct nats_frame frame;
	uint64_t found;

	while (pump_next(t, &frame)) {
		if (frame.kind == FRAME_ERROR && strstr(frame.text, subject))
			return outbox_fail(err, OUTBOX_EAUTH, "%s: %s", t->broker.shown, frame.text);
		if (frame.kind == FRAME_ERROR) {
			settle_note(t, frame.text);
		} else if (pump_number(t, frame.text, &found) && found == number) {
			if (frame.status == NATS_NO_RESPONDERS)
				return outbox_fail_native(err, OUTBOX_ENOTFOUND, NATS_NO_RESPONDERS,
							  "nothing is subscribed");
			*ret_answer = strdup(frame.data);
			return *ret_answer ? OUTBOX_OK
					   : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		} else {
			settle_message(t, &frame);
		}
	}
	return OUTBOX_OK;
}

int pump_request(struct nats_transport *t, const char *subject, const char *json,
		 outbox_time deadline, char **ret_answer, struct outbox_error *err)
{
	uint64_t number = pump_next_reply(t);
	char *answer = NULL;

	pump_put_request(t, subject, json);
	for (;;) {
		outbox_time left = broker_time_left(&t->broker, deadline);
		bool moved = left > 0 && wire_wait(&t->wire, left);
		int r = find_answer(t, subject, number, &answer, err);

		if (r != OUTBOX_OK)
			return r;
		if (answer) {
			*ret_answer = answer;
			return OUTBOX_OK;
		}
		if (t->wire.ended)
			return pump_why(t, err);
		if (!moved)
			return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer to %s in time",
					   t->broker.shown, subject);
	}
}
