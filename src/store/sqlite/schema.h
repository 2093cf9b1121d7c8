/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_SCHEMA_H
#define STORE_SQLITE_SCHEMA_H

/* The schema's versions, the way from one to the next, and its code. */

#include "store/sqlite/db.h"

#define DEFAULT_LANES 1

struct sqlite_migration {
	int version;    /* that it leads to, one more than the one before */
	int min_reader; /* the oldest program version that can work with the result */
	const char *sql;
};

struct sqlite_migrations {
	const struct sqlite_migration *list;
	size_t count;
	const char *code; /* views and triggers, for the newest */
};

/* Those of this program. */
extern const struct sqlite_migrations sqlite_migrations;

struct sqlite_version {
	int schema;     /* 0: no outbox here */
	int min_reader; /* the oldest program that can work with it */
	int lanes;
};

/*
 * sqlite_begin() after a look at the schema, once per connection, which fills s->lanes: what nearly every op
 * starts with. ESCHEMA, with the remedy, when the schema is not ours.
 */
int sqlite_enter(struct sqlite_store *s, enum db_mode mode,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A store on an application's connection, in the transaction that is open there; ESCHEMA as above. Only what needs no
 * transaction of its own may be done with it. give_back() removes what was prepared, and nothing else.
 */
int sqlite_borrow(struct sqlite_store *s, sqlite3 *db, struct outbox_clock *clock,
		  struct outbox_random *random, struct outbox_error *err) OUTBOX_MUSTCHECK;
void sqlite_give_back(struct sqlite_store *s);

/* What is there, in the transaction that is open. */
int sqlite_schema_version(struct sqlite_store *s, struct sqlite_version *ret_version,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Removes every view and trigger that any version has had. */
extern const char sqlite_drop_code_sql[];
/* And every table. */
extern const char sqlite_drop_tables_sql[];

/* init and upgrade with migrations handed in, for tests. */
int sqlite_schema_init(struct sqlite_store *s, const struct sqlite_migrations *migrations,
		       const struct outbox_init_options *options,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
int sqlite_schema_upgrade(struct sqlite_store *s, const struct sqlite_migrations *migrations,
			  const struct outbox_init_options *options, int *ret_from,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
