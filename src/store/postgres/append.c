/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int pg_append(struct outbox_store *store, const struct outbox_message *messages,
		  size_t n_messages, int64_t *ret_seqs, bool *ret_repeated,
		  struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOTSUP, "pg_append: not yet");
}
