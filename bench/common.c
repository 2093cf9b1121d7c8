/* SPDX-License-Identifier: Apache-2.0 */

#include "bench.h"

#include <stdio.h>

void db_exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
}

sqlite3 *db_open(const char *path)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		die(path, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 5000);
	db_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		    "PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0;"
		    "PRAGMA wal_autocheckpoint = 0");
	return db;
}

sqlite3_stmt *db_prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
	return statement;
}

void db_done(sqlite3 *db, sqlite3_stmt *statement)
{
	if (sqlite3_step(statement) != SQLITE_DONE)
		die(sqlite3_sql(statement), sqlite3_errmsg(db));
	sqlite3_reset(statement);
}

int64_t db_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = db_prepare(db, sql);
	int64_t number =
		sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;

	sqlite3_finalize(statement);
	return number;
}

void fill(sqlite3 *db, int n)
{
	sqlite3_stmt *insert = db_prepare(db, "INSERT INTO outbox_message (type, key, payload)"
					      " VALUES ('bench.message', ?, ?)");

	for (int i = 0; i < n; i++) {
		char key[32];

		if (i % 10000 == 0)
			db_exec(db, i ? "COMMIT; PRAGMA wal_checkpoint(TRUNCATE); BEGIN" : "BEGIN");
		snprintf(key, sizeof(key), "key-%d", i % 10000);
		sqlite3_bind_text(insert, 1, key, -1, SQLITE_TRANSIENT);
		sqlite3_bind_text(insert, 2, payload(), 300, SQLITE_STATIC);
		db_done(db, insert);
	}
	db_exec(db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
	sqlite3_finalize(insert);
}

void report(const char *bench, const char *what, int batch, const struct series *ours,
	    const struct series *raw)
{
	double mine = series_median(ours), limit = series_median(raw);

	printf("{\"bench\":\"%s\",\"what\":\"%s\",\"batch\":%d,\"unit\":\"messages/s\",\"ours\":%.0f,"
	       "\"raw\":%.0f,\"ratio\":%.3f,\"repeats\":%zu}\n",
	       bench, what, batch, mine, limit, limit > 0 ? mine / limit : 0, ours->count);
	fflush(stdout);
}
