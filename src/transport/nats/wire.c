/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not libnats: its connect() waits without end for the other side's part of a TLS handshake, for the rest of a TLS
 * record and for the first PONG, and keeps its socket to itself meanwhile; there is nothing that a deadline could shut
 * down. Here the socket is ours from the beginning, so no descriptor of the application's is ever looked at.
 *
 * A server is not trusted: a line and a payload have limits, and what is neither ends the connection.
 */

#include "transport/nats/wire.h"

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
#define PAYLOAD_MAX \
	((size_t)100 << 20)  /* a server's limit is 64 MiB, and an answer may hold that in base64 */
#define LINE_MAX_BYTES 65536 /* INFO names all servers of a cluster */
#define READS_AT_ONCE 16
#define WORDS_MAX 5

void nats_wire_init(struct nats_wire *wire, struct outbox_clock *clock)
{
	*wire = (struct nats_wire){ .fd = -1, .clock = clock, .ended = true };
	wire->out = wire->sealed = (struct buf)BUF_INIT(OUT_MAX);
	wire->in = (struct buf)BUF_INIT(IN_MAX);
}

static void empty(struct buf *buf)
{
	if (buf->capacity > KEEP)
		buf_deinit(buf);
	buf_clear(buf);
}

void nats_wire_close(struct nats_wire *wire)
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

void nats_wire_deinit(struct nats_wire *wire)
{
	nats_wire_close(wire);
	buf_deinit(&wire->out);
	buf_deinit(&wire->sealed);
	buf_deinit(&wire->in);
}

int nats_wire_connect(struct nats_wire *wire, const struct address *address, outbox_time deadline,
		      struct outbox_error *err)
{
	int r;

	nats_wire_close(wire);
	snprintf(wire->shown, sizeof(wire->shown), "NATS %s:%d", address->host, address->port);
	r = socket_connect(address, wire->shown, wire->clock, deadline, &wire->fd, err);
	wire->ended = r != OUTBOX_OK;
	wire->status = OUTBOX_OK;
	wire->why[0] = '\0';
	return r;
}

void nats_wire_end(struct nats_wire *wire, int status, const char *why)
{
	if (wire->ended)
		return;
	wire->ended = true;
	wire->status = status;
	text_shown(wire->why, sizeof(wire->why), why);
}

static void end_by_errno(struct nats_wire *wire, int number)
{
	char text[128];

	nats_wire_end(wire, OUTBOX_ECONN, strerror_r(number, text, sizeof(text)));
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

size_t nats_wire_unsent(const struct nats_wire *wire)
{
	return wire->out.size + wire->sealed.size - wire->sent;
}

/* Where the bytes lie that the socket takes. */
static struct buf *to_send(struct nats_wire *wire)
{
	return wire->tls ? &wire->sealed : &wire->out;
}

/*
 * Everything into records, which lie in memory until the socket takes them. All or nothing: when TLS first has to read (the
 * rest of a session ticket), everything is for later.
 */
static void seal(struct nats_wire *wire)
{
	char record[16384];
	int n = 1;

	ERR_clear_error();
	if (wire->out.size > 0)
		n = SSL_write(wire->tls, wire->out.data, (int)wire->out.size);
	if (n > 0)
		empty(&wire->out);
	else if (SSL_get_error(wire->tls, n) != SSL_ERROR_WANT_READ)
		nats_wire_end(wire, OUTBOX_ECONN, nats_tls_error());
	while ((n = BIO_read(SSL_get_wbio(wire->tls), record, sizeof(record))) > 0)
		buf_append(&wire->sealed, record, (size_t)n);
}

/* Nothing more can be sent; the answers to what was are perhaps already here. */
static void end_by_sending(struct nats_wire *wire, int number)
{
	nats_wire_receive(wire);
	end_by_errno(wire, number);
}

void nats_wire_send(struct nats_wire *wire)
{
	struct buf *buf = to_send(wire);

	/* Half a message is not sealed: what comes behind it would be taken for its rest. */
	if (wire->tls && !wire->out.failed)
		seal(wire);
	if (wire->out.failed || wire->sealed.failed)
		nats_wire_end(wire, OUTBOX_ENOMEM, "out of memory");
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

void nats_wire_unseal(struct nats_wire *wire)
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
		nats_wire_end(wire, OUTBOX_ECONN, "closed by the server");
	else if (n != SSL_ERROR_WANT_READ && n != SSL_ERROR_WANT_WRITE)
		nats_wire_end(wire, OUTBOX_EAUTH, nats_tls_error());
}

static void forget_taken(struct nats_wire *wire)
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

static void take_records(struct nats_wire *wire, const char *data, int size)
{
	if (BIO_write(SSL_get_rbio(wire->tls), data, size) != size)
		nats_wire_end(wire, OUTBOX_ENOMEM, "out of memory");
}

void nats_wire_receive(struct nats_wire *wire)
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
			nats_wire_end(wire, OUTBOX_ECONN, "closed by the server");
		else if (wire->tls)
			take_records(wire, data, (int)n);
		else
			buf_append(&wire->in, data, (size_t)n);
		if (wire->tls)
			nats_wire_unseal(wire);
		if (wire->in.failed)
			nats_wire_end(wire, OUTBOX_EPROTO, "it says more than can be kept");
		if ((size_t)n < sizeof(data))
			return;
	}
}

bool nats_wire_wait(struct nats_wire *wire, outbox_time wait)
{
	struct pollfd fd = { .fd = wire->fd, .events = POLLIN };
	struct timespec limit;
	int n;

	if (wire->fd < 0)
		return false;
	wait = wait < 0 ? 0 : wait > OUTBOX_HOURS ? OUTBOX_HOURS : wait;
	limit = (struct timespec){ .tv_sec = wait / OUTBOX_SECONDS,
				   .tv_nsec = wait % OUTBOX_SECONDS * 1000 };
	nats_wire_send(wire);
	if (wire->ended)
		return true;
	if (wire->sent < to_send(wire)->size)
		fd.events |= POLLOUT;
	n = ppoll(&fd, 1, &limit, NULL);
	if (n < 0)
		return errno == EINTR;
	if (fd.revents & POLLOUT)
		nats_wire_send(wire);
	if (fd.revents & ~POLLOUT)
		nats_wire_receive(wire);
	return n > 0;
}

/* ---- frames ----------------------------------------------------------------------------------------- */

struct words {
	const char *begin[WORDS_MAX];
	size_t length[WORDS_MAX];
	size_t count;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* More words than any frame has are none. */
static struct words split_words(const char *at, const char *end)
{
	struct words words = { .count = 0 };

	for (;;) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end)
			return words;
		if (words.count == WORDS_MAX)
			return (struct words){ .count = 0 };
		words.begin[words.count] = at;
		while (at < end && !is_blank(*at))
			at++;
		words.length[words.count] = (size_t)(at - words.begin[words.count]);
		words.count++;
	}
}

static bool parse_number(const struct words *words, size_t i, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t k = 0; k < words->length[i]; k++) {
		char c = words->begin[i][k];

		/* A digit may be more than max itself. */
		if (c < '0' || c > '9' || number > max / 10 ||
		    (uint64_t)(c - '0') > max - number * 10)
			return false;
		number = number * 10 + (uint64_t)(c - '0');
	}
	*ret_number = number;
	return words->length[i] > 0;
}

static bool end_by_nonsense(struct nats_wire *wire, const char *line)
{
	char shown[100], why[160];

	snprintf(why, sizeof(why), "this is not the NATS protocol: %s",
		 text_shown(shown, sizeof(shown), line));
	nats_wire_end(wire, OUTBOX_EPROTO, why);
	return false;
}

/* The number behind "NATS/1.0 ", where there is one and no payload. */
static int status_of(const char *headers, size_t size, size_t payload)
{
	static const char version[] = "NATS/1.0 ";

	if (payload > 0 || size < sizeof(version) + 2 ||
	    memcmp(headers, version, sizeof(version) - 1) != 0)
		return 0;
	return (int)strtol(headers + sizeof(version) - 1, NULL, 10);
}

/* MSG subject sid [reply] size, HMSG subject sid [reply] headers size; then the payload. False: not all there, or nonsense. */
static bool take_message(struct nats_wire *wire, char *line, char *end, bool has_headers,
			 struct nats_frame *ret_frame)
{
	struct words words = split_words(line + (has_headers ? 5 : 4), end);
	size_t least = has_headers ? 4 : 3;
	char *payload = end + (*end == '\r' ? 2 : 1);
	size_t there = wire->in.size - (size_t)(payload - wire->in.data);
	uint64_t sid, size, headers = 0;

	if (words.count < least || words.count > least + 1 ||
	    !parse_number(&words, 1, UINT64_MAX, &sid) ||
	    !parse_number(&words, words.count - 1, PAYLOAD_MAX, &size) ||
	    (has_headers && !parse_number(&words, words.count - 2, size, &headers)))
		return end_by_nonsense(wire, line);
	if (there < size + 2)
		return false;
	if (memcmp(payload + size, "\r\n", 2) != 0)
		return end_by_nonsense(wire, "a payload of another length than announced");
	*ret_frame =
		(struct nats_frame){ .kind = FRAME_MESSAGE, .text = words.begin[0], .sid = sid };
	ret_frame->data = payload + headers;
	ret_frame->size = (size_t)(size - headers);
	ret_frame->status = status_of(payload, headers, ret_frame->size);
	line[(size_t)(words.begin[0] - line) + words.length[0]] = '\0';
	payload[size] = '\0';
	wire->taken = (size_t)(payload - wire->in.data) + (size_t)size + 2;
	return true;
}

/* 'Authorization Violation' without the quotes. */
static char *unquote(char *text)
{
	size_t length;

	text += strspn(text, " '");
	length = strlen(text);
	while (length > 0 && (text[length - 1] == '\'' || text[length - 1] == ' '))
		text[--length] = '\0';
	return text;
}

static bool begins(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

bool nats_wire_next(struct nats_wire *wire, struct nats_frame *ret_frame)
{
	static const struct {
		const char *word;
		enum nats_frame_kind kind;
	} kinds[] = { { "PING", FRAME_PING },
		      { "PONG", FRAME_PONG },
		      { "+OK", FRAME_OK },
		      { "INFO ", FRAME_INFO },
		      { "-ERR", FRAME_ERROR } };
	size_t there = wire->in.size - wire->taken;
	char *line, *end;

	if (there == 0)
		return false;
	line = wire->in.data + wire->taken;
	end = memchr(line, '\n', there);
	if (!end)
		return there > LINE_MAX_BYTES ? end_by_nonsense(wire, line) : false;
	if (end > line && end[-1] == '\r')
		end--;
	if (begins(line, "MSG ") || begins(line, "HMSG "))
		return take_message(wire, line, end, *line == 'H', ret_frame);
	wire->taken = (size_t)(end - wire->in.data) + (*end == '\r' ? 2 : 1);
	*end = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (begins(line, kinds[i].word)) {
			*ret_frame = (struct nats_frame){ .kind = kinds[i].kind };
			ret_frame->text = unquote(line + strlen(kinds[i].word));
			return true;
		}
	return end_by_nonsense(wire, line);
}
