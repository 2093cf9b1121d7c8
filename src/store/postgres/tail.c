/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_tail(struct outbox_store *store, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_tail: not yet");
}
