/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention. Messages go in bounded batches, with their detours; receipts follow, oldest first, once no
 * message is left that only they can tell about, and never a lane's last one.
 *
 * One failed message that is kept for ever must not keep a million receipts: what its other targets'
 * receipts say about it is written down as delivered detours, then they may go.
 */
#include "base/cleanup.h"
#include "core/retention.h"
#include "store/sqlite/detour.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/purge_candidates.h"
#include "store/sqlite/schema.h"

/* Messages of a target that one call looks at to see which receipts are needed. */
#define LOOK_MAX 20000

static int remove_detour(struct sqlite_store *s, const struct target_info *target,
			 const struct purge_candidate *gone, outbox_time now,
			 struct outbox_purged *purged, struct outbox_error *err)
{
	struct lane_op op = {
		.s = s, .target = target->name, .now = now, .view = { .hold = target->hold }
	};
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *key;
	int r;

	/* With hold, what was parked behind a failed one may go on when that is gone. */
	r = sqlite_query(s, SQL_DETOUR_KEY, ARGS(ARG_TEXT(target->name), ARG_INT(gone->seq)), &q,
			 err);
	if (!sqlite_next(q, &r, err))
		return r;
	key = sqlite_look(q, 0, &r, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_run(s, SQL_PURGE_DROP_DETOUR, ARGS(ARG_TEXT(target->name), ARG_INT(gone->seq)),
		       err);
	if (r != OUTBOX_OK)
		return r;
	purged->detours += sqlite3_changes(s->db);
	return gone->failed && target->hold ? detour_promote(&op, key, err) : OUTBOX_OK;
}

static int remove_messages(const struct purge_candidates *v, struct outbox_purged *purged,
			   struct outbox_error *err)
{
	struct sqlite_store *s = v->targets->s;
	int r;

	/* only who says so may delete messages */
	r = sqlite_run(s, SQL_META_PUT, ARGS(ARG_TEXT("janitor"), ARG_INT(1)), err);
	for (size_t i = 0; i < v->count && r == OUTBOX_OK; i++) {
		const struct purge_candidate *gone = &v->list[i];

		for (size_t t = 0; t < v->targets->count && r == OUTBOX_OK; t++)
			r = remove_detour(s, &v->targets->list[t], gone, v->targets->now, purged,
					  err);
		if (r == OUTBOX_OK)
			r = sqlite_run(s, SQL_PURGE_MESSAGE, ARGS(ARG_INT(gone->seq)), err);
		purged->messages++;
		purged->failed += gone->failed;
	}
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_META_DELETE, ARGS(ARG_TEXT("janitor")), err);
	return r == OUTBOX_OK ? numbers_mark(s, 0, err) : r;
}

static int write_down(const struct purge_candidates *v, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < v->n_survivors && r == OUTBOX_OK; i++) {
		const struct survivor *left = &v->survivors[i];

		r = sqlite_run(v->targets->s, SQL_PURGE_WRITE_DOWN,
			       ARGS(ARG_TEXT(left->target->name), ARG_INT(left->seq),
				    ARG_INT(left->lane), ARG_INT(left->settled_at),
				    ARG_TEXT(left->owner)),
			       err);
	}
	return r;
}

/* The oldest message that only a receipt of this target can tell about, as far as one call looks. What is
 * before the target's start, not for it or has a detour may be the whole log, and publishers wait. */
static int first_needed(struct targets *t, struct target_info *target, int64_t *ret_seq,
			struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t first = 0, end = 0;
	int r = sqlite_number(t->s, SQL_LOG_FIRST, NULL, 0, &first, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(t->s, SQL_LOG_END, NULL, 0, &end, err);
	if (r != OUTBOX_OK)
		return r;
	if (first <= target->start_seq)
		first = target->start_seq + 1;
	*ret_seq = end - first >= LOOK_MAX ? first + LOOK_MAX : INT64_MAX;
	r = sqlite_query(t->s, SQL_PURGE_BARE_ROWS,
			 ARGS(ARG_TEXT(target->name), ARG_INT(first - 1),
			      ARG_INT(first + LOOK_MAX - 1)),
			 &q, err);
	while (sqlite_next(q, &r, err)) {
		struct outbox_delivery d;

		r = delivery_of_row(t, target, q, &d, err);
		if (r == OUTBOX_OK && d.state) {
			*ret_seq = d.seq;
			break;
		}
	}
	return r;
}

static int remove_receipts(struct targets *t, struct target_info *target,
			   const struct outbox_purge *purge, struct outbox_purged *purged,
			   struct outbox_error *err)
{
	int64_t limit = (int64_t)retention_limit(purge), needed;
	int r = first_needed(t, target, &needed, err);

	for (int lane = 0; lane < target->n_lanes && r == OUTBOX_OK; lane++) {
		int64_t last = target->lanes[lane].last.n, stop;

		r = sqlite_number(t->s, SQL_PURGE_RECEIPT_STOP,
				  ARGS(ARG_TEXT(target->name), ARG_INT(lane), ARG_INT(needed),
				       ARG_INT(purge->delivered_before), ARG_INT(limit)),
				  last, &stop, err);
		if (r == OUTBOX_OK)
			r = sqlite_run(t->s, SQL_PURGE_RECEIPTS,
				       ARGS(ARG_TEXT(target->name), ARG_INT(lane),
					    ARG_INT(stop < last ? stop : last)),
				       err);
		if (r == OUTBOX_OK) {
			int changes = sqlite3_changes(t->s->db);

			purged->receipts += changes;
			purged->more = purged->more || changes >= limit;
		}
	}
	return r;
}

static int add_audit(struct sqlite_store *s, const struct outbox_purge *purge,
		     const struct outbox_purged *purged, struct outbox_error *err)
{
	char detail[RETENTION_DETAIL_MAX];

	if (!purge->actor || !purged->messages)
		return OUTBOX_OK;
	retention_describe(purged, detail);
	return sqlite_audit_write(s,
				  &(struct outbox_audit){ .actor = purge->actor,
							  .action = "purge",
							  .detail = detail },
				  err);
}

/* Who is configured and not registered will want what is published meanwhile, once it says where it starts. */
static int nobody_waits(struct targets *targets, struct outbox_error *err)
{
	char target[OUTBOX_TARGET_NAME_MAX + 1];
	int r = sqlite_string(targets->s, SQL_PURGE_UNSTARTED, ARGS(ARG_INT(targets->now)), target,
			      sizeof(target), err);

	return r == OUTBOX_OK && target[0] ? retention_kept_for(target, err) : r;
}

/* What a position says of a message may be another one's truth: nothing is removed by it. */
static int may_remove(struct targets *targets, struct outbox_error *err)
{
	struct outbox_error refused = OUTBOX_ERROR_INIT;
	int r = targets_check_lanes(targets, &refused);

	if (r == OUTBOX_EPROTO)
		return retention_refused(refused.message, err);
	return r == OUTBOX_OK ? nobody_waits(targets, err)
			      : outbox_fail_native(err, r, refused.native, "%s", refused.message);
}

static int purge_in(struct sqlite_store *s, const struct outbox_purge *purge,
		    struct outbox_purged *purged, int64_t *ret_seen, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	_cleanup_(purge_candidates_deinit) struct purge_candidates v = {
		.targets = &targets,
		.purge = purge,
		.after_seq = retention_go_on(&s->purging, purge),
		.limit = retention_limit(purge),
		.note_survivors = purge->delivered_before != 0,
	};
	int r = targets_load(s, NULL, &targets, err);

	if (r == OUTBOX_OK)
		r = may_remove(&targets, err);
	if (r == OUTBOX_ECONFLICT && !purge->actor)
		return OUTBOX_OK; /* who cleans up says so about the lane or the target itself */
	if (r == OUTBOX_OK)
		r = purge_candidates_find(&v, err);
	if (r == OUTBOX_OK && v.count)
		r = remove_messages(&v, purged, err);
	if (r == OUTBOX_OK)
		r = write_down(&v, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_PURGE_AMENDED, NULL, err);
	purged->more = v.more;
	for (size_t i = 0; i < targets.count && purge->delivered_before && r == OUTBOX_OK; i++)
		r = remove_receipts(&targets, &targets.list[i], purge, purged, err);
	if (r == OUTBOX_OK)
		r = add_audit(s, purge, purged, err);
	*ret_seen = v.seen_seq;
	return r;
}

int sqlite_purge(struct outbox_store *store, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_purged purged = { 0 };
	int64_t seen = 0;
	int r = sqlite_enter(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_end(s, purge_in(s, purge, &purged, &seen, err), err);
	s->purging.seen_seq = r == OUTBOX_OK ? seen : 0;
	if (r == OUTBOX_OK)
		*ret_purged = purged;
	return r;
}

static int load_candidates(const struct purge_candidates *v, struct outbox_arena *arena,
			   struct outbox_claimed *messages, size_t *count, struct outbox_error *err)
{
	struct sqlite_store *s = v->targets->s;
	const char *source = outbox_arena_text(arena, s->source);
	int r = source ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; i < v->count && r == OUTBOX_OK; i++) {
		_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
		bool row;

		r = sqlite_query(s, SQL_LOG_ROWS,
				 ARGS(ARG_INT(v->list[i].seq - 1), ARG_INT(v->list[i].seq)), &q,
				 err);
		row = sqlite_next(q, &r, err);
		if (row)
			r = message_load(q, arena, source, false, &messages[*count], err);
		/* The arena is full: what is there is the answer, the rest comes with the next call. */
		if (r == OUTBOX_ENOMEM && *count)
			return OUTBOX_OK;
		*count += r == OUTBOX_OK && row;
	}
	return r;
}

static int purgeable_in(struct sqlite_store *s, struct purge_candidates *v,
			struct outbox_arena *arena, struct outbox_claimed **ret_messages,
			size_t *ret_count, struct outbox_error *err)
{
	struct outbox_claimed *messages;
	int r = targets_load(s, NULL, v->targets, err);

	if (r == OUTBOX_OK)
		r = may_remove(v->targets, err);
	/* A call that only looked at rows that stay must not seem to be the end. */
	do {
		v->more = false;
		if (r == OUTBOX_OK)
			r = purge_candidates_find(v, err);
		v->after_seq = v->seen_seq;
	} while (r == OUTBOX_OK && !v->count && v->more);
	if (r != OUTBOX_OK)
		return r;
	messages = outbox_arena_alloc(arena, (v->count ? v->count : 1) * sizeof(*messages));
	if (!messages)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_messages = messages;
	return load_candidates(v, arena, messages, ret_count, err);
}

int sqlite_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		     struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		     size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	_cleanup_(purge_candidates_deinit) struct purge_candidates v = {
		.targets = &targets,
		.purge = purge,
		.after_seq = after_seq,
		.limit = retention_limit(purge),
	};
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_claimed *messages = NULL;
	size_t count = 0;
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, purgeable_in(s, &v, arena, &messages, &count, err), err);
	if (r == OUTBOX_OK) {
		*ret_messages = messages;
		*ret_count = count;
	}
	return r;
}
