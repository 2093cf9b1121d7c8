/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_target_put: not yet");
}

int pg_target_pause(struct outbox_store *store, const char *target, bool pause,
			const char *actor, const char *reason, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_target_pause: not yet");
}

int pg_target_drop(struct outbox_store *store, const char *target, const char *actor,
		       const char *reason, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_target_drop: not yet");
}
