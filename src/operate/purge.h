/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_PURGE_H
#define OPERATE_PURGE_H

#include <outbox/store.h>

/* How many messages a purge would remove; with purge->limit so many at the most, and then ret->more. */
int purge_count(struct outbox_store *store, const struct outbox_purge *purge,
		struct outbox_purged *ret_purged, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
