/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/archive_read.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
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
	int number = errno;
	char shown[200];

	return outbox_fail_native(err, number == ENOENT ? OUTBOX_ENOTFOUND : OUTBOX_ECONN, number,
				  "archive %s: %s", text_shown(shown, sizeof(shown), path),
				  number == ENOENT ? "there is no such file" : strerror(number));
}

static int damaged(const struct archive_reader *reader, const char *what, struct outbox_error *err)
{
	char shown[200];

	return outbox_fail(err, OUTBOX_EPROTO,
			   "archive %s: %s behind line %lld, at byte %lld of the file",
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
static bool take(struct archive_reader *reader)
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
		whole = take(reader);
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
