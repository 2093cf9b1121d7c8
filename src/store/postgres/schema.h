/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_SCHEMA_H
#define STORE_POSTGRES_SCHEMA_H

#include "store/postgres/db.h"

#define PG_DEFAULT_LANES 4

/* Finds the outbox's schema, looks at its version and fills s->lanes. ESCHEMA, with the remedy, when it
 * is not ours. */
int pg_schema_ready(struct pg_store *s, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Set the schema's name, as given or found. EINVAL when it is too long. */
int pg_schema_name(struct pg_store *s, const char *name, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
