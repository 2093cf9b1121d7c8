/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_ROUTE_H
#define STORE_SQLITE_ROUTE_H

/*
 * A version of a target's routing never changes, so each is read once per connection and kept. Rows of
 * the log are matched here and not in SQL: cheaper, and the same code as on every other store.
 */

#include "core/bands.h"
#include "store/sqlite/db.h"

struct sqlite_route {
	char *target;
	int64_t version;
	struct outbox_route route;
	struct band_plan bands;
	bool everything;         /* matches every message */
	char **globs, **headers; /* what the route points to */
	struct sqlite_store *store;
	struct outbox_arena *scratch; /* for a message's headers, where the route asks for some */
	struct sqlite_route *next;
};

/* Borrowed from the store. EPROTO when this version has no rules. */
int sqlite_route_get(struct sqlite_store *s, const char *target, int64_t version,
		     const struct sqlite_route **ret_route,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write the rules of a new version. */
int sqlite_route_put(struct sqlite_store *s, const char *target, int64_t version,
		     const struct outbox_route *route, const struct band_plan *bands,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

struct sqlite_route *sqlite_routes_free(struct sqlite_route *routes);

#endif
