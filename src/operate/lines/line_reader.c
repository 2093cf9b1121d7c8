/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is read in pieces; a line is put together in a buffer with a limit, so that a file without line breaks cannot
 * take all memory. What is to be read twice and cannot (a pipe, stdin) is written down while it is read first: as it
 * came, so that it takes no more room than it had.
 */
#include "operate/lines/line_reader.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LINE_MAX_MIB 64
#define LINE_MAX_BYTES ((size_t)LINE_MAX_MIB << 20)
#define MAGIC "\x28\xb5\x2f\xfd"
#define MAGIC_GZIP "\x1f\x8b"
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct line_reader {
	char *name; /* for errors: "archive old.jsonl.zst" */
	int fd;
	int copy;    /* of what cannot be read twice; -1: the file itself is */
	off_t from;  /* where the file begins, for the second time */
	bool plain;  /* not compressed */
	bool ended;  /* the file is read */
	bool broken; /* the last line ended with a line break */
	ZSTD_DCtx *zstd;
	char *in, *out;
	size_t in_size, in_at, in_room, out_size, out_at, out_room;
	size_t left;   /* of the frame, as zstd says; 0: a frame is whole */
	int64_t bytes; /* of the file, read */
	int64_t lines;
	struct buf line;
};

static int io_error(const char *name, const char *what, struct outbox_error *err)
{
	char text[120];
	int number = errno, status = OUTBOX_ECONN;

	if (number == ENOENT)
		status = OUTBOX_ENOTFOUND;
	if (number == EACCES)
		status = OUTBOX_EAUTH;
	if (number == EISDIR)
		status = OUTBOX_EINVAL;
	if (number == ENOSPC || number == EDQUOT)
		status = OUTBOX_EFULL;
	return outbox_fail_native(err, status, number, "%s: %s%s", name, what,
				  number == ENOENT   ? "there is no such file"
				  : number == EISDIR ? "is a folder; name a file in it"
						     : strerror_r(number, text, sizeof(text)));
}

static int damaged(const struct line_reader *reader, const char *what, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EPROTO, "%s: %s after line %lld, at byte %lld of the file",
			   reader->name, what, (long long)reader->lines,
			   (long long)(reader->bytes - (int64_t)(reader->in_size - reader->in_at)));
}

static int too_long(const struct line_reader *reader, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EPROTO,
			   "%s: line %lld is longer than %d MiB, which no message is; is there a line "
			   "break behind each?",
			   reader->name, (long long)reader->lines + 1, LINE_MAX_MIB);
}

static int write_copy(const struct line_reader *reader, const char *data, size_t size,
		      struct outbox_error *err)
{
	while (size) {
		ssize_t n = write(reader->copy, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return io_error(reader->name,
					"cannot be copied to the folder of TMPDIR (default: /var/tmp): ",
					err);
		data += n;
		size -= (size_t)n;
	}
	return OUTBOX_OK;
}

/* More of the file, behind what is in `in` already. */
static int fill(struct line_reader *reader, struct outbox_error *err)
{
	char *at = reader->in + reader->in_size;
	ssize_t n;

	do
		n = read(reader->fd, at, reader->in_room - reader->in_size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return io_error(reader->name, "", err);
	reader->in_size += (size_t)n;
	reader->bytes += n;
	reader->ended = n == 0;
	return reader->copy >= 0 && reader->fd != reader->copy
		       ? write_copy(reader, at, (size_t)n, err)
		       : OUTBOX_OK;
}

/* More bytes of text into out; none: the end. */
static int more(struct line_reader *reader, struct outbox_error *err)
{
	ZSTD_outBuffer out = { reader->out, reader->out_room, 0 };
	ZSTD_inBuffer in;
	size_t left;
	int r = OUTBOX_OK;

	if (reader->in_at == reader->in_size && !reader->ended) {
		reader->in_at = reader->in_size = 0;
		r = fill(reader, err);
	}
	reader->out_at = reader->out_size = 0;
	if (r)
		return r;
	if (reader->plain) {
		reader->out_size = reader->in_size - reader->in_at;
		memcpy(reader->out, reader->in + reader->in_at, reader->out_size);
		reader->in_at = reader->in_size;
		return OUTBOX_OK;
	}
	if (reader->ended && reader->left == 0)
		return OUTBOX_OK;
	in = (ZSTD_inBuffer){ reader->in, reader->in_size, reader->in_at };
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

static bool at_end(const struct line_reader *reader)
{
	return reader->ended && reader->out_at == reader->out_size &&
	       (reader->plain ? reader->in_at == reader->in_size : reader->left == 0);
}

/* A line's end in what is there: it is whole. */
static bool collect_line(struct line_reader *reader)
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

int line_reader_next(struct line_reader *reader, const char **ret_line, size_t *ret_size,
		     struct outbox_error *err)
{
	const char *line;
	size_t skip;
	int r = OUTBOX_OK;

	buf_clear(&reader->line);
	reader->broken = false;
	while (r == OUTBOX_OK && !reader->broken && !at_end(reader)) {
		reader->broken = collect_line(reader);
		if (!reader->broken)
			r = more(reader, err);
		if (reader->line.failed)
			return too_long(reader, err);
	}
	if (r)
		return r;
	*ret_line = NULL;
	if (reader->broken || reader->line.size) {
		line = buf_str(&reader->line);
		skip = reader->lines == 0 && strncmp(line, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
		reader->lines++;
		*ret_line = line + skip;
		*ret_size = reader->line.size - skip;
	}
	return OUTBOX_OK;
}

int64_t line_reader_lines(const struct line_reader *reader)
{
	return reader->lines;
}

bool line_reader_whole(const struct line_reader *reader)
{
	return reader->broken;
}

/* What it begins with says what it is; a pipe may bring that byte by byte. */
static int begin(struct line_reader *reader, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	ZSTD_DCtx_reset(reader->zstd, ZSTD_reset_session_only);
	reader->in_at = reader->in_size = reader->out_at = reader->out_size = reader->left = 0;
	reader->bytes = reader->lines = 0;
	reader->ended = false;
	while (r == OUTBOX_OK && reader->in_size < sizeof(MAGIC) - 1 && !reader->ended)
		r = fill(reader, err);
	reader->ended = false;
	reader->plain = reader->in_size < 4 || memcmp(reader->in, MAGIC, 4) != 0;
	if (r == OUTBOX_OK && reader->in_size > 2 && memcmp(reader->in, MAGIC_GZIP, 2) == 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: is compressed with gzip; outbox reads plain lines and zstd: "
				   "decompress it first",
				   reader->name);
	return r;
}

static int make_copy(struct line_reader *reader, struct outbox_error *err)
{
	const char *folder = getenv("TMPDIR");
	_cleanup_(cleanup_free) char *path = NULL;

	if (asprintf(&path, "%s/outbox-lines-XXXXXX", folder && *folder ? folder : "/var/tmp") < 0) {
		path = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	reader->copy = mkostemp(path, O_CLOEXEC);
	if (reader->copy < 0)
		return io_error(path,
				"cannot be made; TMPDIR names another folder for a copy of it: ", err);
	unlink(path); /* there are payloads in it: it is gone with this process, whatever happens */
	return OUTBOX_OK;
}

static int reader_new(const char *what, const char *path, struct line_reader **ret_reader,
		      struct outbox_error *err)
{
	struct line_reader *reader = calloc(1, sizeof(*reader));
	char shown[200];

	if (!reader)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	reader->fd = reader->copy = -1;
	reader->line = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	if (asprintf(&reader->name, "%s%s", what, text_shown(shown, sizeof(shown), path)) < 0)
		reader->name = NULL;
	reader->zstd = ZSTD_createDCtx();
	/* the same room for both: plain lines are copied */
	reader->in_room = reader->out_room = ZSTD_DStreamOutSize();
	reader->in = malloc(reader->in_room);
	reader->out = malloc(reader->out_room);
	if (!reader->name || !reader->zstd || !reader->in || !reader->out) {
		line_reader_close(reader);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_reader = reader;
	return OUTBOX_OK;
}

static int open_file(struct line_reader *reader, const char *path, struct outbox_error *err)
{
	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	return reader->fd < 0 ? io_error(reader->name, "", err) : OUTBOX_OK;
}

int line_reader_open(const char *what, const char *path, struct line_reader **ret_reader,
		     struct outbox_error *err)
{
	struct line_reader *reader;
	int r = reader_new(what, path, &reader, err);

	if (r)
		return r;
	r = open_file(reader, path, err);
	if (r == OUTBOX_OK)
		r = begin(reader, err);
	if (r == OUTBOX_OK && reader->plain && reader->in_size && reader->in[0] != '{')
		r = damaged(reader, "neither zstd nor JSON lines", err);
	if (r)
		line_reader_close(reader);
	else
		*ret_reader = reader;
	return r;
}

/* A regular file is read twice from where it stands; anything else is copied on the way. */
static int prepare_twice(struct line_reader *reader, struct outbox_error *err)
{
	struct stat file;

	if (fstat(reader->fd, &file) < 0)
		return io_error(reader->name, "", err);
	if (!S_ISREG(file.st_mode))
		return make_copy(reader, err);
	reader->from = lseek(reader->fd, 0, SEEK_CUR);
	return reader->from < 0 ? io_error(reader->name, "", err) : OUTBOX_OK;
}

int line_reader_open_twice(const char *path, struct line_reader **ret_reader,
			   struct outbox_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct line_reader *reader;
	int r = reader_new("", is_stdin ? "stdin" : path, &reader, err);

	if (r)
		return r;
	if (is_stdin)
		reader->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		r = open_file(reader, path, err);
	if (r == OUTBOX_OK)
		r = prepare_twice(reader, err);
	if (r == OUTBOX_OK)
		r = begin(reader, err);
	if (r)
		line_reader_close(reader);
	else
		*ret_reader = reader;
	return r;
}

int line_reader_rewind(struct line_reader *reader, struct outbox_error *err)
{
	if (reader->copy >= 0 && reader->fd != reader->copy) {
		close(reader->fd);
		reader->fd = reader->copy;
	}
	if (lseek(reader->fd, reader->from, SEEK_SET) < 0)
		return io_error(reader->name, "", err);
	return begin(reader, err);
}

struct line_reader *line_reader_close(struct line_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->copy >= 0 && reader->copy != reader->fd)
		close(reader->copy);
	if (reader->fd >= 0)
		close(reader->fd);
	ZSTD_freeDCtx(reader->zstd);
	buf_deinit(&reader->line);
	free(reader->in);
	free(reader->out);
	free(reader->name);
	free(reader);
	return NULL;
}
