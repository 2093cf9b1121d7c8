/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "core/message.h"
#include "store/sqlite/db.h"
#include "store/sqlite/insert.h"
#include "store/sqlite/ops.h"

#include <stdlib.h>

static int append(struct sqlite_store *s, const struct outbox_message *messages, size_t n,
		  struct sqlite_inserted *done, struct outbox_error *err)
{
	_cleanup_(sqlite_insert_deinit) struct sqlite_insert insert = { 0 };
	outbox_time now = sqlite_now(s);
	int r;

	r = sqlite_insert_init(&insert, s->db, err);
	for (size_t i = 0; i < n && r == OUTBOX_OK; i++) {
		struct outbox_message m = message_view(&messages[i]);
		char id[37];

		if (!m.id)
			outbox_uuid(s->clock, s->random, id);
		r = sqlite_insert_message(&insert, &m, m.id ? m.id : id, now, &done[i], err);
	}
	return r;
}

static void free_inserted(struct sqlite_inserted **done)
{
	free(*done);
}

int sqlite_append(struct outbox_store *store, const struct outbox_message *messages,
		  size_t n_messages, int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	_cleanup_(free_inserted) struct sqlite_inserted *done = NULL;
	struct sqlite_store *s = sqlite_of(store);
	int r;

	done = calloc(n_messages ? n_messages : 1, sizeof(*done));
	if (!done)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_end(s, append(s, messages, n_messages, done, err), err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		if (ret_seqs)
			ret_seqs[i] = done[i].seq;
		if (ret_repeated)
			ret_repeated[i] = done[i].repeated;
	}
	return r;
}
