/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_drop(struct outbox_store *store, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_drop: not yet");
}

int pg_truncate(struct outbox_store *store, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_truncate: not yet");
}
