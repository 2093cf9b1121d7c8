/* SPDX-License-Identifier: Apache-2.0 */

/* Publishing to SQLite in three ways, beside the same INSERT by the plain library, same file. */

#include "bench.h"

#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

#define BATCH_MAX 1000

enum how { SINGLY, HANDLE, TOGETHER };

static const char *const hows[] = {
	[SINGLY] = "one by one",
	[HANDLE] = "with a publisher",
	[TOGETHER] = "together",
};

static int publish(sqlite3 *db, struct outbox_publisher *publisher, enum how how,
		   const struct outbox_message *messages, int batch, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (how == TOGETHER)
		return outbox_publish_sqlite_batch(db, messages, (size_t)batch, 0, NULL, err);
	for (int i = 0; i < batch && r == OUTBOX_OK; i++)
		r = how == HANDLE ? outbox_publisher_publish(publisher, &messages[i], NULL, err)
				  : outbox_publish_sqlite(db, &messages[i], err);
	return r;
}

static double ours(sqlite3 *db, int transactions, int batch, enum how how)
{
	static struct outbox_message messages[BATCH_MAX];
	static char keys[BATCH_MAX][16];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_publisher *publisher = NULL;
	double start = now_seconds(), rate;

	for (int i = 0; i < batch; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
		messages[i] = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		messages[i].type = "bench.message";
		messages[i].key = keys[i];
		messages[i].data = payload();
		messages[i].size = 300;
	}
	if (how == HANDLE && outbox_publisher_new_sqlite(&publisher, db, 0, &err) != OUTBOX_OK)
		die("publisher", err.message);
	for (int t = 0; t < transactions; t++) {
		db_exec(db, "BEGIN IMMEDIATE");
		if (publish(db, publisher, how, messages, batch, &err) != OUTBOX_OK)
			die("publish", err.message);
		db_exec(db, "COMMIT");
	}
	rate = (double)transactions * batch / (now_seconds() - start);
	outbox_publisher_free(publisher);
	return rate;
}

/* The id is made here, as the library makes it: one of its own per message. */
static double raw(sqlite3 *db, int transactions, int batch, int round)
{
	sqlite3_stmt *insert =
		db_prepare(db, "INSERT INTO outbox_message (id, type, key, content_type, payload)"
			       " VALUES (?, ?, ?, ?, ?)");
	double start = now_seconds(), rate;
	char id[64], key[32];

	for (int t = 0; t < transactions; t++) {
		db_exec(db, "BEGIN IMMEDIATE");
		for (int i = 0; i < batch; i++) {
			snprintf(id, sizeof(id), "01999999-%04x-7%03x-8%03x-%012x", batch, round, t,
				 i);
			snprintf(key, sizeof(key), "key-%d", i);
			sqlite3_bind_text(insert, 1, id, -1, SQLITE_STATIC);
			sqlite3_bind_text(insert, 2, "bench.message", -1, SQLITE_STATIC);
			sqlite3_bind_text(insert, 3, key, -1, SQLITE_STATIC);
			sqlite3_bind_text(insert, 4, "application/json", -1, SQLITE_STATIC);
			sqlite3_bind_text(insert, 5, payload(), 300, SQLITE_STATIC);
			db_done(db, insert);
		}
		db_exec(db, "COMMIT");
	}
	rate = (double)transactions * batch / (now_seconds() - start);
	sqlite3_finalize(insert);
	return rate;
}

void bench_publish(const char *path, const struct sizes *sizes)
{
	static const struct {
		int batch, transactions;
		enum how how;
	} runs[] = { { 1, 400, SINGLY },     { 1, 400, HANDLE },   { 100, 100, TOGETHER },
		     { 1000, 20, TOGETHER }, { 100, 100, HANDLE }, { 1000, 20, HANDLE },
		     { 100, 100, SINGLY },   { 1000, 20, SINGLY } };
	sqlite3 *db = db_open(path);
	int round = 0;

	for (size_t r = 0; r < sizeof(runs) / sizeof(runs[0]); r++) {
		int transactions = runs[r].transactions / (sizes->repeats < 5 ? 2 : 1);
		int batch = runs[r].batch;
		struct series mine = { 0 }, limit = { 0 };

		for (int i = 0; i < sizes->repeats; i++) {
			bool first = i % 2 == 0;

			if (first)
				series_add(&mine, ours(db, transactions, batch, runs[r].how));
			series_add(&limit, raw(db, transactions, batch, round++));
			if (!first)
				series_add(&mine, ours(db, transactions, batch, runs[r].how));
			db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
		}
		report("publish", hows[runs[r].how], batch, &mine, &limit);
	}
	sqlite3_close(db);
}
