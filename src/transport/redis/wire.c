/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hiredis parses the replies. Its sockets are not used: its write() raises SIGPIPE in the application's process,
 * its timeouts begin again with every byte, and its formatter copies each command twice. So the socket is
 * non-blocking and ours, and every wait is a poll() up to the deadline.
 *
 * A server is not trusted. What it says is read in pieces and given up when it becomes too long, and an array is
 * looked at before hiredis makes room for as many elements as it announces.
 */

#include "transport/redis/wire.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "transport/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_MAX ((size_t)1 << 30)
#define OUT_KEEP ((size_t)1 << 20)  /* one huge message is not remembered for ever */
#define REPLY_MAX ((size_t)1 << 20) /* INFO is a few KiB, all others less */
#define ARRAY_MAX 64                /* elements */

void redis_wire_init(struct redis_wire *wire, struct outbox_clock *clock)
{
	wire->fd = -1;
	wire->clock = clock;
	wire->out = (struct buf)BUF_INIT(OUT_MAX);
}

void redis_wire_close(struct redis_wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	if (wire->reader)
		redisReaderFree(wire->reader);
	wire->fd = -1;
	wire->reader = NULL;
	buf_clear(&wire->out);
	wire->sent = 0;
}

void redis_wire_deinit(struct redis_wire *wire)
{
	redis_wire_close(wire);
	buf_deinit(&wire->out);
}

/* ---- commands -------------------------------------------------------------------------------- */

void redis_wire_begin(struct buf *out, size_t n_arguments)
{
	buf_char(out, '*');
	buf_number(out, n_arguments);
}

void redis_wire_argument(struct buf *out, const char *prefix, const void *data, size_t size)
{
	size_t prefix_size = strlen(prefix);

	buf_append(out, "\r\n$", 3);
	buf_number(out, prefix_size + size);
	buf_append(out, "\r\n", 2);
	buf_append(out, prefix, prefix_size);
	buf_append(out, data, size);
}

void redis_wire_text(struct buf *out, const char *text)
{
	redis_wire_argument(out, "", text, strlen(text));
}

void redis_wire_number(struct buf *out, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)number);
	redis_wire_text(out, text);
}

void redis_wire_end(struct buf *out)
{
	buf_append(out, "\r\n", 2);
}

void redis_wire_command(struct redis_wire *wire, const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	redis_wire_begin(&wire->out, n);
	for (size_t i = 0; i < n; i++)
		redis_wire_text(&wire->out, words[i]);
	redis_wire_end(&wire->out);
}

bool redis_wire_flushed(const struct redis_wire *wire)
{
	return wire->sent == wire->out.size;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int lost(const struct redis_wire *wire, int number, struct outbox_error *err)
{
	char text[128];

	if (!number)
		return outbox_fail(err, OUTBOX_ECONN, "%s: the server hung up", wire->shown);
	return outbox_fail_native(err, OUTBOX_ECONN, number, "%s: the connection broke: %s",
				  wire->shown, strerror_r(number, text, sizeof(text)));
}

int redis_wire_send(struct redis_wire *wire, struct outbox_error *err)
{
	if (wire->out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	while (!redis_wire_flushed(wire)) {
		ssize_t n = send(wire->fd, wire->out.data + wire->sent, wire->out.size - wire->sent,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return OUTBOX_OK;
		if (n < 0)
			return lost(wire, errno, err);
		wire->sent += (size_t)n;
	}
	if (wire->out.capacity > OUT_KEEP)
		buf_deinit(&wire->out);
	buf_clear(&wire->out);
	wire->sent = 0;
	return OUTBOX_OK;
}

int redis_wire_wait(struct redis_wire *wire, outbox_time deadline, bool *ret_readable,
		    struct outbox_error *err)
{
	short events = (short)(redis_wire_flushed(wire) ? POLLIN : POLLIN | POLLOUT), ready;
	int n = socket_wait(wire->fd, events, wire->clock, deadline, &ready);

	if (n < 0)
		return lost(wire, errno, err);
	if (n == 0)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", wire->shown);
	*ret_readable = ready & ~POLLOUT;
	return OUTBOX_OK;
}

int redis_wire_receive(struct redis_wire *wire, bool *ret_any, struct outbox_error *err)
{
	char data[16384];
	ssize_t n;

	do
		n = recv(wire->fd, data, sizeof(data), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		*ret_any = false;
		return OUTBOX_OK;
	}
	if (n <= 0)
		return lost(wire, n < 0 ? errno : 0, err);
	if (redisReaderFeed(wire->reader, data, (size_t)n) != REDIS_OK)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (wire->reader->len - wire->reader->pos > REPLY_MAX)
		return outbox_fail(err, OUTBOX_ECONN, "%s: the server's answer does not end",
				   wire->shown);
	*ret_any = true;
	return OUTBOX_OK;
}

bool redis_wire_in_reply(const struct redis_wire *wire)
{
	/* hiredis takes the first byte of a reply before it has the rest. */
	return wire->reader->len > wire->reader->pos || wire->reader->ridx >= 0;
}

int redis_wire_check_quiet(struct redis_wire *wire, struct outbox_error *err)
{
	char byte;
	ssize_t n = recv(wire->fd, &byte, 1, MSG_PEEK);

	if (n > 0 || redis_wire_in_reply(wire))
		return outbox_fail(err, OUTBOX_ECONN, "%s: the server sent something unexpected",
				   wire->shown);
	if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		return lost(wire, n ? errno : 0, err);
	return OUTBOX_OK;
}

/* ---- replies --------------------------------------------------------------------------------- */

static int not_redis(const struct redis_wire *wire, const char *what, struct outbox_error *err)
{
	char shown[120];

	return outbox_fail(err, OUTBOX_ECONN, "%s: the server does not speak Redis: %s",
			   wire->shown, text_shown(shown, sizeof(shown), what));
}

/*
 * No array of so many elements that making room for it hurts. Looks at whole lines, before hiredis sees any of
 * them: it takes the '*' of a line that has not come yet.
 */
static bool arrays_are_small(const struct redis_wire *wire)
{
	const char *at = wire->reader->buf + wire->reader->pos;
	const char *end = wire->reader->buf + wire->reader->len, *next;

	for (; (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
		long elements = 0;

		if (*at != '*')
			continue;
		for (at++; at < next && *at >= '0' && *at <= '9' && elements <= ARRAY_MAX; at++)
			elements = elements * 10 + *at - '0';
		if (elements > ARRAY_MAX || *at != '\r')
			return false;
	}
	return true;
}

int redis_wire_next(struct redis_wire *wire, bool arrays, redisReply **ret_reply,
		    struct outbox_error *err)
{
	redisReader *reader = wire->reader;
	void *reply = NULL;

	if (reader->len == reader->pos || (arrays && reader->buf[reader->len - 1] != '\n')) {
		*ret_reply = NULL;
		return OUTBOX_OK;
	}
	if (arrays ? !arrays_are_small(wire) : reader->ridx < 0 && reader->buf[reader->pos] == '*')
		return not_redis(wire, "an array that was not asked for", err);
	if (redisReaderGetReply(reader, &reply) != REDIS_OK)
		return not_redis(wire, reader->errstr, err);
	*ret_reply = reply;
	return OUTBOX_OK;
}

int redis_wire_ask(struct redis_wire *wire, bool arrays, outbox_time deadline,
		   redisReply **ret_reply, struct outbox_error *err)
{
	redisReply *reply = NULL;

	for (;;) {
		bool readable = false, any;
		int r = redis_wire_send(wire, err);

		if (!r)
			r = redis_wire_wait(wire, deadline, &readable, err);
		if (!r && readable)
			r = redis_wire_receive(wire, &any, err);
		if (!r)
			r = redis_wire_next(wire, arrays, &reply, err);
		if (r)
			return r;
		if (reply) {
			*ret_reply = reply;
			return OUTBOX_OK;
		}
	}
}
