/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_PARTITION_H
#define STORE_POSTGRES_PARTITION_H

/* A log in partitions: the janitor's part, sql/postgres/partition.sql. */

#include "store/postgres/db.h"

/* Keep partitions ahead of the log, and drop the oldest one if it may go: added to `purged`. */
int pg_partition_purge(struct pg_store *s, const struct outbox_purge *purge, int64_t limit,
		       struct outbox_purged *purged, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
