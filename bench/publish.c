/* SPDX-License-Identifier: Apache-2.0 */

/* Publishing: outbox_publish_sqlite beside the same INSERT by the plain library, same file. */

#include "bench.h"

#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

#define BATCH_MAX 1000

/* One call a message: the statement is prepared anew each time, since the connection is not ours. */
static void publish_singly(sqlite3 *db, const struct outbox_message *messages, int batch)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	for (int i = 0; i < batch; i++)
		if (outbox_publish_sqlite(db, &messages[i], &err) != OUTBOX_OK)
			die("publish", err.message);
}

static void publish_together(sqlite3 *db, const struct outbox_message *messages, int batch)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (outbox_publish_sqlite_batch(db, messages, (size_t)batch, 0, NULL, &err) != OUTBOX_OK)
		die("publish", err.message);
}

static double ours(sqlite3 *db, int transactions, int batch, bool singly)
{
	static struct outbox_message messages[BATCH_MAX];
	static char keys[BATCH_MAX][16];
	double start = now_seconds();

	for (int i = 0; i < batch; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
		messages[i] = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		messages[i].type = "bench.message";
		messages[i].key = keys[i];
		messages[i].data = payload();
		messages[i].size = 300;
	}
	for (int t = 0; t < transactions; t++) {
		db_exec(db, "BEGIN IMMEDIATE");
		if (singly)
			publish_singly(db, messages, batch);
		else
			publish_together(db, messages, batch);
		db_exec(db, "COMMIT");
	}
	return (double)transactions * batch / (now_seconds() - start);
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
		bool singly;
	} runs[] = { { 1, 400, true },
		     { 100, 100, false },
		     { 1000, 20, false },
		     { 100, 100, true },
		     { 1000, 20, true } };
	sqlite3 *db = db_open(path);
	int round = 0;

	for (size_t r = 0; r < sizeof(runs) / sizeof(runs[0]); r++) {
		int transactions = runs[r].transactions / (sizes->repeats < 5 ? 2 : 1);
		int batch = runs[r].batch;
		struct series mine = { 0 }, limit = { 0 };

		for (int i = 0; i < sizes->repeats; i++) {
			bool first = i % 2 == 0;

			if (first)
				series_add(&mine, ours(db, transactions, batch, runs[r].singly));
			series_add(&limit, raw(db, transactions, batch, round++));
			if (!first)
				series_add(&mine, ours(db, transactions, batch, runs[r].singly));
			db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
		}
		report("publish", runs[r].singly ? "one by one" : "together", batch, &mine, &limit);
	}
	sqlite3_close(db);
}
