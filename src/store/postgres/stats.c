/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_stats(struct outbox_store *store, struct outbox_arena *arena,
		 struct outbox_stats *ret_stats, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_stats: not yet");
}
