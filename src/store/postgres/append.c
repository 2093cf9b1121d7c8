/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "core/message.h"
#include "store/postgres/db.h"
#include "store/postgres/insert.h"
#include "store/postgres/ops.h"

#include <stdlib.h>

static void free_ids(char (**ids)[37])
{
	free(*ids);
}

int pg_append(struct outbox_store *store, const struct outbox_message *messages, size_t n_messages,
	      int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	_cleanup_(pg_insert_deinit) struct pg_insert insert = { 0 };
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	_cleanup_(free_ids) char(*ids)[37] = NULL;
	struct pg_store *s = pg_of(store);
	int r;

	ids = calloc(n_messages ? n_messages : 1, sizeof(*ids));
	if (!ids)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = pg_insert_init(&insert, n_messages, err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		struct outbox_message m = message_view(&messages[i]);

		if (!m.id)
			outbox_uuid(s->clock, s->random, ids[i]);
		r = pg_insert_put(&insert, i, &m, m.id ? m.id : ids[i], err);
	}
	if (r == OUTBOX_OK)
		r = pg_insert_finish(&insert, false, pg_now(s), err);
	if (r == OUTBOX_OK)
		r = pg_op(s, PG_WRITE, PG_INSERT_SQL("@"), &insert.args, &rows, err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		if (ret_seqs)
			ret_seqs[i] = pg_int(rows, (int)i, PG_INSERTED_SEQ);
		if (ret_repeated)
			ret_repeated[i] = pg_bool(rows, (int)i, PG_INSERTED_REPEATED);
	}
	return r;
}
