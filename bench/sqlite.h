/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SQLITE_H
#define BENCH_SQLITE_H

/* SQLite by its plain library: the log filled, and read in batches by the shortest loop. */

#include "series.h"

#include <sqlite3.h>
#include <stdint.h>

/* Open with the settings that our own connections have. */
sqlite3 *db_open(const char *path);
void db_exec(sqlite3 *db, const char *sql);
sqlite3_stmt *db_prepare(sqlite3 *db, const char *sql);
/* Step a statement that returns no rows, then reset it. */
void db_done(sqlite3 *db, sqlite3_stmt *statement);
int64_t db_number(sqlite3 *db, const char *sql);

/* Append n messages, ten thousand keys in turn. */
void fill(sqlite3 *db, int n);

enum db_column { COLUMN_ID = 1, COLUMN_TYPE = 2, COLUMN_KEY = 7, COLUMN_PAYLOAD = 19 };

/* What is done with a batch that was read: with each row while it is there, then with the whole. */
struct db_each {
	void (*row)(struct db_each *each, sqlite3_stmt *row);
	void (*end)(struct db_each *each);
};

/* Read every column of a row. */
void db_touch(sqlite3_stmt *row);

/*
 * A plain loop over the log, in messages a second: SELECT of the columns of the next rows; with receipts also
 * one row into them and a COMMIT a batch. each NULL: every column is read, and that is all.
 */
double db_raw_pass(sqlite3 *db, bool receipts, int batch, int messages, struct db_each *each);

#endif
