/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/archive_reader.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/json.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define MAGIC "\x28\xb5\x2f\xfd"

struct archive_reader {
	char *path;
	int fd;
	bool plain; /* not compressed */
	bool ended; /* the file is read */
	ZSTD_DCtx *zstd;
	char *in, *out;
	size_t in_size, in_at, in_room, out_size, out_at, out_room;
	size_t left;   /* of the frame, as zstd says; 0: a frame is whole */
	int64_t bytes; /* of the file, read */
	int64_t lines;
	struct buf line;
};

static int no_file(const char *path, struct outbox_error *err)
{
	char shown[200], text[120];
	int number = errno;

	return outbox_fail_native(err, number == ENOENT ? OUTBOX_ENOTFOUND : OUTBOX_ECONN, number,
				  "archive %s: %s", text_shown(shown, sizeof(shown), path),
				  number == ENOENT ? "there is no such file"
						   : strerror_r(number, text, sizeof(text)));
}

static int damaged(const struct archive_reader *reader, const char *what, struct outbox_error *err)
{
	char shown[200];

	return outbox_fail(err, OUTBOX_EPROTO,
			   "archive %s: %s after line %lld, at byte %lld of the file",
			   text_shown(shown, sizeof(shown), reader->path), what,
			   (long long)reader->lines,
			   (long long)(reader->bytes - (int64_t)(reader->in_size - reader->in_at)));
}

static int fill(struct archive_reader *reader, struct outbox_error *err)
{
	ssize_t n;

	do
		n = read(reader->fd, reader->in, reader->in_room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return no_file(reader->path, err);
	reader->in_at = 0;
	reader->in_size = (size_t)n;
	reader->bytes += n;
	reader->ended = n == 0;
	return OUTBOX_OK;
}

/* More bytes of text into out; none: the end. */
static int more(struct archive_reader *reader, struct outbox_error *err)
{
	int r = reader->in_at == reader->in_size && !reader->ended ? fill(reader, err) : OUTBOX_OK;
	ZSTD_inBuffer in = { reader->in, reader->in_size, reader->in_at };
	ZSTD_outBuffer out = { reader->out, reader->out_room, 0 };
	size_t left;

	reader->out_at = reader->out_size = 0;
	if (r)
		return r;
	if (reader->plain) {
		memcpy(reader->out, reader->in, reader->in_size);
		reader->out_size = reader->in_size;
		reader->in_at = reader->in_size;
		return OUTBOX_OK;
	}
	if (reader->ended && reader->left == 0)
		return OUTBOX_OK;
	left = ZSTD_decompressStream(reader->zstd, &out, &in);
	if (ZSTD_isError(left))
		return damaged(reader, "damaged", err);
	if (reader->ended && out.pos == 0)
		return damaged(reader, "cut off", err);
	reader->left = left;
	reader->in_at = in.pos;
	reader->out_size = out.pos;
	return OUTBOX_OK;
}

static bool at_end(const struct archive_reader *reader)
{
	return reader->ended && reader->out_at == reader->out_size &&
	       (reader->plain || reader->left == 0);
}

/* A line's end in what is there: it is whole. */
static bool collect_line(struct archive_reader *reader)
{
	const char *from = reader->out + reader->out_at;
	size_t n = reader->out_size - reader->out_at;
	const char *end = n ? memchr(from, '\n', n) : NULL;

	if (end)
		n = (size_t)(end - from);
	if (n)
		buf_append(&reader->line, from, n);
	reader->out_at += n + (end != NULL);
	return end != NULL;
}

int archive_next(struct archive_reader *reader, const char **ret_line, size_t *ret_size,
		 struct outbox_error *err)
{
	bool whole = false;
	int r = OUTBOX_OK;

	buf_clear(&reader->line);
	while (r == OUTBOX_OK && !whole && !at_end(reader)) {
		whole = collect_line(reader);
		if (!whole)
			r = more(reader, err);
		if (reader->line.failed)
			return damaged(reader, "a line that is too long", err);
	}
	if (r)
		return r;
	*ret_line = NULL;
	if (whole || reader->line.size) {
		reader->lines++;
		*ret_line = buf_str(&reader->line);
		*ret_size = reader->line.size;
	}
	return OUTBOX_OK;
}

int64_t archive_lines(const struct archive_reader *reader)
{
	return reader->lines;
}

static int begin(struct archive_reader *reader, const char *path, struct outbox_error *err)
{
	int r;

	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (reader->fd < 0)
		return no_file(path, err);
	reader->path = strdup(path);
	reader->zstd = ZSTD_createDCtx();
	/* the same room for both: plain lines are copied */
	reader->in_room = reader->out_room = ZSTD_DStreamOutSize();
	reader->in = malloc(reader->in_room);
	reader->out = malloc(reader->out_room);
	if (!reader->path || !reader->zstd || !reader->in || !reader->out)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = fill(reader, err);
	if (r)
		return r;
	reader->plain = reader->in_size < 4 || memcmp(reader->in, MAGIC, 4) != 0;
	if (reader->plain && reader->in_size && reader->in[0] != '{')
		return damaged(reader, "neither zstd nor JSON lines", err);
	return OUTBOX_OK;
}

int archive_open(const char *path, struct archive_reader **ret_reader, struct outbox_error *err)
{
	struct archive_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	reader->fd = -1;
	reader->line = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	r = begin(reader, path, err);
	if (r) {
		archive_close(reader);
		return r;
	}
	*ret_reader = reader;
	return OUTBOX_OK;
}

struct archive_reader *archive_close(struct archive_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->fd >= 0)
		close(reader->fd);
	ZSTD_freeDCtx(reader->zstd);
	buf_deinit(&reader->line);
	free(reader->in);
	free(reader->out);
	free(reader->path);
	free(reader);
	return NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

/*
 * A line of an archive is a CloudEvent as outbox_encode() writes it; this is the way back. Attributes that
 * are not ours were headers. What a payload of JSON holds is taken as it stands there, never as values.
 */
struct line {
	struct outbox_arena *arena;
	struct outbox_message message;
	struct json_piece data, base64, time;
	struct outbox_header headers[OUTBOX_HEADERS_MAX];
	size_t n_headers;
	const char *kind, *others; /* others: the headers that are no attributes, as JSON */
	int64_t sequence;          /* 0: it has none */
	bool malformed;
};

static int not_ours(struct outbox_error *err, const char *name, const char *why)
{
	char shown[80];

	return outbox_fail(err, OUTBOX_EPROTO, "\"%s\": %s", text_shown(shown, sizeof(shown), name),
			   why);
}

static int read_text(const struct line *line, const char *name, const struct json_piece *value,
		     const char **ret_text, struct outbox_error *err)
{
	char *text = outbox_arena_alloc(line->arena, value->size + 1);
	const char *why = "must be a string";

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (value->at[0] == '"')
		why = json_string_read(value, text);
	if (why)
		return not_ours(err, name, why);
	*ret_text = text;
	return OUTBOX_OK;
}

static bool piece_is(const struct json_piece *piece, const char *text)
{
	return piece->size == strlen(text) && memcmp(piece->at, text, piece->size) == 0;
}

/* A number, which is in quotes or not; 0: it is not one of ours. */
static int64_t read_number(const struct json_piece *value, bool quoted, int64_t min, int64_t max)
{
	int64_t number;
	char text[24];

	if ((value->at[0] == '"') != quoted || value->size >= sizeof(text))
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)value->size - 2 * quoted, value->at + quoted);
	return number_parse("", text, min, max, &number, NULL) ? 0 : number;
}

/* The members that are no plain texts of the message. False: it is none of these. */
static bool special(struct line *line, const char *name, const struct json_piece *value)
{
	if (strcmp(name, "data") == 0)
		line->data = *value;
	else if (strcmp(name, "data_base64") == 0)
		line->base64 = *value;
	else if (strcmp(name, "outboxpublished") == 0 && value->at[0] != '"')
		line->message.published = piece_is(value, "true");
	else if (strcmp(name, "outboxpriority") == 0 && value->at[0] != '"')
		line->message.priority = (int)read_number(value, false, -100, 100);
	else if (strcmp(name, "outboxmalformed") == 0)
		line->malformed = true;
	else if (strcmp(name, "sequence") == 0)
		line->sequence = read_number(value, true, 1, INT64_MAX);
	else
		return strcmp(name, "specversion") == 0;
	return true;
}

static int take_member(struct line *line, const char *name, const struct json_piece *value,
		       struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *time = NULL;
	const struct {
		const char *name, **text;
	} texts[] = {
		{ "id", &m->id },
		{ "source", &m->source },
		{ "type", &m->type },
		{ "subject", &m->subject },
		{ "time", &time },
		{ "partitionkey", &m->key },
		{ "correlationid", &m->correlation_id },
		{ "causationid", &m->causation_id },
		{ "traceparent", &m->traceparent },
		{ "kind", &line->kind },
		{ "topic", &m->topic },
		{ "datacontenttype", &m->content_type },
		{ "outboxheaders", &line->others },
	};
	int r;

	if (special(line, name, value))
		return OUTBOX_OK;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].name, name) != 0)
			continue;
		r = read_text(line, name, value, texts[i].text, err);
		if (r == OUTBOX_OK && time && time_parse(time, 0, &m->event_time, NULL))
			return not_ours(err, name, "is not a time");
		return r;
	}
	if (line->n_headers == OUTBOX_HEADERS_MAX)
		return not_ours(err, name, "more attributes than a message has headers");
	line->headers[line->n_headers].name = outbox_arena_text(line->arena, name);
	r = read_text(line, name, value, &line->headers[line->n_headers].value, err);
	line->n_headers++;
	return r;
}

static int take_data(struct line *line, struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *text = NULL;
	void *bytes;
	int r;

	if (line->base64.at) {
		r = read_text(line, "data_base64", &line->base64, &text, err);
		bytes = r ? NULL : outbox_arena_alloc(line->arena, strlen(text) + 1);
		if (r || !bytes)
			return r ? r : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		m->data = bytes;
		return base64_decode(text, strlen(text), bytes, &m->size)
			       ? OUTBOX_OK
			       : not_ours(err, "data_base64", "is not base64");
	}
	if (!line->data.at)
		return OUTBOX_OK;
	if (!m->content_type || content_type_is_json(m->content_type)) {
		m->data = outbox_arena_copy(line->arena, line->data.at, line->data.size);
		m->size = line->data.size;
		return m->data ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = read_text(line, "data", &line->data, &text, err);
	m->data = text;
	m->size = text ? strlen(text) : 0;
	return r;
}

static int take_headers(struct line *line, struct outbox_error *err)
{
	struct outbox_header *others = NULL, *all;
	size_t n = 0;
	int r = line->others ? headers_parse(line->others, line->arena, &others, &n, err)
			     : OUTBOX_OK;

	if (r)
		return outbox_wrap(err, "outboxheaders");
	if (n + line->n_headers == 0)
		return OUTBOX_OK;
	all = outbox_arena_alloc(line->arena, (n + line->n_headers) * sizeof(*all));
	if (!all)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	memcpy(all, line->headers, line->n_headers * sizeof(*all));
	if (n)
		memcpy(all + line->n_headers, others, n * sizeof(*all));
	line->message.headers = all;
	line->message.n_headers = n + line->n_headers;
	return OUTBOX_OK;
}

int archive_message(const char *text, size_t size, struct outbox_arena *arena,
		    struct outbox_claimed *ret_found, bool *ret_malformed, struct outbox_error *err)
{
	struct line line = { .arena = arena, .message = OUTBOX_MESSAGE_INIT };
	struct json_members members;
	struct json_piece name, value;
	char name_text[600];
	int r = json_text_check(text, size, err);

	if (r)
		return outbox_fail(err, OUTBOX_EPROTO, "not a JSON line");
	if (!json_members_begin(&members, text, size))
		return outbox_fail(err, OUTBOX_EPROTO, "not a JSON object");
	while (r == OUTBOX_OK && json_members_next(&members, &name, &value)) {
		if (name.size >= sizeof(name_text) || json_string_read(&name, name_text))
			return outbox_fail(err, OUTBOX_EPROTO, "a name that no attribute can have");
		r = take_member(&line, name_text, &value, err);
	}
	if (r == OUTBOX_OK)
		r = take_data(&line, err);
	if (r == OUTBOX_OK)
		r = take_headers(&line, err);
	if (r)
		return r;
	if (!line.message.id || !line.message.type)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "no id or no type: not a message that outbox archived");
	line.message.kind = kind_parse(line.kind, OUTBOX_KIND_EVENT);
	ret_found->message = line.message;
	ret_found->seq = line.sequence;
	*ret_malformed = line.malformed;
	return OUTBOX_OK;
}
