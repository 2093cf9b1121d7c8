/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "core/message.h"
#include "memory_store/db.h"

#include <stdlib.h>

/* An application's transaction: the seqs it inserted, in order. */
struct memory_tx {
	struct memory_db *db;
	int64_t *seqs;
	size_t count, capacity;
};

struct memory_tx *memory_tx_begin(struct memory_db *db)
{
	struct memory_tx *tx = memory_alloc(sizeof(*tx));

	tx->db = db;
	pthread_mutex_lock(&db->lock);
	db->open_tx++;
	pthread_mutex_unlock(&db->lock);
	return tx;
}

static bool is_ours(const struct memory_tx *tx, int64_t seq)
{
	for (size_t i = tx->count; i > 0; i--) {
		if (tx->seqs[i - 1] == seq)
			return true;
	}
	return false;
}

static int publish(struct memory_tx *tx, const struct outbox_message *message, int64_t *ret_seq,
		   struct outbox_error *err)
{
	struct memory_db *db = tx->db;
	struct memory_message *row = NULL;
	char shown[80];
	int status;

	status = memory_schema_check(db, err);
	if (status)
		return status;
	if (message_view(message).id)
		row = memory_log_find(db, message->id);
	if (row && !row->committed && !is_ours(tx, row->seq))
		return outbox_fail(err, OUTBOX_EBUSY,
				   "id \"%s\" is being published by another transaction; try again",
				   text_shown(shown, sizeof(shown), message->id));
	if (!row) {
		row = memory_log_insert(db, message, db->clock->wall(db->clock), &db->random.base,
					db->clock);
		tx->seqs = memory_grow(tx->seqs, tx->count, &tx->capacity, sizeof(*tx->seqs));
		tx->seqs[tx->count++] = row->seq;
	}
	if (ret_seq)
		*ret_seq = row->seq;
	return OUTBOX_OK;
}

int memory_tx_publish(struct memory_tx *tx, const struct outbox_message *message, int64_t *ret_seq,
		      struct outbox_error *err)
{
	int status;

	pthread_mutex_lock(&tx->db->lock);
	status = publish(tx, message, ret_seq, err);
	pthread_mutex_unlock(&tx->db->lock);
	return status;
}

size_t memory_tx_savepoint(struct memory_tx *tx)
{
	return tx->count;
}

void memory_tx_rollback_to(struct memory_tx *tx, size_t savepoint)
{
	pthread_mutex_lock(&tx->db->lock);
	while (tx->count > savepoint)
		memory_log_remove(tx->db, memory_log_row(tx->db, tx->seqs[--tx->count]));
	pthread_mutex_unlock(&tx->db->lock);
}

static struct memory_tx *tx_end(struct memory_tx *tx)
{
	pthread_mutex_lock(&tx->db->lock);
	tx->db->open_tx--;
	pthread_mutex_unlock(&tx->db->lock);
	free(tx->seqs);
	free(tx);
	return NULL;
}

struct memory_tx *memory_tx_commit(struct memory_tx *tx)
{
	if (!tx)
		return NULL;
	pthread_mutex_lock(&tx->db->lock);
	for (size_t i = 0; i < tx->count; i++)
		memory_log_commit(tx->db, memory_log_row(tx->db, tx->seqs[i]));
	pthread_mutex_unlock(&tx->db->lock);
	return tx_end(tx);
}

struct memory_tx *memory_tx_rollback(struct memory_tx *tx)
{
	if (!tx)
		return NULL;
	memory_tx_rollback_to(tx, 0);
	return tx_end(tx);
}

/* The op: a transaction of the store's own. */
int memory_append(struct memory_store *s, const struct outbox_message *messages, size_t n_messages,
		  int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	outbox_time now = memory_now(s);

	/* One that is not decided yet must be found before anything is written. */
	for (size_t i = 0; i < n_messages; i++) {
		struct outbox_message m = message_view(&messages[i]);
		const struct memory_message *row = m.id ? memory_log_find(s->db, m.id) : NULL;
		char shown[80];

		if (row && !row->committed)
			return outbox_fail(err, OUTBOX_EBUSY,
					   "id \"%s\" is being published by another transaction; "
					   "try again",
					   text_shown(shown, sizeof(shown), m.id));
	}
	for (size_t i = 0; i < n_messages; i++) {
		struct outbox_message m = message_view(&messages[i]);
		struct memory_message *row = m.id ? memory_log_find(s->db, m.id) : NULL;

		if (ret_repeated)
			ret_repeated[i] = row != NULL;
		if (!row) {
			row = memory_log_insert(s->db, &m, now, s->random, s->clock);
			memory_log_commit(s->db, row);
		}
		if (ret_seqs)
			ret_seqs[i] = row->seq;
	}
	return OUTBOX_OK;
}
