/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/*
 * Each benchmark measures ours and the raw limit in turn (A B B A ...), because the machine is noisy,
 * and reports the medians. One JSON object a line on standard output.
 */

#include "series.h"

#include <sqlite3.h>
#include <stdint.h>

struct sizes {
	int repeats;
	int drain_messages;  /* in the log that is drained again and again */
	int memory_messages; /* in the log of the memory measurement */
	int idle_seconds;
};

/* ---- common.c ------------------------------------------------------------------------------ */

/* Open with the settings that our own connections have. */
sqlite3 *db_open(const char *path);
void db_exec(sqlite3 *db, const char *sql);
sqlite3_stmt *db_prepare(sqlite3 *db, const char *sql);
/* Step a statement that returns no rows, then reset it. */
void db_done(sqlite3 *db, sqlite3_stmt *statement);
int64_t db_number(sqlite3 *db, const char *sql);

void report(const char *bench, const char *what, int batch, const struct series *ours,
	    const struct series *raw);

/* ---- the benchmarks ------------------------------------------------------------------------ */

void bench_publish(const char *path, const struct sizes *sizes);
void bench_drain(const char *path, const struct sizes *sizes);
void bench_memory(const char *path, const char *outbox, const struct sizes *sizes);
void bench_idle(const char *path, const char *outbox, const struct sizes *sizes);
void bench_start(const char *outbox, const struct sizes *sizes);

/* Append n messages by the plain library, ten thousand keys in turn. */
void fill(sqlite3 *db, int n);

#endif
