/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_INSERT_H
#define STORE_POSTGRES_INSERT_H

/*
 * Messages as the arguments of outbox_publish_batch() in sql/postgres/publish.sql, for the store's
 * append() and for the client library.
 */

#include <outbox/message.h>

#include "store/postgres/values.h"

/* schema: as it is before a name, "" or "@". Columns: id, seq, repeated; a row for each message, in order. */
#define PG_INSERT_SQL(schema)                                                \
	"SELECT * FROM " schema                                              \
	"outbox_publish_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11," \
	" $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)"

enum { PG_INSERTED_SEQ = 1, PG_INSERTED_REPEATED = 2 };

struct pg_insert {
	size_t count;
	void *columns[20]; /* owned: an array of elements each */
	struct pg_args args;
};

int pg_insert_init(struct pg_insert *insert, size_t count, struct outbox_error *err) OUTBOX_MUSTCHECK;
void pg_insert_deinit(struct pg_insert *insert);

/* Message i, validated, in today's layout. id is borrowed, as is everything in the message. */
int pg_insert_put(struct pg_insert *insert, size_t i, const struct outbox_message *message,
		  const char *id, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* After the last of them. EINVAL: together they are larger than one statement may be. */
int pg_insert_finish(struct pg_insert *insert, bool lock_keys, struct pg_arg now,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
