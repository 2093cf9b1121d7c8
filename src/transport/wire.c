/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/wire.h"

#include "base/text.h"
#include "transport/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#define OUT_MAX ((size_t)1 << 30)
#define IN_MAX ((size_t)160 << 20)
#define KEEP ((size_t)1 << 20) /* one huge message is not remembered for ever */
#define READS_AT_ONCE 16

void wire_init(struct wire *wire, struct outbox_clock *clock)
{
	*wire = (struct wire){ .fd = -1, .clock = clock, .ended = true };
	wire->out = wire->sealed = (struct buf)BUF_INIT(OUT_MAX);
	wire->in = (struct buf)BUF_INIT(IN_MAX);
}

static void empty(struct buf *buf)
{
	if (buf->capacity > KEEP)
		buf_deinit(buf);
	buf_clear(buf);
}

void wire_close(struct wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	SSL_free(wire->tls);
	wire->fd = -1;
	wire->tls = NULL;
	wire->secured = false;
	wire->sent = wire->taken = 0;
	wire->ended = true;
	empty(&wire->out);
	empty(&wire->sealed);
	empty(&wire->in);
}

void wire_deinit(struct wire *wire)
{
	wire_close(wire);
	buf_deinit(&wire->out);
	buf_deinit(&wire->sealed);
	buf_deinit(&wire->in);
}

int wire_connect(struct wire *wire, const char *title, const struct address *address,
		 outbox_time deadline, struct outbox_error *err)
{
	int r;

	wire_close(wire);
	snprintf(wire->shown, sizeof(wire->shown), "%s %s:%d", title, address->host, address->port);
	r = socket_connect(address, wire->shown, wire->clock, deadline, &wire->fd, err);
	wire->ended = r != OUTBOX_OK;
	wire->status = OUTBOX_OK;
	wire->why[0] = '\0';
	return r;
}

void wire_end(struct wire *wire, int status, const char *why)
{
	if (wire->ended)
		return;
	wire->ended = true;
	wire->status = status;
	text_shown(wire->why, sizeof(wire->why), why);
}

static void end_by_errno(struct wire *wire, int number)
{
	char text[128];

	wire_end(wire, OUTBOX_ECONN, strerror_r(number, text, sizeof(text)));
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

size_t wire_unsent(const struct wire *wire)
{
	return wire->out.size + wire->sealed.size - wire->sent;
}

/* Where the bytes lie that the socket takes. */
static struct buf *to_send(struct wire *wire)
{
	return wire->tls ? &wire->sealed : &wire->out;
}

/*
 * Everything into records, which lie in memory until the socket takes them. All or nothing: when TLS first has to read (the
 * rest of a session ticket), everything is for later.
 */
static void seal(struct wire *wire)
{
	char record[16384];
	int n = 1;

	ERR_clear_error();
	if (wire->out.size > 0)
		n = SSL_write(wire->tls, wire->out.data, (int)wire->out.size);
	if (n > 0)
		empty(&wire->out);
	else if (SSL_get_error(wire->tls, n) != SSL_ERROR_WANT_READ)
		wire_end(wire, OUTBOX_ECONN, tls_error());
	while ((n = BIO_read(SSL_get_wbio(wire->tls), record, sizeof(record))) > 0)
		buf_append(&wire->sealed, record, (size_t)n);
}

/* Nothing more can be sent; the answers to what was are perhaps already here. */
static void end_by_sending(struct wire *wire, int number)
{
	wire_receive(wire);
	end_by_errno(wire, number);
}

void wire_send(struct wire *wire)
{
	struct buf *buf = to_send(wire);

	/* Half a message is not sealed: what comes behind it would be taken for its rest. */
	if (wire->tls && !wire->out.failed)
		seal(wire);
	if (wire->out.failed || wire->sealed.failed)
		wire_end(wire, OUTBOX_ENOMEM, "out of memory");
	while (!wire->ended && wire->sent < buf->size) {
		ssize_t n =
			send(wire->fd, buf->data + wire->sent, buf->size - wire->sent, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0 && errno != EINTR)
			end_by_sending(wire, errno);
		if (n > 0)
			wire->sent += (size_t)n;
	}
	empty(buf);
	wire->sent = 0;
}

void wire_unseal(struct wire *wire)
{
	char plain[16384];
	int n;

	if (!wire->secured)
		return;
	ERR_clear_error(); /* the thread's, and perhaps the application's */
	while ((n = SSL_read(wire->tls, plain, sizeof(plain))) > 0)
		buf_append(&wire->in, plain, (size_t)n);
	n = SSL_get_error(wire->tls, n);
	if (n == SSL_ERROR_ZERO_RETURN)
		wire_end(wire, OUTBOX_ECONN, "closed by the server");
	else if (n != SSL_ERROR_WANT_READ && n != SSL_ERROR_WANT_WRITE)
		wire_end(wire, OUTBOX_EAUTH, tls_error());
}

static void forget_taken(struct wire *wire)
{
	size_t rest = wire->in.size - wire->taken;

	if (wire->taken == 0)
		return;
	if (rest == 0) {
		empty(&wire->in);
	} else {
		memmove(wire->in.data, wire->in.data + wire->taken, rest + 1);
		wire->in.size = rest;
	}
	wire->taken = 0;
}

static void take_records(struct wire *wire, const char *data, int size)
{
	if (BIO_write(SSL_get_rbio(wire->tls), data, size) != size)
		wire_end(wire, OUTBOX_ENOMEM, "out of memory");
}

void wire_receive(struct wire *wire)
{
	char data[65536];

	forget_taken(wire);
	for (int i = 0; i < READS_AT_ONCE && !wire->ended; i++) {
		ssize_t n = recv(wire->fd, data, sizeof(data), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0)
			end_by_errno(wire, errno);
		else if (n == 0)
			wire_end(wire, OUTBOX_ECONN, "closed by the server");
		else if (wire->tls)
			take_records(wire, data, (int)n);
		else
			buf_append(&wire->in, data, (size_t)n);
		if (wire->tls)
			wire_unseal(wire);
		if (wire->in.failed)
			wire_end(wire, OUTBOX_EPROTO, "it says more than can be kept");
		if ((size_t)n < sizeof(data))
			return;
	}
}

bool wire_wait(struct wire *wire, outbox_time wait)
{
	struct pollfd fd = { .fd = wire->fd, .events = POLLIN };
	struct timespec limit;
	int n;

	if (wire->fd < 0)
		return false;
	wait = wait < 0 ? 0 : wait > OUTBOX_HOURS ? OUTBOX_HOURS : wait;
	limit = (struct timespec){ .tv_sec = wait / OUTBOX_SECONDS,
				   .tv_nsec = wait % OUTBOX_SECONDS * 1000 };
	wire_send(wire);
	if (wire->ended)
		return true;
	if (wire->sent < to_send(wire)->size)
		fd.events |= POLLOUT;
	n = ppoll(&fd, 1, &limit, NULL);
	if (n < 0)
		return errno == EINTR;
	if (fd.revents & POLLOUT)
		wire_send(wire);
	if (fd.revents & ~POLLOUT)
		wire_receive(wire);
	return n > 0;
}
