/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_act(struct outbox_store *store, const struct outbox_act *act,
	       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_act: not yet");
}
