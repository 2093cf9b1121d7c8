/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_SCHEMA_H
#define STORE_POSTGRES_SCHEMA_H

/* The schema: the SQL text that makes it, its version, and statements that rely on it. */

#include "base/buf.h"
#include "store/postgres/db.h"

#define PG_DEFAULT_LANES 4
#define PG_SCRIPT_MAX ((size_t)4 << 20)

/* The version of the schema that this program makes. */
int pg_newest(void);

/* Finds the outbox's schema, looks at its version and fills s->lanes. ESCHEMA, with the remedy, when it
 * is not ours. */
int pg_schema_ready(struct pg_store *s, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* pg_call() after a look at the schema, once per connection: what nearly every op uses. */
int pg_op(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
	  PGresult **ret_result, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Set the schema's name, as given or found. EINVAL when it is too long. */
int pg_schema_name(struct pg_store *s, const char *name, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How a script begins that makes something: its transaction, in this schema (an identifier; NULL: the session's own). */
void pg_script_begin(struct buf *out, const char *quoted);

/*
 * All that leads from version `from` (0: nothing there) to the newest, in one transaction. quoted: the
 * schema as an identifier; NULL: the session's own. Check out->failed.
 */
void pg_schema_script(struct buf *out, const char *quoted, int from,
		      const struct outbox_init_options *options);

/* What removes all that a whole script makes, in one transaction. quoted as above. reset.c */
void pg_drop_script(struct buf *out, const char *quoted);

#endif
