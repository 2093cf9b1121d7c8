/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_DB_H
#define STORE_SQLITE_DB_H

/*
 * One connection: its statements, its transactions, its errors. Every file of this driver works
 * through these; only insert.c, which also runs on an application's connection, calls sqlite3_step() itself.
 */

#include <outbox/store.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/retention.h"
#include "store/sqlite/statements.h"

struct sqlite_route;

struct sqlite_store {
	struct outbox_store base;
	sqlite3 *db;
	struct outbox_clock *clock;
	struct outbox_random *random;
	char *path;
	char name[128];              /* the store's short name */
	char source[160];            /* "/outbox/<name>" */
	int busy_ms;                 /* the busy timeout */
	dev_t device;                /* that the file is on */
	bool inside;                 /* between sqlite_begin() and sqlite_end() */
	bool ready;                  /* the schema was looked at and is ours */
	int lanes;                   /* once ready */
	struct sqlite_route *routes; /* compiled routes, by target and version */
	struct retention_progress purging;
	sqlite3_stmt *statements[DB_STATEMENTS];
};

/* A value to bind. */
struct sqlite_arg {
	enum { DB_ARG_NULL, DB_ARG_INT, DB_ARG_TEXT, DB_ARG_STRING, DB_ARG_BYTES } type;
	int64_t number; /* or the size of a string or of bytes */
	const char *text;
};

#define ARG_INT(x)                                \
	{                                         \
		.type = DB_ARG_INT, .number = (x) \
	}
/* NULL text is NULL */
#define ARG_TEXT(x)                              \
	{                                        \
		.type = DB_ARG_TEXT, .text = (x) \
	}
/* size bytes of text, or of anything; NULL is NULL */
#define ARG_STRING(x, size)                                                   \
	{                                                                     \
		.type = DB_ARG_STRING, .number = (int64_t)(size), .text = (x) \
	}
#define ARG_BYTES(x, size)                                                   \
	{                                                                    \
		.type = DB_ARG_BYTES, .number = (int64_t)(size), .text = (x) \
	}
/* 0 is NULL */
#define ARG_TIME(x)                                                   \
	{                                                             \
		.type = (x) ? DB_ARG_INT : DB_ARG_NULL, .number = (x) \
	}

#define DB_ARGS_MAX 25
struct sqlite_args {
	struct sqlite_arg values[DB_ARGS_MAX]; /* those behind the last one given bind NULL */
};

#define ARGS(...) (&(const struct sqlite_args){ .values = { __VA_ARGS__ } })

enum db_mode { DB_READ = 1, DB_WRITE = 2 };

static inline struct sqlite_store *sqlite_of(struct outbox_store *store)
{
	return (struct sqlite_store *)store;
}

static inline outbox_time sqlite_now(const struct sqlite_store *s)
{
	return s->clock->wall(s->clock);
}

/* A new fence token. */
static inline int64_t sqlite_token(const struct sqlite_store *s)
{
	return (int64_t)(s->random->next(s->random) >> 1);
}

const char *sqlite_statement_text(enum sqlite_statement id);

/* The status for a result code, with "what: SQLite's text" as the message. */
int sqlite_fail(sqlite3 *db, int rc, const char *what, struct outbox_error *err);

/* To any statement; what is behind the last one given becomes NULL. A result code. */
int sqlite_bind(sqlite3_stmt *statement, const struct sqlite_args *args);

/* A prepared statement, ready to be stepped. Reset it (or let it be by sqlite_resetp) after use. */
int sqlite_query(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		 sqlite3_stmt **ret_statement, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Step to the next row. False when there is none, and the statement was reset, or when that failed: *r
 * says so. After a failure that *r says already nothing is done, so that a loop needs no other condition.
 */
bool sqlite_next(sqlite3_stmt *statement, int *r, struct outbox_error *err);

/* Query and step to the end. */
int sqlite_run(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The number in the first column of the first row; fallback without a row or for NULL. */
int sqlite_number(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		  int64_t fallback, int64_t *ret_number, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The text in the first column of the first row, cut to size; empty without a row or for NULL. */
int sqlite_string(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		  char *out, size_t size, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* SQL text without arguments and results. */
int sqlite_script(sqlite3 *db, const char *sql, const char *what,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

int sqlite_begin(struct sqlite_store *s, enum db_mode mode,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Ends the transaction: commits when r is OUTBOX_OK, rolls back otherwise. Returns r, or why the
 * commit failed. */
int sqlite_end(struct sqlite_store *s, int r, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * ECONN when the path no longer leads to the file that is open: it was moved, removed or replaced, and
 * what is written now is written elsewhere. A stat() or two: for what is done now and then.
 */
int sqlite_in_place(struct sqlite_store *s, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A column's text in the arena; *ret_text is NULL for NULL. ENOMEM. */
int sqlite_text(sqlite3_stmt *statement, int column, struct outbox_arena *arena,
		const char **ret_text, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A column's text that lives until the statement's next step; NULL for NULL, or "" with sqlite_peek.
 * SQLite gives NULL as well when it has no memory for the text: *r, which must not be a failure's yet,
 * becomes ENOMEM then. Nothing else in this driver calls sqlite3_column_text().
 */
const char *sqlite_look(sqlite3_stmt *statement, int column, int *r, struct outbox_error *err);
const char *sqlite_peek(sqlite3_stmt *statement, int column, int *r, struct outbox_error *err);

/* Copy borrowed texts to the arena; NULL stays NULL. ENOMEM. */
int sqlite_keep(const char **const *texts, size_t n, struct outbox_arena *arena,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Room for one more in the list that this points to: malloc()'s, with *capacity elements. ENOMEM. */
int sqlite_grow(void *list, size_t *capacity, size_t count, size_t size,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Bytes of the write-ahead log's file. */
int64_t sqlite_wal_size(struct sqlite_store *s);

static inline void sqlite_resetp(sqlite3_stmt **statement)
{
	sqlite3_reset(*statement);
}

#endif
