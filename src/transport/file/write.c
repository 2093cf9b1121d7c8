/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/file/file.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* The last that was written to standard output is not a whole line. Guarded by its lock. */
static bool stdout_torn;

static int check_deadline(const struct file_transport *file, outbox_time deadline,
			  struct outbox_error *err)
{
	if (file->clock->mono(file->clock) < deadline)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: not written before the deadline", file->shown);
}

/* Wait until a pipe takes PIPE_BUF bytes without blocking. */
static int wait_writable(const struct file_transport *file, outbox_time deadline,
			 struct outbox_error *err)
{
	struct pollfd poll_fd = { .fd = file->fd, .events = POLLOUT };

	for (;;) {
		outbox_time left = deadline - file->clock->mono(file->clock);
		outbox_time ms = left > 0 ? (left + 999) / 1000 : 0;
		int n = poll(&poll_fd, 1, ms > INT_MAX ? INT_MAX : (int)ms);

		if (n > 0)
			return OUTBOX_OK;
		if (n < 0 && errno != EINTR)
			return file_fail(file, errno, "cannot poll", err);
		if (n == 0)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "%s: its reader took nothing until the deadline",
					   file->shown);
	}
}

/*
 * Standard output may be a pipe whose reader has stopped, and its O_NONBLOCK is not ours to set: so
 * it is polled and gets pieces that a pipe takes whole.
 */
static int write_all(struct file_transport *file, const char *data, size_t size,
		     outbox_time deadline, struct outbox_error *err)
{
	size_t piece_max = file->path ? FILE_CHUNK : PIPE_BUF;

	while (size > 0) {
		size_t piece = size < piece_max ? size : piece_max;
		ssize_t n;
		int r = check_deadline(file, deadline, err);

		if (!r && !file->path)
			r = wait_writable(file, deadline, err);
		if (r)
			return r;
		n = write(file->fd, data, piece);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return file_fail(file, n < 0 ? errno : EIO, "cannot write", err);
		if (!file->path)
			stdout_torn = data[n - 1] != '\n';
		file->written += (size_t)n;
		data += n;
		size -= (size_t)n;
	}
	return OUTBOX_OK;
}

void write_begin(struct file_transport *file)
{
	buf_clear(&file->chunk);
	file->written = 0;
	if (!file->path && stdout_torn)
		buf_char(&file->chunk, '\n');
}

int write_flush(struct file_transport *file, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (file->chunk.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (file->chunk.size > 0)
		r = write_all(file, file->chunk.data, file->chunk.size, deadline, err);
	buf_clear(&file->chunk);
	return r;
}

static int put(struct file_transport *file, const char *data, size_t size, outbox_time deadline,
	       struct outbox_error *err)
{
	if (file->chunk.size + size > FILE_CHUNK) {
		int r = write_flush(file, deadline, err);

		if (r)
			return r;
	}
	if (size > FILE_CHUNK)
		return write_all(file, data, size, deadline, err);
	buf_append(&file->chunk, data, size);
	return OUTBOX_OK;
}

int write_line(struct file_transport *file, const char *line, size_t size, outbox_time deadline,
	       struct outbox_error *err)
{
	int r = put(file, line, size, deadline, err);

	return r ? r : put(file, "\n", 1, deadline, err);
}
