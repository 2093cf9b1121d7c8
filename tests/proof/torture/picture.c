/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"
#include "fault.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KNOWN_MAX 64
#define KNOWN_FOR_GOOD 8 /* of these the first: "before" and "after" are among them */
#define FILES 4

struct bytes_kept {
	char *data;
	size_t size, capacity;
};

struct known {
	struct bytes_kept files, text;
	size_t sizes[FILES]; /* of the files, one behind the other */
	uint64_t hash;
	bool open; /* by a connection, whose index of the WAL counts; without one it is made anew */
};

static struct {
	struct known known[KNOWN_MAX];
	size_t n, next; /* next: to be overwritten when all are taken */
	struct known now;
	long asked, made;
} album;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "torture: %s: %s\n", what, why);
	abort();
}

/* Blocks of the album outlive the run: they are no leak. */
static char *room(struct bytes_kept *b, size_t size)
{
	if (b->size + size > b->capacity) {
		b->capacity = 2 * (b->size + size);
		b->data = memory_keep(b->data, b->capacity);
		if (!b->data)
			die("picture", "out of memory");
	}
	return b->data + b->size;
}

/* ---- the bytes of the files ---------------------------------------------------------------- */

static void read_file(struct world *w, const char *end, struct bytes_kept *b, size_t *ret_size)
{
	char path[sizeof(w->file) + 16];
	ssize_t n;
	int fd;

	*ret_size = 0;
	snprintf(path, sizeof(path), "%s%s", w->file, end);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	while ((n = read(fd, room(b, (size_t)1 << 19), (size_t)1 << 19)) > 0) {
		b->size += (size_t)n;
		*ret_size += (size_t)n;
	}
	if (n < 0)
		die(path, "cannot be read");
	world_close_later(w, fd);
}

static uint64_t hash_of(const struct bytes_kept *b)
{
	uint64_t hash = b->size, word;

	for (size_t i = 0; i + sizeof(word) <= b->size; i += sizeof(word)) {
		memcpy(&word, b->data + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

static void read_files(struct world *w, struct known *k)
{
	static const char *const ends[FILES] = { "", "-wal", "-shm", "-journal" };

	k->open = w->store || w->app;
	k->files.size = 0;
	for (size_t i = 0; i < FILES; i++)
		read_file(w, ends[i], &k->files, &k->sizes[i]);
	k->hash = hash_of(&k->files);
}

static bool same_files(const struct known *a, const struct known *b)
{
	if (a->hash != b->hash || a->open != b->open || a->files.size != b->files.size ||
	    memcmp(a->sizes, b->sizes, sizeof(a->sizes)) != 0)
		return false;
	return !a->files.size || memcmp(a->files.data, b->files.data, a->files.size) == 0;
}

/* ---- the text ------------------------------------------------------------------------------ */

static void draw(struct bytes_kept *text, const char *bytes, size_t size)
{
	char *to = room(text, size + 1);

	for (size_t i = 0; i < size; i++) /* bytes of a payload: no NUL may end the text */
		to[i] = bytes[i] ? bytes[i] : '0';
	to[size] = '\0';
	text->size += size;
}

static void draw_rows(sqlite3 *db, const char *sql, struct bytes_kept *to)
{
	sqlite3_stmt *q;
	int rc;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const char *text = (const char *)sqlite3_column_text(q, i);
			size_t size = (size_t)sqlite3_column_bytes(q, i);

			/* A large payload is told by its beginning. */
			draw(to, text ? text : "NULL", text ? (size > 2000 ? 2000 : size) : 4);
			draw(to, "|", 1);
		}
		draw(to, "\n", 1);
	}
	if (rc != SQLITE_DONE)
		die(sql, sqlite3_errmsg(db));
	sqlite3_finalize(q);
}

static void draw_all(const struct world *w, struct bytes_kept *text)
{
	static const char tables[] =
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_stat1'"
		" ORDER BY name";
	sqlite3 *db = world_connect(w);
	sqlite3_stmt *q;
	char sql[160];

	text->size = 0;
	if (sqlite3_prepare_v2(db, tables, -1, &q, NULL) != SQLITE_OK)
		die(tables, sqlite3_errmsg(db));
	while (sqlite3_step(q) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(q, 0);

		snprintf(sql, sizeof(sql), "SELECT '%s', * FROM \"%s\"", name, name);
		draw_rows(db, sql, text);
	}
	sqlite3_finalize(q);
	draw_rows(db, "SELECT type, name FROM sqlite_schema ORDER BY 1, 2", text);
	draw(text, "\n", 1);
	draw_rows(db, "PRAGMA integrity_check", text);
	sqlite3_close(db);
}

/* ---- the album ----------------------------------------------------------------------------- */

static struct known *place(void)
{
	if (album.n < KNOWN_MAX)
		return &album.known[album.n++];
	if (album.next < KNOWN_FOR_GOOD || album.next == KNOWN_MAX)
		album.next = KNOWN_FOR_GOOD;
	return &album.known[album.next++];
}

struct picture picture_take(struct world *w)
{
	struct known *k = NULL, old;

	album.asked++;
	read_files(w, &album.now);
	for (size_t i = 0; i < album.n && !k; i++) {
		if (same_files(&album.known[i], &album.now))
			k = &album.known[i];
	}
	if (!k) {
		album.made++;
		draw_all(w, &album.now.text);
		k = place();
		old = *k;
		*k = album.now;
		album.now = old; /* its memory is used again */
	}
	return (struct picture){ k->text.data, k->text.size };
}

bool picture_same(struct picture a, struct picture b)
{
	return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

bool picture_sound(struct picture picture)
{
	static const char end[] = "\nok|\n";

	return picture.size >= sizeof(end) - 1 &&
	       strcmp(picture.text + picture.size - (sizeof(end) - 1), end) == 0;
}

void picture_forget(void)
{
	for (size_t i = 0; i < album.n; i++) {
		memory_drop(album.known[i].files.data);
		memory_drop(album.known[i].text.data);
		album.known[i] = (struct known){ 0 };
	}
	memory_drop(album.now.files.data);
	memory_drop(album.now.text.data);
	album.now = (struct known){ 0 };
	album.n = album.next = 0;
}

void picture_counts(long *ret_asked, long *ret_made)
{
	*ret_asked = album.asked;
	*ret_made = album.made;
}
