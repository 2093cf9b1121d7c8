/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I/O in the calling thread.
 *
 * libnats normally has a thread that reads and one that writes. Given an "event loop" it has neither, and leaves
 * it to somebody else to say when its socket can be read or written. That somebody is pump(), called by the
 * worker that publishes: one thread, no lock to wait for, a deadline on every wait, and a TLS session that only
 * one thread ever touches (libnats' own threads read and write one at the same time, which OpenSSL forbids).
 *
 * The price: between two batches nobody answers the server's pings, and after some minutes it ends the idle
 * connection. publish() sees that before it sends anything, and connects again.
 */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "transport/nats/notes.h"
#include "transport/nats/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the library's hooks ---------------------------------------------------------------------- */

natsStatus pump_attach(void **data, void *loop, natsConnection *nc, natsSock fd)
{
	struct nats_transport *t = loop;
	const int one = 1;

	(void)nc;
	*data = t;
	if (t->fd >= 0)
		close(t->fd);
	/* A dead peer is noticed at last; and the watchdog knows sockets in use by it. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	t->attached = t->fd >= 0;
	t->want_write = false;
	return t->attached ? NATS_OK : NATS_SYS_ERROR;
}

natsStatus pump_read(void *data, bool add)
{
	(void)data;
	(void)add;
	return NATS_OK;
}

natsStatus pump_write(void *data, bool add)
{
	struct nats_transport *t = data;

	t->want_write = add;
	return NATS_OK;
}

natsStatus pump_detach(void *data)
{
	struct nats_transport *t = data;

	t->attached = false;
	return NATS_OK;
}

/* ---- reading and writing -------------------------------------------------------------------------- */

bool pump_closed(const struct nats_transport *t)
{
	return !t->attached || natsConnection_IsClosed(t->nc);
}

bool pump(struct nats_transport *t, outbox_time wait)
{
	struct pollfd fds[2] = { { .fd = t->fd, .events = POLLIN },
				 { .fd = notes_fd(t->notes), .events = POLLIN } };
	struct timespec limit;
	int n;

	if (wait < 0)
		wait = 0;
	if (wait > OUTBOX_HOURS)
		wait = OUTBOX_HOURS;
	limit.tv_sec = wait / OUTBOX_SECONDS;
	limit.tv_nsec = wait % OUTBOX_SECONDS * 1000;
	if (t->want_write)
		fds[0].events |= POLLOUT;
	n = ppoll(fds, 2, &limit, NULL);
	if (n < 0)
		return errno == EINTR;
	if (fds[0].revents & POLLOUT)
		natsConnection_ProcessWriteEvent(t->nc);
	if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) && !pump_closed(t))
		natsConnection_ProcessReadEvent(t->nc);
	return n > 0;
}

void pump_guard(struct nats_transport *t, outbox_time deadline)
{
	if (t->watchdog)
		watchdog_arm(t->watchdog, t->fd, deadline - t->clock->mono(t->clock));
}

int pump_why(struct nats_transport *t, struct outbox_error *err)
{
	const char *text = NULL;
	natsStatus s = natsConnection_GetLastError(t->nc, &text);

	if (watchdog_disarm(t->watchdog))
		return outbox_fail_native(err, OUTBOX_ETIMEDOUT, (int)s,
					  "NATS %s: it fell silent in the middle of a TLS record",
					  t->endpoint.shown);
	return outbox_fail_native(err,
				  s == NATS_CONNECTION_AUTH_FAILED ? OUTBOX_EAUTH : OUTBOX_ECONN,
				  (int)s, "NATS %s: the connection ended: %s", t->endpoint.shown,
				  text && text[0] ? text : "closed by the server");
}

/* ---- requests and answers --------------------------------------------------------------------------- */

uint64_t pump_next_reply(struct nats_transport *t)
{
	char digits[24];
	size_t n = sizeof(digits);
	uint64_t rest = t->number;

	digits[--n] = '\0';
	do {
		digits[--n] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	memcpy(t->reply + t->reply_length, digits + n, sizeof(digits) - n);
	return t->number++;
}

bool pump_number(const struct nats_transport *t, natsMsg *msg, uint64_t *ret_number)
{
	const char *subject = natsMsg_GetSubject(msg);
	unsigned long long number;
	char *end;

	if (!subject || strncmp(subject, t->reply, t->reply_length) != 0)
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

void bin_empty(struct nats_transport *t)
{
	struct bin *bin = &t->bin;

	for (size_t i = 0; i < bin->count; i++)
		natsMsg_Destroy(bin->messages[i]);
	bin->count = bin->bytes = 0;
}

void bin_drop(struct nats_transport *t, natsMsg *msg)
{
	struct bin *bin = &t->bin;

	if (!msg)
		return;
	bin->messages[bin->count++] = msg;
	bin->bytes += (size_t)natsMsg_GetDataLength(msg);
	if (bin->count == BIN_MAX || bin->bytes >= BIN_BYTES_MAX)
		bin_empty(t);
}

static void free_text(char **text)
{
	free(*text);
}

/* The server told us something while we waited for an answer. */
static int refused(struct nats_transport *t, const char *subject, struct outbox_error *err)
{
	for (;;) {
		_cleanup_(free_text) char *note = notes_take(t->notes);

		if (!note)
			return OUTBOX_OK;
		if (strstr(note, subject))
			return outbox_fail(err, OUTBOX_EAUTH, "NATS %s: %s", t->endpoint.shown, note);
		settle_note(t, note);
	}
}

/* Take the answers that are there. OK with *ret_msg NULL: ours is not among them. */
static int find_answer(struct nats_transport *t, uint64_t number, natsMsg **ret_msg,
		       struct outbox_error *err)
{
	for (;;) {
		natsMsg *msg = NULL;
		natsStatus s = natsSubscription_NextMsg(&msg, t->answers, 0);
		uint64_t found;

		if (s == NATS_NO_RESPONDERS)
			return outbox_fail_native(err, OUTBOX_ENOTFOUND, 503, "nobody listens");
		if (s != NATS_OK)
			return OUTBOX_OK;
		if (pump_number(t, msg, &found) && found == number) {
			*ret_msg = msg;
			return OUTBOX_OK;
		}
		settle_message(t, msg);
		bin_drop(t, msg);
	}
}

static int await_answer(struct nats_transport *t, const char *subject, uint64_t number,
			outbox_time deadline, natsMsg **ret_msg, struct outbox_error *err)
{
	for (;;) {
		outbox_time left = deadline - t->clock->mono(t->clock);
		bool moved = left > 0 && pump(t, left);
		natsMsg *msg = NULL;
		int r = find_answer(t, number, &msg, err);

		if (r == OUTBOX_OK && msg) {
			*ret_msg = msg;
			return OUTBOX_OK;
		}
		if (r == OUTBOX_OK)
			r = refused(t, subject, err);
		if (r != OUTBOX_OK)
			return r;
		if (pump_closed(t))
			return pump_why(t, err);
		if (!moved)
			return outbox_fail(err, OUTBOX_ETIMEDOUT, "NATS %s: no answer to %s in time",
					   t->endpoint.shown, subject);
	}
}

int pump_request(struct nats_transport *t, const char *subject, const char *json,
		 outbox_time deadline, natsMsg **ret_msg, struct outbox_error *err)
{
	uint64_t number = pump_next_reply(t);
	natsStatus s =
		natsConnection_PublishRequest(t->nc, subject, t->reply, json, (int)strlen(json));

	if (s != NATS_OK)
		return pump_why(t, err);
	return await_answer(t, subject, number, deadline, ret_msg, err);
}
