/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_SCRIPT_H
#define STORE_POSTGRES_SCRIPT_H

/* The schema as SQL text. */

#include "base/buf.h"

#include <outbox/store.h>

#define PG_SCRIPT_MAX ((size_t)4 << 20)

/* The version of the schema that this program makes. */
int pg_newest(void);

/*
 * All that leads from version `from` (0: nothing there) to the newest, in one transaction. quoted: the
 * schema as an identifier; NULL: the session's own. Check out->failed.
 */
void pg_schema_script(struct buf *out, const char *quoted, int from,
		      const struct outbox_init_options *options);

/* The part of it that changes tables, types and indexes. */
void pg_schema_changes(struct buf *out, int from);

/* Functions that are made now keep this search_path: our schema alone, temporary tables last. */
void pg_set_path(struct buf *out, const char *quoted);

/* What removes all that a whole script makes, in one transaction. quoted as above. reset.c */
void pg_drop_script(struct buf *out, const char *quoted);

#endif
