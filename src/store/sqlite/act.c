/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operators' actions, one transaction per call: of several that ask for the same thing one finds the
 * delivery in the right state, the others are told what it is now.
 *
 * What a live owner has in flight is refused: its settlement would overwrite the change. Once the
 * lease has run out, the lane is taken over first, like a relay does it, so that the owner is fenced
 * should it wake up.
 *
 * A delivery that was never in trouble has no row; discarding or deferring makes one ahead of the
 * lane's position, and the claim that gets there passes it over.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "core/lifecycle.h"
#include "store/sqlite/detour.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/select.h"
#include "store/store.h"

#include <stdio.h>

#define ROWS_MEMORY ((size_t)64 << 20)
/* SQLite's busy handler looks again after this, at the latest. */
#define BUSY_POLL (100 * OUTBOX_MILLISECONDS)

struct acting {
	const struct outbox_act *act;
	int event; /* of the lifecycle, that the action is */
	struct targets *targets;
	struct outbox_acted *acted;
};

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static void refuse(const struct acting *a, const struct outbox_delivery *d, const char *why)
{
	char shown[96];

	if (!a->acted->refused++)
		snprintf(a->acted->why, sizeof(a->acted->why), "%s to %s: %.300s",
			 text_shown(shown, sizeof(shown), d->id), d->target, why);
}

static int add_audit(const struct targets *t, const struct outbox_act *act,
		     const struct outbox_delivery *d, int state, struct outbox_error *err)
{
	return sqlite_run(t->s, SQL_AUDIT_ACT,
			  ARGS(ARG_INT(t->now), ARG_TEXT(act->actor),
			       ARG_TEXT(action_names[act->action]), ARG_TEXT(d->target),
			       ARG_TEXT(d->id), ARG_INT(d->seq), ARG_TEXT(act->reason),
			       ARG_TEXT(outbox_state_name(state)), ARG_TEXT(outbox_why_name(d->why)),
			       ARG_INT(d->attempts), ARG_TEXT(d->error)),
			  err);
}

int select_act(const struct targets *t, const struct target_info *target,
	       const struct outbox_act *act, const struct selected *row, int state,
	       struct outbox_error *err)
{
	const struct outbox_delivery *d = &row->d;
	struct lane_op op = { .s = t->s,
			      .target = target->name,
			      .lane = d->lane,
			      .now = t->now,
			      .view = { .hold = target->hold, .unordered = target->unordered } };
	bool discard = act->action == OUTBOX_DISCARD;
	outbox_time due = act->action == OUTBOX_DEFER ? act->until : op.now;
	int r = add_audit(t, act, d, state, err);

	if (r != OUTBOX_OK)
		return r;
	if (act->action == OUTBOX_REQUEUE)
		r = sqlite_run(t->s, SQL_ACT_REQUEUE,
			       ARGS(ARG_TEXT(target->name), ARG_INT(d->seq), ARG_INT(op.now),
				    ARG_TEXT(act->reason)),
			       err);
	else
		r = sqlite_run(t->s, row->detour ? SQL_ACT_SET : SQL_ACT_ADD,
			       ARGS(ARG_TEXT(target->name), ARG_INT(d->seq), ARG_INT(op.now),
				    ARG_TEXT(act->reason),
				    ARG_TEXT(discard ? "discarded" : "pending"),
				    ARG_TEXT(discard ? NULL : "deferred"),
				    ARG_TIME(discard ? 0 : due), ARG_INT(d->lane)),
			       err);
	return r == OUTBOX_OK ? detour_promote(&op, d->key, err) : r;
}

static int act_on(const struct acting *a, const struct selected *row, struct outbox_error *err)
{
	struct target_info *target = targets_find(a->targets, row->d.target);
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_acted *acted = a->acted;
	int state = row->d.state;
	int r = OUTBOX_OK;

	if (!target)
		return outbox_fail(err, OUTBOX_EINTERNAL, "a delivery without a target");
	if (state == OUTBOX_SENDING) {
		if (lane_is_leased(&target->lanes[row->d.lane], a->targets->now)) {
			refuse(a, &row->d, "it is being sent right now; try again");
			return OUTBOX_OK;
		}
		state = OUTBOX_PENDING;
	}
	if (lifecycle_check(state, a->event, &why) != OUTBOX_OK) {
		refuse(a, &row->d, why.message);
		return OUTBOX_OK;
	}
	acted->done++;
	if (!acted->oldest || row->d.created_at < acted->oldest)
		acted->oldest = row->d.created_at;
	if (a->act->dry_run)
		return OUTBOX_OK;
	if (row->d.state == OUTBOX_SENDING)
		r = targets_take_over(a->targets, target, row->d.lane, a->act->actor, err);
	return r == OUTBOX_OK ? select_act(a->targets, target, a->act, row, state, err) : r;
}

static int act_on_all(const struct acting *a, struct selection *sel, struct outbox_error *err)
{
	const struct outbox_filter *filter = a->act->filter;
	char shown[96];
	int r = select_deliveries(sel, err);

	if (r != OUTBOX_OK)
		return r;
	if (sel->count_only) {
		a->acted->done = sel->count;
		a->acted->oldest = sel->oldest;
		return OUTBOX_OK;
	}
	a->acted->refused = sel->missing;
	if (sel->missing)
		snprintf(a->acted->why, sizeof(a->acted->why), "no message with the id \"%s\"",
			 text_shown(shown, sizeof(shown), sel->missing_id));
	for (size_t i = 0; i < sel->count && r == OUTBOX_OK; i++) {
		if (!filter->n_ids && i == sel->limit) {
			a->acted->more = true;
			a->acted->rest = BUSY_POLL;
			store_cursor_format(sel->rows[i - 1].d.seq, sel->rows[i - 1].d.target,
					    a->acted->cursor, sizeof(a->acted->cursor));
			break;
		}
		r = act_on(a, &sel->rows[i], err);
	}
	return r;
}

/* A filter selects the deliveries with which it can be done. */
static unsigned states_for(int event)
{
	unsigned states = 0;

	for (int state = OUTBOX_PENDING; state <= OUTBOX_DISCARDED; state++)
		states |= lifecycle_next(state, event) ? 1u << state : 0;
	return states;
}

static int act_in(struct sqlite_store *s, const struct outbox_act *act, struct outbox_acted *acted,
		  struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ROWS_MEMORY);
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	struct outbox_filter filter = *act->filter;
	_cleanup_(select_deinit) struct selection sel = {
		.targets = &targets,
		.filter = &filter,
		.arena = arena,
		.states = states_for(lifecycle_of_action(act->action)),
		.limit = filter.limit,
		.count_only = act->dry_run && !filter.n_ids,
		.not_deferred_until = act->action == OUTBOX_DEFER ? act->until : 0,
	};
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (filter.n_ids) {
		/* Whoever names a delivery is told why it cannot be done. */
		sel.states = SELECT_ALL_STATES;
		sel.not_deferred_until = 0;
		filter.state = filter.why = 0;
	}
	r = targets_load(s, filter.target, &targets, err);
	if (r != OUTBOX_OK)
		return r;
	return act_on_all(&(struct acting){ act, lifecycle_of_action(act->action), &targets, acted },
			  &sel, err);
}

int sqlite_act(struct outbox_store *store, const struct outbox_act *act,
	       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_acted acted = { 0 };
	int r = sqlite_enter(s, act->dry_run ? DB_READ : DB_WRITE, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, act_in(s, act, &acted, err), err);
	if (r == OUTBOX_OK)
		*ret_acted = acted;
	return r;
}

/* ---- the audit trail ---------------------------------------------------------------------------- */

int sqlite_audit_write(struct sqlite_store *s, const struct outbox_audit *row,
		       struct outbox_error *err)
{
	return sqlite_run(s, SQL_AUDIT_ADD,
			  ARGS(ARG_INT(row->at ? row->at : sqlite_now(s)), ARG_TEXT(row->actor),
			       ARG_TEXT(row->action), ARG_TEXT(row->target), ARG_TEXT(row->id),
			       ARG_TEXT(row->reason), ARG_TEXT(row->detail)),
			  err);
}

static int read_entry(sqlite3_stmt *q, struct outbox_arena *arena, struct outbox_audit *entry,
		      struct outbox_error *err)
{
	const char **const texts[] = { &entry->actor, &entry->action, &entry->target,
				       &entry->id,    &entry->reason, &entry->detail };
	int r = OUTBOX_OK;

	entry->number = sqlite3_column_int64(q, 0);
	entry->at = sqlite3_column_int64(q, 1);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = sqlite_text(q, (int)i + 2, arena, texts[i], err);
	return r;
}

static int read_entries(struct sqlite_store *s, const char *id, size_t limit,
			struct outbox_arena *arena, struct outbox_audit *rows, size_t *ret_count,
			struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	size_t n = 0;
	int r = sqlite_query(s, id ? SQL_AUDIT_OF : SQL_AUDIT_ALL,
			     ARGS(ARG_INT((int64_t)limit), ARG_TEXT(id)), &q, err);

	while (n < limit && sqlite_next(q, &r, err))
		r = read_entry(q, arena, &rows[n++], err);
	if (r == OUTBOX_OK)
		*ret_count = n;
	return r;
}

int sqlite_audit(struct outbox_store *store, const char *id, size_t limit,
		 struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		 struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_audit *rows;
	size_t count = 0;
	int r;

	rows = outbox_arena_alloc(arena, limit * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, read_entries(s, id, limit, arena, rows, &count, err), err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

int sqlite_audit_add(struct outbox_store *store, const struct outbox_audit *row,
		     struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_audit elsewhere = *row;
	int r = sqlite_enter(s, DB_WRITE, err);

	elsewhere.at = 0;
	elsewhere.id = NULL;
	return r ? r : sqlite_end(s, sqlite_audit_write(s, &elsewhere, err), err);
}
