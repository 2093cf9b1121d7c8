/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/archive.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <outbox/transport.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL 6
#define LINE_MAX_BYTES ((size_t)64 << 20)

struct archive {
	const char *then;   /* what an error means for the caller: "; nothing was purged" */
	char *path, *draft; /* draft: the name while it is written; NULL once committed */
	int fd;
	ZSTD_CCtx *zstd;
	struct outbox_encoder *encoder;
	char *chunk;
	size_t chunk_size;
};

static int failed(const struct archive *archive, const char *what, struct outbox_error *err)
{
	int number = errno, status = OUTBOX_ECONN;
	char shown[200], text[128];

	if (number == ENOSPC || number == EDQUOT)
		status = OUTBOX_EFULL;
	if (number == EEXIST)
		status = OUTBOX_ECONFLICT;
	if (number == ENOENT || number == ENOTDIR)
		status = OUTBOX_ENOTFOUND;
	if (number == EACCES || number == EPERM || number == EROFS)
		status = OUTBOX_EAUTH;
	return outbox_fail_native(err, status, number, "archive %s: %s: %s%s",
				  text_shown(shown, sizeof(shown), archive->path), what,
				  number == EEXIST ? "it exists, give another name"
				  : number == ENOENT
					  ? "there is no such folder; create the folder first"
					  : strerror_r(number, text, sizeof(text)),
				  archive->then);
}

static int make(struct archive *archive, struct outbox_error *err)
{
	int r;

	if (access(archive->path, F_OK) == 0) {
		errno = EEXIST;
		return failed(archive, "cannot create it", err);
	}
	archive->fd = open(archive->draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (archive->fd < 0)
		return failed(archive, "cannot create it", err);
	r = outbox_encoder_new(OUTBOX_ENVELOPE_CE_STRUCTURED, NULL, &archive->encoder, err);
	if (r)
		return r;
	archive->zstd = ZSTD_createCCtx();
	archive->chunk_size = ZSTD_CStreamOutSize();
	archive->chunk = malloc(archive->chunk_size);
	if (!archive->zstd || !archive->chunk)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	ZSTD_CCtx_setParameter(archive->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(archive->zstd, ZSTD_c_checksumFlag, 1);
	return OUTBOX_OK;
}

int archive_new(const char *path, const char *then, struct archive **ret_archive,
		struct outbox_error *err)
{
	struct archive *archive = calloc(1, sizeof(*archive));
	int r;

	if (!archive)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	archive->fd = -1;
	archive->then = then;
	archive->path = strdup(path);
	if (!archive->path || asprintf(&archive->draft, "%s.part-%ld", path, (long)getpid()) < 0) {
		archive->draft = NULL;
		archive_free(archive);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = make(archive, err);
	if (r) {
		archive_free(archive);
		return r;
	}
	*ret_archive = archive;
	return OUTBOX_OK;
}

static int write_all(const struct archive *archive, const char *data, size_t size,
		     struct outbox_error *err)
{
	while (size > 0) {
		ssize_t n = write(archive->fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(archive, "cannot write", err);
		data += n;
		size -= (size_t)n;
	}
	return OUTBOX_OK;
}

static int compress(struct archive *archive, const char *data, size_t size,
		    ZSTD_EndDirective directive, struct outbox_error *err)
{
	ZSTD_inBuffer in = { data, size, 0 };
	size_t left;
	int r;

	do {
		ZSTD_outBuffer out = { archive->chunk, archive->chunk_size, 0 };

		left = ZSTD_compressStream2(archive->zstd, &out, &in, directive);
		if (ZSTD_isError(left))
			return outbox_fail(err, OUTBOX_EINTERNAL, "zstd: %s%s",
					   ZSTD_getErrorName(left), archive->then);
		r = write_all(archive, archive->chunk, out.pos, err);
		if (r)
			return r;
	} while (directive == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return OUTBOX_OK;
}

#define TEXTS 10

/* Texts that no envelope can carry, escaped as they are shown to people: better than not at all. */
static void make_readable(struct outbox_message *m, struct buf room[TEXTS])
{
	const char **const texts[TEXTS] = { &m->id,           &m->type,           &m->key,
					    &m->source,       &m->subject,        &m->topic,
					    &m->content_type, &m->correlation_id, &m->causation_id,
					    &m->traceparent };

	for (size_t i = 0; i < TEXTS; i++) {
		const char *text = *texts[i];

		if (!text || utf8_valid(text, strlen(text)))
			continue;
		text_display(&room[i], text, strlen(text));
		*texts[i] = buf_str(&room[i]);
	}
}

/*
 * The payload as base64 whatever it claims to be: encoded as bytes, then given back its own content
 * type, which CloudEvents allows beside data_base64.
 */
static int encode_as_bytes(struct archive *archive, const struct outbox_claimed *claimed,
			   char **ret_line, struct outbox_error *err)
{
	struct outbox_message message = claimed->message;
	struct outbox_item item = { .message = &message,
				    .seq = claimed->seq,
				    .created_at = claimed->created_at };
	struct buf room[TEXTS] = { 0 };
	struct outbox_encoded encoded;
	const char *content_type;
	json_t *event = NULL;
	int r;

	for (size_t i = 0; i < TEXTS; i++)
		room[i].max = 4 * OUTBOX_TEXT_MAX;
	make_readable(&message, room);
	content_type = message.content_type;
	message.content_type = "application/octet-stream";
	r = outbox_encode(archive->encoder, &item, &encoded, err);
	if (r == OUTBOX_EINVAL) {
		message.event_time = item.created_at = 0; /* a time that no calendar has */
		r = outbox_encode(archive->encoder, &item, &encoded, err);
	}
	if (r == OUTBOX_OK)
		event = json_loadb(encoded.body, encoded.size, 0, NULL);
	if (event && content_type)
		json_object_set_new(event, "datacontenttype", json_string(content_type));
	for (size_t i = 0; i < TEXTS; i++)
		buf_deinit(&room[i]);
	if (!event)
		return r ? r : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	json_object_set_new(event, "outboxmalformed",
			    json_string(claimed->malformed ? claimed->malformed : "not JSON"));
	*ret_line = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	return *ret_line ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* What CloudEvents has no attribute for and a replay needs, in front of the event's own. */
static int add_own(struct archive *archive, const struct outbox_message *message,
		   struct outbox_error *err)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "{%s",
			 message->published ? "\"outboxpublished\":true," : "");

	if (message->priority)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "\"outboxpriority\":%d,",
			      message->priority);
	return compress(archive, text, (size_t)n, ZSTD_e_continue, err);
}

int archive_add(struct archive *archive, const struct outbox_claimed *message,
		struct outbox_error *err)
{
	struct outbox_item item = { .message = &message->message,
				    .seq = message->seq,
				    .created_at = message->created_at };
	struct outbox_encoded encoded;
	char *line = NULL;
	int r = message->malformed ? OUTBOX_EINVAL
				   : outbox_encode(archive->encoder, &item, &encoded, err);

	if (r == OUTBOX_EINVAL) {
		r = encode_as_bytes(archive, message, &line, err);
		if (r)
			return outbox_wrap(err, "archive message %s", message->message.id);
		encoded = (struct outbox_encoded){ .body = line, .size = strlen(line) };
	}
	if (r == OUTBOX_OK)
		r = add_own(archive, &message->message, err);
	if (r == OUTBOX_OK) /* without its own { */
		r = compress(archive, (const char *)encoded.body + 1, encoded.size - 1,
			     ZSTD_e_continue, err);
	if (r == OUTBOX_OK)
		r = compress(archive, "\n", 1, ZSTD_e_continue, err);
	free(line);
	return r;
}

/* The new name must survive a crash, too. */
static int sync_folder(const struct archive *archive, struct outbox_error *err)
{
	const char *slash = strrchr(archive->path, '/');
	char *folder =
		slash ? strndup(archive->path, (size_t)(slash - archive->path) + 1) : strdup(".");
	int fd, r = OUTBOX_OK;

	if (!folder)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		r = failed(archive, "cannot sync its folder", err);
	if (fd >= 0)
		close(fd);
	free(folder);
	return r;
}

int archive_commit(struct archive *archive, struct outbox_error *err)
{
	int r = compress(archive, "", 0, ZSTD_e_end, err);

	if (r)
		return r;
	if (fsync(archive->fd) != 0)
		return failed(archive, "cannot sync", err);
	if (close(archive->fd) != 0) {
		archive->fd = -1;
		return failed(archive, "cannot close", err);
	}
	archive->fd = -1;
	if (renameat2(AT_FDCWD, archive->draft, AT_FDCWD, archive->path, RENAME_NOREPLACE) != 0)
		return failed(archive, "cannot rename", err);
	free(archive->draft);
	archive->draft = NULL;
	return sync_folder(archive, err);
}

struct archive *archive_free(struct archive *archive)
{
	if (!archive)
		return NULL;
	if (archive->fd >= 0)
		close(archive->fd);
	if (archive->draft)
		unlink(archive->draft);
	ZSTD_freeCCtx(archive->zstd);
	outbox_encoder_free(archive->encoder);
	free(archive->chunk);
	free(archive->draft);
	free(archive->path);
	free(archive);
	return NULL;
}
