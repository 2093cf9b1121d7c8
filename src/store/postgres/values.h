/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_VALUES_H
#define STORE_POSTGRES_VALUES_H

/* Binary values: arguments of a statement, borrowed until the call is over, and columns of its result. */

#include <outbox/arena.h>
#include <outbox/clock.h>
#include <outbox/error.h>

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pg_type {
	PG_TEXT,
	PG_INT8,
	PG_INT4,
	PG_BOOL,
	PG_TIME,
	PG_BYTES,
	PG_TEXTS, /* text[], elements may be NULL */
	PG_INT8S,
	PG_INT4S,
	PG_BOOLS,
	PG_TIMES,  /* timestamptz[], 0 is NULL */
	PG_BYTESS, /* bytea[], elements may be NULL */
	PG_SPANS   /* text[] whose elements have a size and no NUL at their end */
};

struct pg_bytes {
	const void *data;
	size_t size;
};

struct pg_arg {
	enum pg_type type;
	int64_t number; /* INT8, INT4, BOOL, TIME (0 is NULL) */
	const void *pointer; /* text, bytes, the first element; NULL is NULL; an array of none is empty */
	size_t count;        /* bytes, elements */
};

#define ARG_TEXT(x) ((struct pg_arg){ .type = PG_TEXT, .pointer = (x) })
#define ARG_INT8(x) ((struct pg_arg){ .type = PG_INT8, .number = (x) })
#define ARG_INT4(x) ((struct pg_arg){ .type = PG_INT4, .number = (x) })
#define ARG_BOOL(x) ((struct pg_arg){ .type = PG_BOOL, .number = (x) })
#define ARG_TIME(x) ((struct pg_arg){ .type = PG_TIME, .number = (x) }) /* 0 is NULL */
#define ARG_BYTES(x, n) ((struct pg_arg){ .type = PG_BYTES, .pointer = (x), .count = (n) })
/* An array: PG_TEXTS of const char *, PG_INT8S and PG_TIMES of int64_t, PG_INT4S of int32_t, PG_BOOLS of
 * bool, PG_BYTESS and PG_SPANS of struct pg_bytes. */
#define ARG_ARRAY(t, x, n) ((struct pg_arg){ .type = (t), .pointer = (x), .count = (n) })

#define PG_ARGS_MAX 32
struct pg_args {
	size_t count;
	struct pg_arg values[PG_ARGS_MAX];
};

#define ARGS(...)                                                                     \
	(&(const struct pg_args){ .count = sizeof((struct pg_arg[]){ __VA_ARGS__ }) / \
					   sizeof(struct pg_arg),                     \
				  .values = { __VA_ARGS__ } })

/* As libpq wants them. */
struct pg_params {
	int count;
	unsigned types[PG_ARGS_MAX];
	const char *values[PG_ARGS_MAX];
	int lengths[PG_ARGS_MAX];
	int formats[PG_ARGS_MAX];
	char *buffer; /* owned: what numbers and arrays became */
};

/* False: out of memory. args may be NULL. */
bool pg_params_init(struct pg_params *params, const struct pg_args *args);
void pg_params_deinit(struct pg_params *params);

/* PostgreSQL counts from 2000. */
#define PG_EPOCH INT64_C(946684800000000)

static inline void pg_clearp(PGresult **result)
{
	PQclear(*result);
}

/* ---- columns of a binary result ------------------------------------------------------------- */

int64_t pg_int(const PGresult *result, int row, int column);      /* int2/4/8, bool; NULL: 0 */
bool pg_bool(const PGresult *result, int row, int column);        /* NULL: false */
outbox_time pg_time(const PGresult *result, int row, int column); /* NULL, -infinity: 0 */
const char *pg_peek(const PGresult *result, int row, int column); /* NULL: "" */
/* A copy in the arena; *ret_text is NULL for NULL. */
int pg_text(const PGresult *result, int row, int column, struct outbox_arena *arena,
	    const char **ret_text, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The elements of a bigint[] or integer[], at most max; returns how many there are. No NULLs. */
size_t pg_ints(const PGresult *result, int row, int column, int64_t *ret_values, size_t max);

#endif
