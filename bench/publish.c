/* SPDX-License-Identifier: Apache-2.0 */

/* Publishing: outbox_publish_sqlite beside the same INSERT by the plain library, same file. */

#include "bench.h"

#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

static double ours(sqlite3 *db, int transactions, int batch)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	double start = now_seconds();
	char key[32];

	message.type = "bench.message";
	message.key = key;
	message.data = payload();
	message.size = 300;
	for (int t = 0; t < transactions; t++) {
		db_exec(db, "BEGIN IMMEDIATE");
		for (int i = 0; i < batch; i++) {
			snprintf(key, sizeof(key), "key-%d", i);
			if (outbox_publish_sqlite(db, &message, &err) != OUTBOX_OK)
				die("publish", err.message);
		}
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
	} runs[] = { { 1, 400 }, { 100, 100 }, { 1000, 20 } };
	sqlite3 *db = db_open(path);

	for (size_t r = 0; r < sizeof(runs) / sizeof(runs[0]); r++) {
		struct series mine = { 0 }, limit = { 0 };

		for (int i = 0; i < sizes->repeats; i++) {
			bool first = i % 2 == 0;

			if (first)
				series_add(&mine, ours(db, runs[r].transactions, runs[r].batch));
			series_add(&limit, raw(db, runs[r].transactions, runs[r].batch, i));
			if (!first)
				series_add(&mine, ours(db, runs[r].transactions, runs[r].batch));
			db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
		}
		report("publish", "sqlite", runs[r].batch, &mine, &limit);
	}
	sqlite3_close(db);
}
