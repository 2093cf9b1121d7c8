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

/* ---- bands.c: which bands of priority a target gets when it is put; within target_put()'s transaction ---------- */

struct sqlite_bands {
	char name[OUTBOX_TARGET_NAME_MAX + 1]; /* whose band it was */
	struct band_state known;
	bool there;
	struct band_plan plan; /* from now on */
	int64_t log_end;
	int64_t start; /* a new one starts behind this place; 0: as it says itself */
};

int sqlite_bands_plan(struct sqlite_store *s, const struct outbox_target_def *def,
		      struct sqlite_bands *b, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* It was put: note its family, and end those of its bands that it had until now. */
int sqlite_bands_note(struct sqlite_store *s, const struct outbox_target_def *def,
		      const struct sqlite_bands *b, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
