/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: one address after the other, each with its share of the time that is left. INFO, TLS, CONNECT,
 * the inbox for the answers, PONG.
 *
 * TLS is decided by the URL alone. tls:// refuses a server that does not offer it; nats:// refuses one that demands it,
 * since what is verified would depend on what the other side says.
 */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

static int fail_ended(const struct wire *wire, struct outbox_error *err)
{
	return outbox_fail(err, wire->status, "%s: %s", wire->shown, wire->why);
}

/* The next frame of these two kinds; an error of the server's is a frame, too. */
static int await_frame(struct wire *wire, enum nats_frame_kind wanted, outbox_time deadline,
		       struct nats_frame *ret_frame, struct outbox_error *err)
{
	for (;;) {
		outbox_time left = deadline - wire->clock->mono(wire->clock);

		while (nats_frame_next(wire, ret_frame))
			if (ret_frame->kind == wanted || ret_frame->kind == FRAME_ERROR)
				return OUTBOX_OK;
		if (wire->ended)
			return fail_ended(wire, err);
		if (left <= 0 || !wire_wait(wire, left))
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "%s: no answer in time while connecting", wire->shown);
	}
}

/* ---- INFO ------------------------------------------------------------------------------------------- */

static int check_tls(const struct nats_transport *t, const json_t *info, struct outbox_error *err)
{
	bool required = json_is_true(json_object_get(info, "tls_required"));

	if (required && !t->broker.endpoint.tls)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: the server demands TLS; write tls:// instead of nats://",
				   t->wire.shown);
	if (t->broker.endpoint.tls && !required &&
	    !json_is_true(json_object_get(info, "tls_available")))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: the server does not offer TLS; give it a certificate, or write "
				   "nats:// where the network is trusted",
				   t->wire.shown);
	return OUTBOX_OK;
}

static int read_info(struct nats_transport *t, const char *text, struct outbox_error *err)
{
	json_auto_t *info = json_loads(text, 0, NULL);
	const char *nonce = json_string_value(json_object_get(info, "nonce"));

	if (!json_is_object(info))
		return outbox_fail(err, OUTBOX_EPROTO,
				   "%s: its INFO is not JSON; is this a NATS server?",
				   t->wire.shown);
	t->max_payload = json_integer_value(json_object_get(info, "max_payload"));
	t->has_headers = json_is_true(json_object_get(info, "headers"));
	snprintf(t->nonce, sizeof(t->nonce), "%s", nonce ? nonce : "");
	return check_tls(t, info, err);
}

static int await_info(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct nats_frame frame;
	int r = await_frame(&t->wire, FRAME_INFO, deadline, &frame, err);

	if (r != OUTBOX_OK)
		return r;
	if (frame.kind == FRAME_ERROR)
		return outbox_fail(err, OUTBOX_ECONN, "%s: %s", t->wire.shown, frame.text);
	return read_info(t, frame.text, err);
}

/* ---- CONNECT ---------------------------------------------------------------------------------------- */

void nats_new_inbox(struct nats_transport *t)
{
	uint64_t unique[2];

	for (size_t i = 0; i < 2; i++)
		unique[i] = random_system_seed();
	if (t->sid > 0)
		buf_printf(&t->wire.out, "UNSUB %llu\r\n", (unsigned long long)t->sid);
	t->sid++;
	buf_clear(&t->reply);
	buf_printf(&t->reply, "%s.%016llx%016llx.", t->inbox_prefix, (unsigned long long)unique[0],
		   (unsigned long long)unique[1]);
	t->reply_length = t->reply.size;
	buf_printf(&t->wire.out, "SUB %s* %llu\r\n", buf_str(&t->reply), (unsigned long long)t->sid);
	t->stale = false;
}

static int fail_refused(const struct nats_transport *t, const char *text, struct outbox_error *err)
{
	bool inbox = strcasestr(text, "permissions violation");
	bool login = nats_is_login_error(text);
	const char *remedy = "";

	if (inbox)
		remedy = "; grant it to the relay's user, or receive the answers on other subjects (inbox=)";
	else if (login)
		remedy = t->broker.endpoint.user
				 ? "; the user or the password is wrong"
				 : "; the server requires a user (nats://USER@HOST with "
				   "password_file=PATH) or a token (token_file=PATH)";
	return outbox_fail(err, login || inbox ? OUTBOX_EAUTH : OUTBOX_ECONN, "%s: %s%s",
			   t->wire.shown, text, remedy);
}

static int log_in(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct nats_frame frame;
	int r = nats_put_connect(t, err);

	/* Before PING: that we may not hear the answers is known before anything is sent. */
	t->sid = 0;
	nats_new_inbox(t);
	buf_text(&t->wire.out, "PING\r\n");
	if (r == OUTBOX_OK)
		r = await_frame(&t->wire, FRAME_PONG, deadline, &frame, err);
	/* The password is gone. */
	if (t->wire.out.data)
		explicit_bzero(t->wire.out.data, t->wire.out.capacity);
	if (r == OUTBOX_OK && frame.kind == FRAME_ERROR)
		r = fail_refused(t, frame.text, err);
	if (r == OUTBOX_OK && !t->has_headers)
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"%s: the server takes no headers, which the message id needs; use "
				"nats-server 2.2 or later",
				t->wire.shown);
	return r;
}

static int use_address(void *context, const struct address *address, outbox_time until,
		       struct outbox_error *err)
{
	struct nats_transport *t = context;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = wire_connect(&t->wire, "NATS", address, until, &why);

	if (r != OUTBOX_OK && why.native == ECONNREFUSED)
		return outbox_fail_native(err, r, ECONNREFUSED,
					  "%s: nothing listens there: is the server running, are host "
					  "and port right?",
					  t->wire.shown);
	if (r != OUTBOX_OK)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	r = await_info(t, until, err);
	if (r == OUTBOX_OK && t->broker.endpoint.tls)
		r = wire_start_tls(&t->wire, &t->broker.endpoint, address->host, until, err);
	return r ? r : log_in(t, until, err);
}

int nats_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct nats_transport *t = nats_downcast(transport);
	int r = endpoint_try(&t->broker.endpoint, t->broker.clock, deadline, use_address, t, err);

	if (r == OUTBOX_OK && t->reply.failed)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r != OUTBOX_OK)
		wire_close(&t->wire);
	return r;
}
