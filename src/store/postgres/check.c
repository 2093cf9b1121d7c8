/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_check(struct outbox_store *store,
		 void (*say)(void *context, int level, const char *subject, const char *text),
		 void *context, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_check: not yet");
}
