/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_list(struct outbox_store *store, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_list: not yet");
}

int pg_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_get: not yet");
}
