/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not libnats: its connect() waits without end for the other side's part of a TLS handshake, for the rest of a TLS
 * record and for the first PONG, and keeps its socket to itself meanwhile; there is nothing that a deadline could shut
 * down. Here the socket is ours from the beginning, so no descriptor of the application's is ever looked at.
 *
 * A server is not trusted: a line and a payload have limits, and what is neither ends the connection.
 */

#include "transport/nats/frames.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX \
	((size_t)100 << 20)  /* a server's limit is 64 MiB, and an answer may hold that in base64 */
#define LINE_MAX_BYTES 65536 /* INFO names all servers of a cluster */
#define WORDS_MAX 5

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

static bool end_by_nonsense(struct wire *wire, const char *line)
{
	char shown[100], why[160];

	snprintf(why, sizeof(why), "this is not the NATS protocol: %s",
		 text_shown(shown, sizeof(shown), line));
	wire_end(wire, OUTBOX_EPROTO, why);
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
static bool take_message(struct wire *wire, char *line, char *end, bool has_headers,
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

bool nats_frame_next(struct wire *wire, struct nats_frame *ret_frame)
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
