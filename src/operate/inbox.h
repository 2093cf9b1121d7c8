/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_INBOX_H
#define OPERATE_INBOX_H

/* Keeping the inbox small: what is removed from it, and how long an id must be kept at the least. */

#include "operate/bulk.h"

#include <outbox/inbox.h>
#include <outbox/store.h>

#include <stdbool.h>

struct config;

/* How long an id is kept unless something else is said. */
#define INBOX_RETAIN_DEFAULT (30 * OUTBOX_DAYS)

/* All rows before filter->before, in short transactions. ret_removed is written on failure, too: what is gone by then. */
int inbox_prune_all(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		    const struct bulk *bulk, int64_t *ret_removed,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Are ids kept for a shorter time than the longest after which a duplicate can come? Retries and replays out of the log are
 * looked at (docs/inbox.md). config NULL: everything has its default. False: text is not written.
 */
bool inbox_kept_too_short(const struct config *config, outbox_time kept, char *text, size_t size);

#endif
