/* SPDX-License-Identifier: Apache-2.0 */
#include "core/redacted_key.h"
#include "memory_store/db.h"
#include "store/store.h"

#include <string.h>

/* What may be personal goes; see struct outbox_redact. */

static int all_finished(const struct memory_db *db, const struct memory_message *row,
			struct outbox_error *err)
{
	if (!db->n_targets)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "no target is registered, so it still waits for one; it can be redacted "
				   "once it is delivered");
	for (size_t i = 0; i < db->n_targets; i++) {
		int why, state = memory_delivery_state(db, db->targets[i], row, &why);

		if (state && state != OUTBOX_DELIVERED && state != OUTBOX_DISCARDED)
			return outbox_fail(
				err, OUTBOX_ECONFLICT,
				"its delivery to %s is %s; only a message whose deliveries are "
				"all delivered or discarded can be redacted: %s or discard it "
				"first",
				db->targets[i]->name, outbox_state_name(state),
				state == OUTBOX_FAILED ? "requeue it" : "wait for it");
	}
	return OUTBOX_OK;
}

/* Errors may quote the message. */
static void forget_errors(struct memory_db *db, const struct memory_message *row)
{
	for (size_t i = 0; i < db->n_targets; i++) {
		struct memory_detour *detour = memory_delivery(db, db->targets[i], row->seq)->detour;

		if (!detour)
			continue;
		memory_replace(&detour->error, NULL);
		memory_attempts_redact(detour);
		if (detour->dead)
			memory_replace(&detour->dead->reason, NULL);
	}
	for (size_t i = 0; i < db->n_audit; i++) {
		if (db->audit[i].id && strcmp(db->audit[i].id, row->m.id) == 0)
			memory_replace(&db->audit[i].detail, NULL);
	}
}

static void replace(struct memory_db *db, struct memory_message *row)
{
	char key[REDACTED_KEY_MAX];

	if (row->m.key) {
		redacted_key(row->m.key, key);
		row->m.key = memory_intern(db, key);
	}
	memory_amended_free(row);
	row->m.data = OUTBOX_REDACTED;
	row->m.size = strlen(OUTBOX_REDACTED);
	row->m.headers = NULL;
	row->m.n_headers = 0;
	row->m.subject = NULL;
	row->m.content_type = "application/json";
}

static bool is_tombstone(const struct outbox_message *m)
{
	return m->size == strlen(OUTBOX_REDACTED) &&
	       memcmp(m->data, OUTBOX_REDACTED, m->size) == 0 && !m->n_headers && !m->subject &&
	       (!m->key || strncmp(m->key, REDACTED_KEY_PREFIX, strlen(REDACTED_KEY_PREFIX)) == 0);
}

int memory_redact(struct memory_store *s, const struct outbox_redact *redact, bool *ret_done,
		  struct outbox_error *err)
{
	struct memory_message *row = memory_log_find(s->db, redact->id);
	bool done = false;
	int status;

	if (!row || !row->committed)
		return store_no_message(redact->id, err);
	if (!is_tombstone(&row->m)) {
		status = all_finished(s->db, row, err);
		if (status)
			return status;
		forget_errors(s->db, row);
		replace(s->db, row);
		memory_audit_add(s->db, &(struct memory_audit){
						.at = memory_now(s),
						.actor = memory_text(redact->actor),
						.action = memory_text("redact"),
						.id = memory_text(redact->id),
						.reason = memory_text(redact->reason),
					});
		done = true;
	}
	if (ret_done)
		*ret_done = done;
	return OUTBOX_OK;
}
