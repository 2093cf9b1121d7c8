/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file:PATH and stdout: one CloudEvents JSON line per message.
 *
 * A batch is: lock, bring the end of the file in order, write, fdatasync, unlock, and only then say
 * ACKED. Whatever fails on the way, the file is cut back to its length before the batch while the
 * lock is still held, so that no half line stays and nobody else's line is ever cut. After a failed
 * fdatasync the kernel may have dropped the data and call the next one a success: the descriptor is
 * closed and never synced again, and the batch is not acknowledged.
 *
 * Standard output cannot be cut. A batch that fails there leaves its written messages UNKNOWN, and
 * the next one begins with a newline when the last line was not finished.
 */

#include "transport/file/file.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/url.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct outbox_transport_ops file_transport_ops;

static struct file_transport *downcast(struct outbox_transport *transport)
{
	return container_of(transport, struct file_transport, base);
}

int file_fail(const struct file_transport *file, int number, const char *what,
	      struct outbox_error *err)
{
	char text[128];
	const char *reason = strerror_r(number, text, sizeof(text));
	const char *remedy = "";
	int status;

	switch (number) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		status = OUTBOX_EFULL;
		break;
	case ENOENT:
	case ENOTDIR:
		status = file->known ? OUTBOX_ECONN : OUTBOX_ECONFIG;
		remedy = "; create the directory first";
		break;
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case ENXIO:
		status = OUTBOX_ECONFIG;
		remedy = "; name a regular file";
		break;
	case EACCES:
	case EPERM:
	case EROFS:
		status = OUTBOX_EAUTH;
		remedy = "; the relay must be able to read and write it";
		break;
	case ENOMEM:
		status = OUTBOX_ENOMEM;
		break;
	default:
		status = OUTBOX_ECONN;
	}
	return outbox_fail_native(err, status, number, "%s: %s: %s%s", file->shown, what, reason,
				  remedy);
}

/* ---- open and close ------------------------------------------------------------------------ */

static void file_close(struct outbox_transport *transport)
{
	struct file_transport *file = downcast(transport);

	place_close(file);
	outbox_encoder_free(file->encoder);
	buf_deinit(&file->chunk);
	free(file->path);
	free(file);
}

static int set_path(struct file_transport *file, const struct url *url, struct outbox_error *err)
{
	char shown[100];
	size_t length = strlen(url->path);
	bool is_stdout = strcmp(url->scheme, "stdout") == 0;

	if (is_stdout && (url->has_authority || length))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "stdout: takes no path; write stdout:, or file:%s",
				   text_shown(shown, sizeof(shown), url->path));
	if (is_stdout) {
		snprintf(file->shown, sizeof(file->shown), "standard output");
		return OUTBOX_OK;
	}
	if (url->user || (url->host && url->host[0] && strcmp(url->host, "localhost") != 0))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "file: is a local file; write file:out.jsonl or "
				   "file:/var/lib/out.jsonl");
	if (!length || url->path[length - 1] == '/')
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "file: needs the path of a file; write file:out.jsonl");
	snprintf(file->shown, sizeof(file->shown), "file \"%s\"",
		 text_shown(shown, sizeof(shown), url->path));
	file->path = strdup(url->path);
	return file->path ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int set_options(struct file_transport *file, struct url *url, struct outbox_error *err)
{
	int r;

	file->sync = true;
	r = url_flag(url, "fsync", &file->sync, err);
	return r ? r : url_finish(url, "fsync", err);
}

static int check_envelope(int envelope, struct outbox_error *err)
{
	if (envelope == OUTBOX_ENVELOPE_CE_STRUCTURED || envelope == OUTBOX_ENVELOPE_EXTERNAL)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONFIG,
			   "file: and stdout: write lines of JSON, which only the envelopes "
			   "structured and external give; choose one of these");
}

static int setup(struct file_transport *file, const struct outbox_transport_config *config,
		 struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	int envelope = config->envelope ? config->envelope : OUTBOX_ENVELOPE_CE_STRUCTURED;
	int r = url_parse(config->url, &url, err);

	if (!r)
		r = set_path(file, &url, err);
	if (!r)
		r = set_options(file, &url, err);
	if (!r)
		r = check_envelope(envelope, err);
	return r ? r : outbox_encoder_new(envelope, NULL, &file->encoder, err);
}

static int file_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct file_transport *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	file->base.ops = &file_transport_ops;
	file->clock = config->clock;
	file->fd = -1;
	file->chunk.max = FILE_CHUNK;
	r = setup(file, config, err);
	if (r) {
		file_close(&file->base);
		return r;
	}
	*ret_transport = &file->base;
	return OUTBOX_OK;
}

/* ---- connect ------------------------------------------------------------------------------- */

static int connect_stdout(struct file_transport *file, struct outbox_error *err)
{
	struct pollfd reader = { .events = POLLOUT };
	struct stat st;
	int r;

	file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (file->fd < 0)
		return file_fail(file, errno, "cannot use it", err);
	reader.fd = file->fd;
	if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR)) {
		place_close(file);
		return outbox_fail(err, OUTBOX_ECONN, "%s: it has no reader any more", file->shown);
	}
	/* Not knowing is no answer: a regular file would be acknowledged without a sync. */
	if (fstat(file->fd, &st) < 0) {
		r = file_fail(file, errno, "cannot look at it", err);
		place_close(file);
		return r;
	}
	file->regular = S_ISREG(st.st_mode);
	return OUTBOX_OK;
}

static int file_connect(struct outbox_transport *transport, outbox_time deadline,
			struct outbox_error *err)
{
	struct file_transport *file = downcast(transport);
	int r;

	place_close(file);
	if (!file->path)
		return connect_stdout(file, err);
	r = place_take(file, deadline, err);
	if (r) {
		place_close(file);
		return r;
	}
	file_unlock(file);
	return OUTBOX_OK;
}

static void file_disconnect(struct outbox_transport *transport)
{
	place_close(downcast(transport));
}

/* ---- publish ------------------------------------------------------------------------------- */

/* Write the items; *done counts those that were looked at, also when it fails. */
static int write_batch(struct file_transport *file, struct outbox_batch *batch,
		       outbox_time deadline, size_t *done, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	while (!r && *done < batch->count) {
		size_t i = (*done)++;
		struct outbox_error why = OUTBOX_ERROR_INIT;
		struct outbox_encoded encoded;

		r = outbox_encode(file->encoder, batch->items[i], &encoded, &why);
		r = r ? transport_reject(batch, i, r, &why, err)
		      : write_line(file, encoded.body, encoded.size, deadline, err);
	}
	return r ? r : write_flush(file, deadline, err);
}

static int make_durable(struct file_transport *file, struct outbox_error *err)
{
	if (!file->sync || !file->regular || file->written == 0)
		return OUTBOX_OK;
	if (fdatasync(file->fd) == 0)
		return OUTBOX_OK;
	/* Not repeated on EINTR either: a second call may succeed without the data. */
	return file_fail(file, errno, "cannot sync", err);
}

/* Everything that was not REJECTED gets this verdict. */
static void give_verdicts(struct outbox_batch *batch, size_t count, int verdict, const char *reason)
{
	for (size_t i = 0; i < count; i++) {
		if (batch->items[i]->verdict == OUTBOX_REJECTED)
			continue;
		if (reason)
			outbox_batch_verdict(batch, i, verdict, 0, "%s", reason);
		else
			outbox_batch_verdict(batch, i, verdict, 0, NULL);
	}
}

/* Write and sync under the lock; a failure is undone under the same lock. */
static int transact(struct file_transport *file, struct outbox_batch *batch, outbox_time deadline,
		    struct outbox_error *err)
{
	size_t done = 0;
	int r;

	write_begin(file);
	r = write_batch(file, batch, deadline, &done, err);
	if (!r)
		r = make_durable(file, err);
	if (!r) {
		give_verdicts(batch, batch->count, OUTBOX_ACKED, NULL);
		return OUTBOX_OK;
	}
	/* Cut away, they were never sent and stay without a verdict; else they may be read. */
	if (file->written > 0 && (!file->path || !place_cut(file)))
		give_verdicts(batch, done, OUTBOX_UNKNOWN,
			      "written, perhaps in part, then the batch failed");
	return r;
}

static int file_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			outbox_time deadline, struct outbox_error *err)
{
	struct file_transport *file = downcast(transport);
	struct held_signals signals;
	int r;

	if (file->fd < 0)
		return outbox_fail(err, OUTBOX_ECONN, "%s: not connected", file->shown);
	signals_hold(&signals);
	r = file->path ? place_take(file, deadline, err) : file_lock(file, deadline, err);
	if (!r) {
		r = transact(file, batch, deadline, err);
		file_unlock(file);
	}
	if (r)
		place_close(file);
	signals_release(&signals);
	return r;
}

static int file_check(struct outbox_transport *transport, outbox_time deadline, char *text,
		      size_t size)
{
	const struct file_transport *file = downcast(transport);

	(void)deadline;
	if (!file->regular) {
		snprintf(text, size,
			 "acknowledged when the pipe or terminal took the line; what "
			 "its reader loses is lost");
		return 1;
	}
	if (!file->sync) {
		snprintf(text, size,
			 "acknowledged before it is on disk (fsync=no): a power cut can "
			 "lose acknowledged messages");
		return 2;
	}
	snprintf(text, size, "acknowledged when the line is on disk (fdatasync)%s",
		 file->path ? "" : "; that is for this stdout, a file: a pipe is not synced");
	return 0;
}

static const char *const schemes[] = { "file", "stdout", NULL };

const struct outbox_transport_ops file_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "file",
	.schemes = schemes,
	.help = "file:PATH or stdout: (CloudEvents JSON lines; ?fsync=no to trust the kernel)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER, /* a batch is written whole or not at all */
	.open = file_open,
	.connect = file_connect,
	.publish = file_publish,
	.disconnect = file_disconnect,
	.close = file_close,
	.check = file_check,
};
