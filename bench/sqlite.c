/* SPDX-License-Identifier: Apache-2.0 */

#include "sqlite.h"

#include <stdint.h>
#include <stdio.h>

/* What every message has is read into this, so that no read can be left out. */
static volatile int64_t sink;

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

/* The columns that the relay reads, and enum db_column names some of. */
#define COLUMNS                                                                                    \
	"seq, id, type, kind, source, subject, topic, key, content_type, headers, correlation_id," \
	" causation_id, traceparent, published, priority, event_time, created_at, due_at,"         \
	" expires_at, payload, payload_bin"

void db_touch(sqlite3_stmt *row)
{
	int columns = sqlite3_column_count(row);

	for (int c = 0; c < columns; c++) {
		if (sqlite3_column_type(row, c) == SQLITE_INTEGER)
			sink += sqlite3_column_int64(row, c);
		else if (sqlite3_column_text(row, c))
			sink += sqlite3_column_bytes(row, c);
	}
}

static int raw_batch(sqlite3_stmt *rows, int64_t *pos, int batch, struct db_each *each)
{
	int taken = 0;

	sqlite3_bind_int64(rows, 1, *pos);
	sqlite3_bind_int(rows, 2, batch);
	while (sqlite3_step(rows) == SQLITE_ROW) {
		*pos = sqlite3_column_int64(rows, 0);
		if (each)
			each->row(each, rows);
		else
			db_touch(rows);
		taken++;
	}
	sqlite3_reset(rows);
	if (each)
		each->end(each);
	return taken;
}

/* What notes how far the raw loop is: the row that a relay writes a batch, too. */
struct noter {
	sqlite3_stmt *receipt, *begin, *commit;
};

static struct noter noter_open(sqlite3 *db)
{
	return (struct noter){
		.receipt = db_prepare(
			db, "INSERT INTO outbox_receipt (target, lane, n, token, owner, settled_at,"
			    " route_version, from_seq, pos, claim_end, claim_count, delivered)"
			    " VALUES ('raw', 0, ?, ?, 'raw', ?, 1, ?, ?, ?, ?, ?)"),
		.begin = db_prepare(db, "BEGIN IMMEDIATE"),
		.commit = db_prepare(db, "COMMIT"),
	};
}

static void noter_close(struct noter *noter)
{
	sqlite3_finalize(noter->receipt);
	sqlite3_finalize(noter->begin);
	sqlite3_finalize(noter->commit);
}

static void note(sqlite3 *db, const struct noter *noter, int64_t from, int64_t pos, int taken)
{
	static int64_t n;

	sqlite3_bind_int64(noter->receipt, 1, ++n);
	sqlite3_bind_int64(noter->receipt, 2, n * 7919);
	sqlite3_bind_int64(noter->receipt, 3, n * 1000);
	sqlite3_bind_int64(noter->receipt, 4, from);
	sqlite3_bind_int64(noter->receipt, 5, pos);
	sqlite3_bind_int64(noter->receipt, 6, pos);
	sqlite3_bind_int(noter->receipt, 7, taken);
	sqlite3_bind_int(noter->receipt, 8, taken);
	db_done(db, noter->receipt);
	db_done(db, noter->commit);
}

double db_raw_pass(sqlite3 *db, bool receipts, int batch, int messages, struct db_each *each)
{
	sqlite3_stmt *rows = db_prepare(db, "SELECT " COLUMNS " FROM outbox_message WHERE seq > ?"
					    " ORDER BY seq LIMIT ?");
	struct noter noter = { 0 };
	int64_t pos = 0, from = 0;
	int taken, total = 0;
	double start, seconds;

	if (receipts)
		noter = noter_open(db);
	start = now_seconds();
	do {
		if (receipts)
			db_done(db, noter.begin);
		taken = raw_batch(rows, &pos, batch, each);
		if (receipts)
			note(db, &noter, from, pos, taken);
		from = pos;
		total += taken;
	} while (taken == batch);
	seconds = now_seconds() - start;
	sqlite3_finalize(rows);
	noter_close(&noter);
	if (total != messages)
		die("raw drain", "not every message was read");
	return messages / seconds;
}
