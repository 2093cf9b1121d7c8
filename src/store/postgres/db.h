/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_DB_H
#define STORE_POSTGRES_DB_H

/*
 * One connection. pg_call() sends BEGIN, one statement and COMMIT in one pipeline, so an op is one
 * transaction and one round trip, also behind a pooler that gives each transaction another server
 * session; pg_op() (schema.h) is that with the schema checked. pg_hot_op() is the relay's: it keeps its
 * statement prepared where the connection is its own. Every wait has a deadline.
 */

#include <outbox/store.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/retention.h"
#include "store/postgres/values.h"

struct pg_readahead;
struct pg_prefetch;

struct pg_store {
	struct outbox_store base;
	PGconn *conn;
	struct outbox_clock *clock;
	struct outbox_random *random;
	bool client_clock;   /* tests: the clock handed in is the store's, not the database's */
	outbox_time timeout; /* of one call */
	char schema[64];     /* given in the URL, or found; "" before that */
	char quoted[140];    /* the same as an identifier: "app" in double quotes */
	char name[128];      /* the store's short name */
	char source[160];    /* "/outbox/<name>" */
	char where[256];     /* "host:port/database", for people; no secrets */
	bool broken;         /* the connection is of no use any more */
	bool direct;         /* no pooler between: the session is ours */
	bool prepared, prepared_prefetch, prepared_look; /* statements of pg_hot_op(), pg_look_op() */
	struct pg_prefetch *prefetch; /* asked after the last call, answers not read yet; borrowed */
	struct pg_readahead *readahead; /* one for each lane, see readahead.h; NULL before the first */
	bool ready;                     /* the schema was looked at and is ours */
	bool listening;                 /* publishers ring, and this connection hears it ... */
	bool holds_doorbell;            /* ... and it is the one because of which they do */
	int lanes;                      /* once ready */
	bool partitioned;               /* likewise */
	struct retention_progress purging;
};

static inline struct pg_store *pg_of(struct outbox_store *store)
{
	return (struct pg_store *)store;
}

enum pg_mode {
	PG_WRITE = 1, /* READ COMMITTED: every statement of a function sees what its locks waited for */
	PG_READ = 2 /* REPEATABLE READ, READ ONLY: one picture */
};

/*
 * One statement in one transaction. In its text, "@" stands for the outbox's schema and a dot:
 * "SELECT * FROM @outbox_lease($1)". Results are binary.
 * The caller frees with PQclear (pg_clearp); ret_result NULL: it does not matter.
 */
int pg_call(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
	    PGresult **ret_result, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Takes a statement's rows, for good. Called before its COMMIT is answered: what it makes of them counts only
 * if the op succeeds.
 */
struct pg_taker {
	int (*take)(struct pg_taker *taker, PGresult *rows, struct outbox_error *err);
};

/*
 * A statement that is asked right after a call, in a transaction of its own. Nobody waits for its answer: it is
 * read before the next call, and given to take() for good; NULL where there is none. Always the same sql.
 */
struct pg_prefetch {
	struct pg_prefetch *next; /* the one asked after it, for pg_hot_op() */
	const char *sql;
	struct pg_params params;
	void (*take)(struct pg_prefetch *prefetch, PGresult *rows);
};

/* One use of the statement of the hot path: what it is asked with, who takes its rows, what is asked afterwards. */
struct pg_hot {
	struct pg_params params;
	struct pg_taker *taker;
	struct pg_prefetch *prefetch; /* NULL: nothing */
};

/* What a hot op is besides its statements. */
struct pg_around {
	bool settles; /* one of them has something to settle */
	const char *last; /* a statement that comes last in the transaction, seldom; NULL: there is none */
	struct pg_params last_params;
};

/*
 * pg_call() for the one statement of the hot path, always the same one, as often as there are arguments for it, all in
 * one transaction: prepared, where the session is ours, and rows are read while the server commits to disk.
 * A prefetch is asked only where the session is ours. Takes the parameters of the hots, for good.
 */
int pg_hot_op(struct pg_store *s, const char *sql, struct pg_hot *hots, size_t count,
	      const struct pg_around *around, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* One statement that only reads, always the same one, as a transaction of its own: nothing is cheaper. */
int pg_look_op(struct pg_store *s, const char *sql, const struct pg_args *args,
	       PGresult **ret_result, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Read the answers to the last call's prefetches, if there were any. Every call does this first. */
int pg_prefetch_read(struct pg_store *s, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* SQL text of several statements, without arguments and results, in one transaction. */
int pg_script(struct pg_store *s, const char *sql, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The status for a failed result (may be NULL: the connection's own trouble), with the server's text. */
int pg_fail(struct pg_store *s, const PGresult *result, struct outbox_error *err);
/* The same of a result that has a SQLSTATE, on anybody's connection; and only the status. */
int pg_fail_result(const char *where, const PGresult *result, struct outbox_error *err);
int pg_status(const PGresult *result);
/* libpq's own texts end in a line break and may have several lines: one is enough. Cut to size. */
void pg_first_line(const char *text, char *out, size_t size);

/* The time for an op's `now` argument: the database's own (NULL), or the test's clock. */
struct pg_arg pg_now(const struct pg_store *s);
/* A receipt's token that nobody had before. */
struct pg_arg pg_new_token(const struct pg_store *s);

#endif
