/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: one address after the other, each with its share of the time that is left. The library would try a
 * list of servers by itself, but knows one expected host name for all, and tells only the last error.
 *
 * TLS is decided by the URL alone. With tls:// the library refuses a server that does not offer it. With nats://
 * it would quietly switch to TLS when the server demands it; then what is verified would depend on what the other
 * side says, so a name that no certificate has is expected there, which makes the switch fail.
 */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "core/json.h"
#include "transport/nats/notes.h"
#include "transport/nats/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOGIN_MAX 16384
#define NO_TLS_NAME "tls-was-not-asked-for.invalid"

/* ---- options -------------------------------------------------------------------------------------- */

/* The library puts these into JSON as they are. Escaped for that; false: out of memory. */
static bool escape(struct buf *out, const char *text)
{
	json_append_string(out, text, strlen(text));
	if (out->failed || out->size < 2)
		return false;
	out->data[out->size - 1] = '\0';
	return true;
}

static void wipe(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->capacity);
	buf_deinit(buf);
}

static natsStatus set_login(const struct nats_transport *t, natsOptions *options)
{
	_cleanup_(wipe) struct buf first = BUF_INIT(LOGIN_MAX);
	_cleanup_(wipe) struct buf second = BUF_INIT(LOGIN_MAX);

	if (t->creds)
		return natsOptions_SetUserCredentialsFromFiles(options, t->creds, NULL);
	if (t->nkey)
		return natsOptions_SetNKeyFromSeed(options, t->nkey, t->seed);
	if (t->token)
		return escape(&first, t->token) ? natsOptions_SetToken(options, first.data + 1)
						: NATS_NO_MEMORY;
	if (!t->endpoint.user)
		return NATS_OK;
	if (!escape(&first, t->endpoint.user) || !escape(&second, t->endpoint.password))
		return NATS_NO_MEMORY;
	return natsOptions_SetUserInfo(options, first.data + 1, second.data + 1);
}

static natsStatus set_tls(const struct endpoint *e, const char *host, natsOptions *options)
{
	natsStatus s;

	if (!e->tls)
		return natsOptions_SetExpectedHostname(options, NO_TLS_NAME);
	s = natsOptions_SetSecure(options, true);
	if (s == NATS_OK && !e->verify)
		s = natsOptions_SkipServerVerification(options, true);
	if (s == NATS_OK && e->verify)
		s = natsOptions_SetExpectedHostname(options, host);
	if (s == NATS_OK && e->verify)
		s = natsOptions_LoadCATrustedCertificates(options, e->ca);
	if (s == NATS_OK && e->cert)
		s = natsOptions_LoadCertificatesChain(options, e->cert, e->key);
	return s;
}

static natsStatus set_common(struct nats_transport *t, natsOptions *options,
			     const struct address *address, int64_t milliseconds)
{
	char url[300];
	bool colons = strchr(address->host, ':');
	natsStatus s;

	snprintf(url, sizeof(url), "nats://%s%s%s:%d", colons ? "[" : "", address->host,
		 colons ? "]" : "", address->port);
	s = natsOptions_SetURL(options, url);
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(options, milliseconds);
	if (s == NATS_OK)
		s = natsOptions_SetName(options, t->name);
	/* A batch never spans two connections: what becomes of the rest is the engine's business. */
	if (s == NATS_OK)
		s = natsOptions_SetAllowReconnect(options, false);
	if (s == NATS_OK)
		s = natsOptions_SetIgnoreDiscoveredServers(options, true);
	/* No timer and no flusher: nothing but pump() touches the connection. */
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(options, 0);
	if (s == NATS_OK)
		s = natsOptions_SetSendAsap(options, true);
	if (s == NATS_OK)
		s = natsOptions_SetEventLoop(options, t, pump_attach, pump_read, pump_write,
					     pump_detach);
	return s;
}

/* ---- errors ----------------------------------------------------------------------------------------- */

/* "(conn.c:1905): Authorization Violation" without the library's source line. */
static const char *plain(const char *text)
{
	const char *end = text && text[0] == '(' ? strstr(text, "): ") : NULL;

	return end ? end + 3 : text;
}

static int connect_status(natsStatus s, bool tls)
{
	switch (s) {
	case NATS_CONNECTION_AUTH_FAILED:
	case NATS_NOT_PERMITTED:
		return OUTBOX_EAUTH;
	case NATS_TIMEOUT:
		return OUTBOX_ETIMEDOUT;
	case NATS_SSL_ERROR:
		return tls ? OUTBOX_EAUTH : OUTBOX_ECONFIG;
	case NATS_SECURE_CONNECTION_WANTED:
	case NATS_SECURE_CONNECTION_REQUIRED:
	case NATS_INVALID_ARG:
	case NATS_NOT_FOUND:
		return OUTBOX_ECONFIG;
	case NATS_PROTOCOL_ERROR:
	case NATS_LINE_TOO_LONG:
		return OUTBOX_EPROTO;
	case NATS_NO_MEMORY:
		return OUTBOX_ENOMEM;
	default:
		return OUTBOX_ECONN;
	}
}

static int connect_failed(const struct nats_transport *t, const struct address *address,
			  natsStatus s, struct outbox_error *err)
{
	const char *text = plain(nats_GetLastError(NULL));
	const char *remedy = "";
	int status = connect_status(s, t->endpoint.tls);

	if (s == NATS_SSL_ERROR && !t->endpoint.tls) {
		text = "the server demands TLS";
		remedy = "; write tls:// instead of nats://";
	} else if (s == NATS_SECURE_CONNECTION_WANTED) {
		text = "the server does not offer TLS";
		remedy = "; give it a certificate, or write nats:// where the network is trusted";
	} else if (s == NATS_NO_SERVER) {
		text = "nothing listens there";
		remedy = ": is the server running, are host and port right?";
	} else if (s == NATS_CONNECTION_AUTH_FAILED) {
		remedy = t->endpoint.user ? "; the user or the password is wrong"
					  : "; the server wants a user (nats://USER@HOST with "
					    "password_file=PATH) or a token (token_file=PATH)";
	}
	return outbox_fail_native(err, status, (int)s, "NATS %s:%d: %s%s", address->host,
				  address->port, text && text[0] ? text : natsStatus_GetText(s),
				  remedy);
}

/* ---- connections ---------------------------------------------------------------------------------- */

/*
 * The options for an address. Those without TLS are kept: the library loads every certificate authority of the
 * system for them, which takes longer than connecting. Those with TLS are made anew, since files may have changed.
 */
static natsStatus options_for(struct nats_transport *t, const struct address *address,
			      int64_t milliseconds)
{
	natsStatus s = NATS_OK;

	if (t->endpoint.tls && t->options) {
		natsOptions_Destroy(t->options);
		t->options = NULL;
	}
	if (!t->options) {
		s = natsOptions_Create(&t->options);
		if (s == NATS_OK)
			s = set_login(t, t->options);
		if (s == NATS_OK)
			s = set_tls(&t->endpoint, address->host, t->options);
	}
	if (s == NATS_OK)
		s = set_common(t, t->options, address, milliseconds);
	if (s != NATS_OK) {
		natsOptions_Destroy(t->options);
		t->options = NULL;
	}
	return s;
}

static int connect_to(void *context, const struct address *address, outbox_time until,
		      struct outbox_error *err)
{
	struct nats_transport *t = context;
	outbox_time left = until - t->clock->mono(t->clock);
	/* The library first, where it keeps its deadline; the watchdog where it does not. */
	int64_t milliseconds = left * 9 / 10 / OUTBOX_MILLISECONDS;
	natsStatus s = options_for(t, address, milliseconds > 0 ? milliseconds : 1);
	bool late;

	if (s != NATS_OK)
		return outbox_fail_native(err, OUTBOX_ECONFIG, (int)s, "NATS %s:%d: %s",
					  address->host, address->port,
					  plain(nats_GetLastError(NULL)));
	s = notes_attach(t->notes, t->options);
	if (s != NATS_OK)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	watchdog_arm_connect(t->watchdog, address->port, left);
	s = natsConnection_Connect(&t->nc, t->options);
	late = watchdog_disarm(t->watchdog);
	if (s == NATS_OK)
		return OUTBOX_OK;
	notes_detach(t->notes);
	t->nc = NULL;
	if (late)
		return outbox_fail_native(err, OUTBOX_ETIMEDOUT, (int)s,
					  "NATS %s:%d: connecting came to no end in time",
					  address->host, address->port);
	return connect_failed(t, address, s, err);
}

int nats_new_inbox(struct nats_transport *t, struct outbox_error *err)
{
	natsInbox *inbox = NULL;
	natsStatus s = natsInbox_Create(&inbox);
	const char *unique = inbox ? strrchr(inbox, '.') : NULL;
	int n;

	natsSubscription_Destroy(t->answers);
	t->answers = NULL;
	if (s == NATS_OK && unique) {
		n = snprintf(t->reply, sizeof(t->reply), "%s%s.*", t->inbox_prefix, unique);
		t->reply_length = (size_t)n - 1;
		s = natsConnection_SubscribeSync(&t->answers, t->nc, t->reply);
		t->reply[t->reply_length] = '\0';
	}
	natsInbox_Destroy(inbox);
	t->stale = false;
	if (s != NATS_OK || !unique)
		return outbox_fail_native(err, OUTBOX_ECONN, (int)s, "NATS %s: cannot subscribe: %s",
					  t->endpoint.shown, natsStatus_GetText(s));
	return OUTBOX_OK;
}

static int set_up(struct nats_transport *t, struct outbox_error *err)
{
	if (natsConnection_HasHeaderSupport(t->nc) != NATS_OK)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "NATS %s: the server takes no headers, which the message id needs; "
				   "use nats-server 2.2 or later",
				   t->endpoint.shown);
	t->max_payload = natsConnection_GetMaxPayload(t->nc);
	return nats_new_inbox(t, err);
}

int nats_dial(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r;

	nats_hang_up(t);
	t->notes = notes_new();
	t->watchdog = watchdog_new();
	if (!t->notes || !t->watchdog) {
		nats_hang_up(t);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory, descriptors or threads");
	}
	r = endpoint_try(&t->endpoint, t->clock, deadline, connect_to, t, err);
	if (r == OUTBOX_OK)
		r = set_up(t, err);
	if (r != OUTBOX_OK)
		nats_hang_up(t);
	else if (!t->endpoint.tls)
		t->watchdog = watchdog_free(t->watchdog);
	return r;
}

void nats_hang_up(struct nats_transport *t)
{
	/* The library's own way to close waits half a second for a last answer. Nothing is worth waiting for. */
	if (t->nc && t->attached && t->fd >= 0) {
		shutdown(t->fd, SHUT_RDWR);
		natsConnection_ProcessReadEvent(t->nc);
	}
	if (t->nc && pump_closed(t))
		notes_await_closed(t->notes);
	natsSubscription_Destroy(t->answers);
	natsConnection_Destroy(t->nc);
	t->answers = NULL;
	t->nc = NULL;
	t->attached = false;
	t->watchdog = watchdog_free(t->watchdog);
	t->notes = notes_unref(t->notes);
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}
