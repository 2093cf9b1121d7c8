/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/spool.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"
#include "fields/json_value.h"
#include "relay/registry.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PURGE_PAGE 5000

static int io_error(const char *path, const char *what, struct outbox_error *err)
{
	int number = errno, status = OUTBOX_ECONN;
	char shown[200], text[120];

	if (number == ENOSPC || number == EDQUOT)
		status = OUTBOX_EFULL;
	if (number == EACCES || number == EPERM || number == EROFS)
		status = OUTBOX_EAUTH;
	return outbox_fail_native(err, status, number, "%s %s: %s; --spool FILE names another place",
				  what, text_shown(shown, sizeof(shown), path),
				  strerror_r(number, text, sizeof(text)));
}

static json_t *note_json(const struct spool *spool)
{
	return json_pack("{s:o, s:o, s:I, s:I}", "replay", json_text(spool->what), "began",
			 json_time(spool->began), "position", (json_int_t)spool->position, "count",
			 (json_int_t)spool->count);
}

/* Under another name first: the note is the old one or the new one, never half of it. */
static int write_note(const char *path, const char *text, struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *draft = NULL;
	size_t size = strlen(text);
	bool bad;
	int fd;

	if (asprintf(&draft, "%s.part", path) < 0) {
		draft = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return io_error(draft, "cannot make", err);
	bad = write(fd, text, size) != (ssize_t)size || fsync(fd) != 0;
	bad |= close(fd) != 0;
	if (bad || rename(draft, path) != 0)
		return io_error(draft, "cannot write", err);
	return OUTBOX_OK;
}

int spool_note(const struct spool *spool, struct outbox_error *err)
{
	json_t *object = note_json(spool);
	_cleanup_(cleanup_free) char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text ? write_note(spool->note, text, err)
		    : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int belongs_to_another(const struct spool *spool, const char *theirs, struct outbox_error *err)
{
	char file[200], other[300];

	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "%s belongs to another replay (%s); end that one, remove the file, or give "
			   "--spool another name",
			   text_shown(file, sizeof(file), spool->note),
			   text_shown(other, sizeof(other), theirs));
}

static int read_note(struct spool *spool, struct outbox_error *err)
{
	json_t *object;
	const char *what = NULL, *began = NULL;
	json_int_t position = -1, count = -1;
	int r = OUTBOX_OK;

	if (access(spool->note, F_OK) != 0)
		return OUTBOX_OK;
	object = json_load_file(spool->note, 0, NULL);
	if (!object ||
	    json_unpack(object, "{s:s, s:s, s:I, s:I}", "replay", &what, "began", &began,
			"position", &position, "count", &count) ||
	    time_parse(began, 0, &spool->began, NULL))
		r = belongs_to_another(spool, "it cannot be read", err);
	else if (strcmp(what, spool->what) != 0)
		r = belongs_to_another(spool, what, err);
	spool->position = position;
	spool->count = count;
	spool->resumed = true;
	json_decref(object);
	return r;
}

static int make_texts(struct spool *spool, const char *path, const char *what)
{
	_cleanup_(buf_deinit) struct buf url = BUF_INIT(8192);

	buf_text(&url, "sqlite:");
	url_escape(&url, path, "/");
	spool->path = strdup(path);
	spool->what = strdup(what);
	spool->url = url.failed ? NULL : strdup(buf_str(&url));
	if (asprintf(&spool->note, "%s.json", path) < 0)
		spool->note = NULL;
	return spool->path && spool->what && spool->url && spool->note ? OUTBOX_OK : OUTBOX_ENOMEM;
}

/* On a file of its own: closing the database's file would let go of SQLite's locks on it. */
static int take_lock(struct spool *spool, struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *path = NULL;
	char shown[200];

	if (asprintf(&path, "%s.lock", spool->path) < 0) {
		path = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	spool->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (spool->lock < 0)
		return io_error(path, "cannot make", err);
	if (flock(spool->lock, LOCK_EX | LOCK_NB) == 0)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONFLICT, "%s is in use: this replay is already running",
			   text_shown(shown, sizeof(shown), spool->path));
}

static int open_store(struct spool *spool, struct outbox_clock *clock, struct outbox_random *random,
		      struct outbox_error *err)
{
	struct outbox_init_options how = { .struct_size = sizeof(how), .lanes = 1 };
	int r = registry_open_store(NULL, spool->url, true, clock, random, &spool->store, err);

	return r ? r : store_init(spool->store, &how, err);
}

int spool_open(const char *path, const char *what, struct outbox_clock *clock,
	       struct outbox_random *random, struct spool **ret_spool, struct outbox_error *err)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	int r;

	if (spool)
		spool->lock = -1;
	if (!spool || make_texts(spool, path, what)) {
		spool_close(spool);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = take_lock(spool, err);
	if (r == OUTBOX_OK)
		r = read_note(spool, err);
	if (r == OUTBOX_OK && !spool->resumed && access(path, F_OK) == 0)
		r = belongs_to_another(spool, "its database exists, but its .json file does not",
				       err);
	if (r == OUTBOX_OK && !spool->resumed) {
		spool->began = clock->wall(clock);
		r = spool_note(spool, err);
	}
	if (r == OUTBOX_OK)
		r = open_store(spool, clock, random, err);
	if (r)
		spool_close(spool);
	else
		*ret_spool = spool;
	return r;
}

int spool_clean(const struct spool *spool, outbox_time now, struct outbox_error *err)
{
	struct outbox_purge request = { .delivered_before = now, .limit = PURGE_PAGE };
	struct outbox_purged gone = { .more = true };
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && gone.more)
		r = store_purge(spool->store, &request, &gone, err);
	return r == OUTBOX_EBUSY ? OUTBOX_OK : r; /* next time, then */
}

void spool_remove(struct spool *spool)
{
	static const char *const ends[] = { "", "-wal", "-shm", ".json", ".json.part", ".lock" };

	spool->store = store_close(spool->store);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		_cleanup_(cleanup_free) char *path = NULL;

		if (asprintf(&path, "%s%s", spool->path, ends[i]) < 0)
			path = NULL;
		else
			unlink(path);
	}
}

struct spool *spool_close(struct spool *spool)
{
	if (!spool)
		return NULL;
	store_close(spool->store);
	if (spool->lock >= 0)
		close(spool->lock);
	free(spool->path);
	free(spool->note);
	free(spool->url);
	free(spool->what);
	free(spool);
	return NULL;
}
