/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_audit(struct outbox_store *store, const char *id, size_t limit,
		 struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		 struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_audit: not yet");
}
