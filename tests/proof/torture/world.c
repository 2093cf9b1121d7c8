/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"
#include "store/sqlite/ops.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what, const char *why)
{
	fprintf(stderr, "torture: %s: %s\n", what, why);
	abort();
}

void world_begin(struct world *w)
{
	const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	memset(w, 0, sizeof(*w));
	snprintf(w->folder, sizeof(w->folder), "%s/outbox-torture-XXXXXX", memory);
	if (!mkdtemp(w->folder))
		die(w->folder, "cannot be made");
	snprintf(w->file, sizeof(w->file), "%s/app.db", w->folder);
	snprintf(w->url, sizeof(w->url), "sqlite:%s", w->file);
	frozen_clock_init(&w->clock, WORLD_START);
	random_init(&w->random, 7);
	w->arena = outbox_arena_new((size_t)64 << 20);
	if (!w->arena)
		die("arena", "out of memory");
}

static void remove_files(const struct world *w)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
	char path[128];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", w->file, ends[i]);
		unlink(path);
	}
}

void world_end(struct world *w)
{
	remove_files(w);
	rmdir(w->folder);
	w->arena = outbox_arena_free(w->arena);
}

void world_load(struct world *w, const struct bytes *bytes)
{
	int fd;

	remove_files(w);
	sqlite3_randomness(0, NULL); /* SQLite's numbers begin again */
	if (!bytes->data)
		return;
	fd = open(w->file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, bytes->data, bytes->size) != (ssize_t)bytes->size)
		die(w->file, "cannot be written");
	close(fd);
}

void world_save(struct world *w, struct bytes *ret_bytes)
{
	int fd = open(w->file, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(w->file, "cannot be read");
	ret_bytes->size = (size_t)st.st_size;
	ret_bytes->data = malloc(ret_bytes->size);
	if (!ret_bytes->data || read(fd, ret_bytes->data, ret_bytes->size) != st.st_size)
		die(w->file, "cannot be read");
	close(fd);
}

int world_try_open(struct world *w, struct outbox_error *err)
{
	struct outbox_store_config config = {
		.struct_size = sizeof(config),
		.url = w->url,
		.clock = &w->clock.base,
		.random = &w->random.base,
	};

	return sqlite_open(&config, true, &w->store, err);
}

void world_open(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (world_try_open(w, &err) != OUTBOX_OK)
		die("open", err.message);
}

void world_close(struct world *w)
{
	sqlite_close(w->store);
	w->store = NULL;
	sqlite3_close(w->app);
	w->app = NULL;
	while (w->n_fds)
		close(w->fds[--w->n_fds]);
}

void world_close_later(struct world *w, int fd)
{
	if (!w->store && !w->app) {
		close(fd);
		return;
	}
	if (w->n_fds == WORLD_FDS)
		die("world", "too many descriptors");
	w->fds[w->n_fds++] = fd;
}

sqlite3 *world_connect(const struct world *w)
{
	sqlite3 *db;

	if (sqlite3_open(w->file, &db) != SQLITE_OK)
		die(w->file, sqlite3_errmsg(db));
	sqlite3_wal_autocheckpoint(db, 0);
	return db;
}

/* ---- what a call said ---------------------------------------------------------------------- */

void world_say(struct world *w, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(w->said + w->n_said, sizeof(w->said) - w->n_said, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(w->said) - w->n_said)
		die("said", "too much");
	w->n_said += (size_t)n;
}

static const char *shown(const char *text)
{
	return text ? text : "-";
}

void world_say_message(struct world *w, const struct outbox_claimed *c)
{
	const struct outbox_message *m = &c->message;

	world_say(w, "%lld %s %s %s [%.*s] %zu %s %s %s %s %s %s %d %lld %lld %d%d%d %s\n",
		  (long long)c->seq, shown(m->id), shown(m->type), shown(m->key),
		  m->size < 200 ? (int)m->size : 200, m->data ? (const char *)m->data : "", m->size,
		  shown(m->content_type), shown(m->source), shown(m->subject), shown(m->topic),
		  shown(m->correlation_id), shown(m->traceparent), c->attempts,
		  (long long)m->event_time, (long long)c->created_at, c->detour, c->suspect,
		  c->blocked, shown(c->malformed));
	for (size_t i = 0; i < m->n_headers; i++)
		world_say(w, "  %s: %s\n", m->headers[i].name, m->headers[i].value);
}
