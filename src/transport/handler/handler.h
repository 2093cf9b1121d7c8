/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_HANDLER_H
#define TRANSPORT_HANDLER_H

/*
 * In-process callbacks per event type, in the table of "handler:" and those of "handler:NAME" behind it. A table is filled before the relay starts and only read
 * afterwards, so workers share it without a lock.
 */

#include <outbox/relay.h>

#include "base/cleanup.h"

struct handler_entry {
	char *type;
	outbox_handler handler;
	void *context;
};

struct handler_table;

extern const struct outbox_transport_ops handler_transport_ops;

/* The table without a name, which owns those that get one. */
int handler_table_new(struct handler_table **ret_table, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct handler_table *handler_table_free(struct handler_table *table);
DEFINE_CLEANUP(struct handler_table *, handler_table_free)

/* The one of this name, made when there is none yet. NULL: the first itself. EINVAL for what is no name. */
int handler_table_named(struct handler_table *first, const char *name,
			struct handler_table **ret_table, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The one of this name, NULL when there is none; "": the first. */
const struct handler_table *handler_table_lookup(const struct handler_table *first, const char *name);

/* A handler for one exact type, or for "*": what no other takes. A type twice is ECONFLICT. */
int handler_table_add(struct handler_table *table, const char *type, outbox_handler handler,
		      void *context, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The handler of exactly this type, else that of "*", else NULL. */
const struct handler_entry *handler_table_find(const struct handler_table *table, const char *type);

size_t handler_table_count(const struct handler_table *table);

#endif
