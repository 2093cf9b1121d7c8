/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lanes that are refused since numbers were given again (lane.h) go on. In one transaction, in which
 * nobody publishes:
 *
 *     the log's sequence continues after everything that was ever numbered;
 *     every message under a number that was given again, at or before a lane's position, becomes a detour of
 *     that lane, due now, in order; those after it are read like any other.
 *
 * Messages are not touched. Sent twice is only what was in flight.
 */
#include "base/cleanup.h"
#include "store/sqlite/delivery.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdio.h>

struct rebasing {
	struct sqlite_store *s;
	const struct outbox_rebase *how;
	struct targets targets;
	void (*say)(void *context, int level, const char *subject, const char *text);
	void *context;
	int64_t ground; /* nothing was ever numbered after it */
	int64_t total;
};

static void rebasing_deinit(struct rebasing *w)
{
	targets_deinit(&w->targets);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int find_ground(struct rebasing *w, struct outbox_error *err)
{
	int64_t end = 0, detours = 0;
	int r = sqlite_number(w->s, SQL_LOG_END, NULL, 0, &end, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(w->s, SQL_REBASE_DETOURS_END, NULL, 0, &detours, err);
	w->ground = larger(larger(end, detours), w->targets.gone_to);
	for (size_t i = 0; i < w->targets.count; i++) {
		const struct target_info *target = &w->targets.list[i];

		for (int lane = 0; lane < target->n_lanes; lane++)
			w->ground = larger(w->ground, target->lanes[lane].last.claim_end);
	}
	return r;
}

static int set_sequence(struct rebasing *w, struct outbox_error *err)
{
	int r = sqlite_run(w->s, SQL_REBASE_SEQUENCE, ARGS(ARG_INT(w->ground)), err);

	if (r == OUTBOX_OK && !sqlite3_changes(w->s->db))
		r = sqlite_run(w->s, SQL_REBASE_SEQUENCE_ADD, ARGS(ARG_INT(w->ground)), err);
	return r;
}

/* A message that the lane has passed by its number alone: as a detour, if it is the lane's. */
static int send_first(struct rebasing *w, struct target_info *target, int lane, sqlite3_stmt *row,
		      int64_t *count, struct outbox_error *err)
{
	int64_t detour = 0;
	struct outbox_delivery d;
	int r = delivery_of_row(&w->targets, target, row, &d, err);

	if (r != OUTBOX_OK || !d.state || d.lane != lane)
		return r;
	r = sqlite_number(w->s, SQL_DETOUR_EXISTS, ARGS(ARG_TEXT(target->name), ARG_INT(d.seq)), 0,
			  &detour, err);
	if (r != OUTBOX_OK || detour)
		return r;
	(*count)++;
	return sqlite_run(w->s, SQL_REBASE_DETOUR,
			  ARGS(ARG_TEXT(target->name), ARG_INT(d.seq), ARG_INT(lane),
			       ARG_INT(w->targets.now)),
			  err);
}

static int send_all_first(struct rebasing *w, struct target_info *target, int lane, int64_t *count,
			  struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t to = target->lanes[lane].last.pos;
	int r;

	if (to > w->targets.gone_to)
		to = w->targets.gone_to;
	r = sqlite_query(w->s, SQL_LOOK_ROWS, ARGS(ARG_INT(w->targets.gone_after), ARG_INT(to)), &q,
			 err);
	while (sqlite_next(q, &r, err))
		r = send_first(w, target, lane, q, count, err);
	return r;
}

static void report_lane(const struct rebasing *w, const char *target, int lane, int64_t pos,
			int64_t count)
{
	char subject[OUTBOX_TARGET_NAME_MAX + 40], text[200], first[100];

	snprintf(subject, sizeof(subject), "target %s, lane %d", target, lane);
	if (count == 1)
		snprintf(first, sizeof(first),
			 "1 message before that is not sent yet and comes first");
	else if (count)
		snprintf(first, sizeof(first),
			 "%lld messages before that are not sent yet and come first",
			 (long long)count);
	else
		snprintf(first, sizeof(first), "nothing before that is left to send");
	snprintf(text, sizeof(text), "%s after message %lld; %s",
		 w->how->dry_run ? "would continue" : "continues", (long long)pos, first);
	w->say(w->context, 1, subject, text);
}

/* Its owner is fenced; what was in flight is pending again. */
static int rebase_lane(struct rebasing *w, struct target_info *target, int lane,
		       struct outbox_error *err)
{
	struct sqlite_store *s = w->s;
	struct lane_op op = { .s = s, .target = target->name, .lane = lane, .now = w->targets.now };
	const struct receipt *last = &target->lanes[lane].last;
	struct receipt next = receipt_next(last, sqlite_token(s), op.now);
	int64_t count = 0;
	int r = sqlite_run(s, SQL_DETOUR_RECLAIM,
			   ARGS(ARG_TEXT(op.target), ARG_INT(lane), ARG_INT(op.now)), err);

	if (r == OUTBOX_OK)
		r = send_all_first(w, target, lane, &count, err);
	if (r == OUTBOX_OK)
		r = receipt_append(&op, w->how->actor ? w->how->actor : "operator", &next, err);
	if (r != OUTBOX_OK)
		return r;
	w->total += count;
	report_lane(w, target->name, lane, next.pos, count);
	return OUTBOX_OK;
}

static int finish(struct rebasing *w, struct outbox_error *err)
{
	char detail[120];
	int r;

	snprintf(detail, sizeof(detail), "the log continues after message %lld; sent first: %lld",
		 (long long)w->ground, (long long)w->total);
	r = set_sequence(w, err);
	if (r == OUTBOX_OK)
		r = numbers_mark(w->s, w->ground, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(w->s, SQL_REBASE_ACCEPT, NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_audit_write(w->s,
				       &(struct outbox_audit){ .actor = w->how->actor,
							       .action = "rebase",
							       .detail = detail },
				       err);
	return r;
}

/* ret_reason (FAULT_TEXT_MAX): why the first lane that is refused is; "": none is. */
static int find_reason(const struct rebasing *w, char *ret_reason, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	ret_reason[0] = '\0';
	for (size_t i = 0; i < w->targets.count; i++) {
		const struct target_info *target = &w->targets.list[i];
		struct lane_op op = { .s = w->s, .target = target->name, .now = w->targets.now };

		for (; op.lane < target->n_lanes && r == OUTBOX_OK && !ret_reason[0]; op.lane++)
			r = lane_view_fault(&op, target->lanes[op.lane].last.pos, ret_reason, err);
	}
	return r;
}

/* *ret_done: there was something to do. */
static int rebase_in(struct rebasing *w, bool *ret_done, struct outbox_error *err)
{
	char reason[FAULT_TEXT_MAX];
	int r = targets_load(w->s, NULL, &w->targets, err);

	if (r == OUTBOX_OK)
		r = find_reason(w, reason, err);
	if (r != OUTBOX_OK || !reason[0])
		return r;
	*ret_done = true;
	w->say(w->context, 1, OUTBOX_REBASE_REASON, reason);
	r = find_ground(w, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(w->s, SQL_REBASE_FORGET, NULL, err);
	for (size_t i = 0; i < w->targets.count; i++)
		for (int lane = 0; lane < w->targets.list[i].n_lanes && r == OUTBOX_OK; lane++)
			r = rebase_lane(w, &w->targets.list[i], lane, err);
	return r == OUTBOX_OK ? finish(w, err) : r;
}

int sqlite_rebase(struct outbox_store *store, const struct outbox_rebase *rebase,
		  void (*say)(void *context, int level, const char *subject, const char *text),
		  void *context, struct outbox_error *err)
{
	_cleanup_(rebasing_deinit) struct rebasing w = {
		.s = sqlite_of(store), .how = rebase, .say = say, .context = context
	};
	bool done = false;
	int r;

	if (rebase->same_history)
		return outbox_fail(err, OUTBOX_ENOTSUP,
				   "--same-history is for a PostgreSQL server with a new name; a sqlite "
				   "store has none");
	r = sqlite_enter(w.s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = rebase_in(&w, &done, err);
	if (r == OUTBOX_OK && rebase->dry_run && done) {
		/* all of it was done, to tell what it comes to */
		(void)!sqlite_end(w.s, OUTBOX_ECONFLICT, NULL);
		return OUTBOX_OK;
	}
	return sqlite_end(w.s, r, err);
}
