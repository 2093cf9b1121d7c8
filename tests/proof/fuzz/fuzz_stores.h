/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_STORES_H
#define FUZZ_STORES_H

#include <outbox/store.h>

#define FUZZ_START ((outbox_time)1700000000 * OUTBOX_SECONDS)

struct fuzz_store {
	struct outbox_store *store;
	struct outbox_arena *arena; /* of what is looked at */
};

/*
 * The memory store and the SQLite store with the same content: 40 messages for the targets "events"
 * and "partner" (without commands), in every state that a list knows. Made at the first call.
 */
void fuzz_stores(struct fuzz_store stores[2]);

#endif
