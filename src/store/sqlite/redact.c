/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Redaction: what may be personal goes, for good. The message stays where it is in the log, with its id,
 * type and times; its key becomes another of the same slot (core/redacted_key.h), so that no lane loses or
 * finds it anew. secure_delete: what is taken out is overwritten in the file, not only forgotten. The
 * write-ahead log has it until the next checkpoint; backups have it as long as they are kept.
 */
#include "base/cleanup.h"
#include "core/redacted_key.h"
#include "store/sqlite/audit.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/select.h"

#include <string.h>

#define ROWS_MEMORY ((size_t)4 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

struct found {
	int64_t seq;
	char key[TOMBSTONE_KEY_MAX]; /* what it becomes; empty: it has none */
	bool before;                 /* it is a tombstone already */
};

static int look(struct sqlite_store *s, const char *id, struct found *found, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *key;
	int r;

	r = message_find(s, SQL_REDACT_LOOK, id, &q, err);
	if (r != OUTBOX_OK)
		return r;
	found->seq = sqlite3_column_int64(q, 0);
	found->before = sqlite3_column_int(q, 2) != 0;
	key = sqlite_look(q, 1, &r, err);
	if (r == OUTBOX_OK && key)
		tombstone_key(key, found->key);
	return r;
}

static int in_the_way(const struct outbox_delivery *d, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "its delivery to %s is %s; only a message whose deliveries are all delivered or "
			   "discarded can be redacted: %s or discard it first",
			   d->target, outbox_state_name(d->state),
			   d->state == OUTBOX_FAILED ? "requeue it" : "wait for it");
}

/* Every delivery is delivered or discarded. */
static int all_finished(struct targets *targets, const char *id, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ROWS_MEMORY);
	const struct outbox_filter filter = { .ids = &id, .n_ids = 1 };
	_cleanup_(select_deinit) struct selection sel = {
		.targets = targets,
		.filter = &filter,
		.arena = arena,
		.states = SELECT_ALL_STATES,
		.limit = 1,
	};
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!targets->count)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "no target is registered, so it still waits for one; it can be redacted "
				   "once it is delivered");
	r = select_deliveries(&sel, err);
	for (size_t i = 0; i < sel.count && r == OUTBOX_OK; i++) {
		const struct outbox_delivery *d = &sel.rows[i].d;

		if (d->state != OUTBOX_DELIVERED && d->state != OUTBOX_DISCARDED)
			r = in_the_way(d, err);
	}
	return r;
}

static int replace(const struct targets *targets, const struct outbox_redact *redact,
		   const struct found *found, struct outbox_error *err)
{
	struct sqlite_audit_entry entry = { .actor = redact->actor,
					    .action = "redact",
					    .id = redact->id,
					    .seq = found->seq,
					    .reason = redact->reason };
	struct sqlite_store *s = targets->s;
	int r;

	r = sqlite_run(s, SQL_META_PUT, ARGS(ARG_TEXT("redact"), ARG_INT(found->seq)), NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_REDACT_MESSAGE,
			       ARGS(ARG_INT(found->seq), ARG_TEXT(found->key)), NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_META_DELETE, ARGS(ARG_TEXT("redact")), NULL, err);
	for (size_t i = 0; i < targets->count && r == OUTBOX_OK; i++)
		r = sqlite_run(s, SQL_REDACT_DETOUR,
			       ARGS(ARG_TEXT(targets->list[i].name), ARG_INT(found->seq),
				    ARG_TEXT(found->key)),
			       NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_REDACT_AMENDED, ARGS(ARG_INT(found->seq)), NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_REDACT_AUDIT, ARGS(ARG_TEXT(redact->id)), NULL, err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

static int redact_in(struct sqlite_store *s, const struct outbox_redact *redact, bool *done,
		     struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	struct found found = { 0 };
	int r;

	r = look(s, redact->id, &found, err);
	if (r != OUTBOX_OK || found.before)
		return r;
	r = targets_load(s, NULL, &targets, err);
	if (r == OUTBOX_OK)
		r = all_finished(&targets, redact->id, err);
	if (r == OUTBOX_OK)
		r = replace(&targets, redact, &found, err);
	*done = r == OUTBOX_OK;
	return r;
}

int sqlite_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		  struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	bool done = false;
	int r;

	if (!redact->reason || !redact->reason[0])
		return outbox_fail(err, OUTBOX_EINVAL, "redact: say why, it wants a reason");
	r = sqlite_run(s, SQL_SECURE_DELETE, NULL, NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, redact_in(s, redact, &done, err), err);
	if (r == OUTBOX_OK && ret_done)
		*ret_done = done;
	return r;
}
