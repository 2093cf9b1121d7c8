/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_purge(struct outbox_store *store, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_purge: not yet");
}

int pg_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		     struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		     size_t *ret_count, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_purgeable: not yet");
}
