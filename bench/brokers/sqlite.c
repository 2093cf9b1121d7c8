/* SPDX-License-Identifier: Apache-2.0 */
#include "../sqlite.h"
#include "origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 1000
#define TEXT_MAX 256

/* A row is gone with the next step, so the batch is copied: less work than any other way to keep it. */
struct copy {
	char id[TEXT_MAX], type[TEXT_MAX], key[TEXT_MAX], body[BODY_MAX];
};

struct batch_sender {
	struct db_each base;
	struct sender *sender;
	struct copy *copies; /* BATCH of them */
	size_t count;
};

static void copy_text(char *out, size_t size, sqlite3_stmt *row, int column)
{
	size_t length = (size_t)sqlite3_column_bytes(row, column);

	if (length >= size)
		die("raw drain", "a message is too long for this bench");
	memcpy(out, sqlite3_column_text(row, column), length + 1);
}

static void take_row(struct db_each *each, sqlite3_stmt *row)
{
	struct batch_sender *b = (struct batch_sender *)each;
	struct copy *copy = &b->copies[b->count];

	copy_text(copy->id, sizeof(copy->id), row, COLUMN_ID);
	copy_text(copy->type, sizeof(copy->type), row, COLUMN_TYPE);
	copy_text(copy->key, sizeof(copy->key), row, COLUMN_KEY);
	copy_text(copy->body, sizeof(copy->body), row, COLUMN_PAYLOAD);
	b->sender->window[b->count++] =
		(struct plain_message){ .id = copy->id,
					.type = copy->type,
					.key = copy->key,
					.time = PLAIN_TIME,
					.body = copy->body,
					.size = (size_t)sqlite3_column_bytes(row, COLUMN_PAYLOAD) };
}

static void send_batch(struct db_each *each)
{
	struct batch_sender *b = (struct batch_sender *)each;

	sender_send(b->sender, b->count);
	b->count = 0;
}

static double read_sqlite(const struct origin *origin, struct sender *sender, int messages)
{
	struct batch_sender each = { .base = { .row = take_row, .end = send_batch },
				     .sender = sender,
				     .copies = calloc(BATCH, sizeof(struct copy)) };
	sqlite3 *db = db_open(origin->path);
	double rate = db_raw_pass(db, false, BATCH, messages, sender ? &each.base : NULL);

	sqlite3_close(db);
	free(each.copies);
	return rate;
}

/* Receipts of the passes before do not stay in the WAL. */
static void tidy_sqlite(const struct origin *origin)
{
	sqlite3 *db = db_open(origin->path);

	db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	sqlite3_close(db);
}

struct origin origin_sqlite(const char *path, int messages)
{
	static char url[700];
	sqlite3 *db = db_open(path);

	fill(db, messages);
	sqlite3_close(db);
	snprintf(url, sizeof(url), "sqlite:%s", path);
	return (struct origin){
		.name = "SQLite", .url = url, .path = path, .read = read_sqlite, .tidy = tidy_sqlite
	};
}

/* ---- publishing ------------------------------------------------------------------------------- */

struct publisher {
	sqlite3 *db;
	sqlite3_stmt *insert;
};

static void *open_sqlite(const char *path)
{
	struct publisher *p = calloc(1, sizeof(*p));

	if (!p)
		die("sqlite", "out of memory");
	p->db = db_open(path);
	p->insert = db_prepare(p->db, "INSERT INTO outbox_message (type, key, payload)"
				      " VALUES ('bench.message', ?, ?)");
	return p;
}

static void publish_sqlite(void *store, const char *key)
{
	struct publisher *p = store;

	sqlite3_bind_text(p->insert, 1, key, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(p->insert, 2, payload(), 300, SQLITE_STATIC);
	db_done(p->db, p->insert);
}

static void close_sqlite(void *store)
{
	struct publisher *p = store;

	sqlite3_finalize(p->insert);
	sqlite3_close(p->db);
	free(p);
}

/* One thread: there is one writer at a time, and waiting for each other in sleeps would only spread them. */
struct latency_store latency_sqlite(const char *path)
{
	return (struct latency_store){ .open = open_sqlite,
				       .publish = publish_sqlite,
				       .close = close_sqlite,
				       .where = path,
				       .threads = 1 };
}
