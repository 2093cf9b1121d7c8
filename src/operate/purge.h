/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_PURGE_H
#define OPERATE_PURGE_H

/* Removing finished messages, after an archive of them was written or without one. */

#include "operate/bulk.h"
#include "operate/selection.h"

#include <outbox/store.h>

/* EINVAL: it does not say how old messages must be. */
int purge_check(const struct outbox_purge *purge, enum naming naming,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How many messages a purge would remove; with purge->limit so many at the most, and then ret->more. */
int purge_count(struct outbox_store *store, const struct outbox_purge *purge,
		const struct bulk *bulk, struct outbox_purged *ret_purged,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The places in the log of messages that an archive has. */
struct purge_list {
	int64_t *seqs;
	size_t count, capacity;
};

void purge_list_deinit(struct purge_list *list);

/* Write what a purge would remove into a new file, which is complete on the disk when this returns; nothing is removed, and
 * no file made where there is nothing. */
int purge_archive(struct outbox_store *store, const struct outbox_purge *purge, const char *path,
		  const struct bulk *bulk, struct purge_list *list,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Remove all of it, in short transactions; only: of these, and nothing that became old meanwhile. NULL: any. What is removed
 * is added to total, also when it fails in the middle. ECONFLICT: it was ended early. */
int purge_all(struct outbox_store *store, const struct outbox_purge *purge,
	      const struct purge_list *only, const struct bulk *bulk, struct outbox_purged *total,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
