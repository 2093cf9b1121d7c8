/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/delivery.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* Targets and lanes of one look; 256 lanes of a hundred targets fit many times. */
#define ARENA_MAX ((size_t)64 << 20)

void targets_deinit(struct targets *targets)
{
	free(targets->list);
	targets->list = NULL;
	targets->count = targets->capacity = 0;
	targets->arena = outbox_arena_free(targets->arena);
}

struct target_info *targets_find(struct targets *targets, const char *name)
{
	for (size_t i = 0; i < targets->count; i++) {
		if (strcmp(targets->list[i].name, name) == 0)
			return &targets->list[i];
	}
	return NULL;
}

bool lane_is_leased(const struct lane_info *lane, outbox_time now)
{
	return lane->lease_owner && lane->lease_until > now;
}

static int lanes_differ(struct targets *t, const char *target, struct outbox_error *err)
{
	int64_t lanes = 0;
	int r = sqlite_number(t->s, SQL_LANE_COUNT, ARGS(ARG_TEXT(target)), 0, &lanes, err);

	return r == OUTBOX_OK ? receipt_lanes_differ(t->s, target, lanes, t->s->lanes, err) : r;
}

static int load_lanes(struct targets *t, struct target_info *target, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = t->s;
	int r;

	target->lanes = outbox_arena_alloc(t->arena, (size_t)s->lanes * sizeof(*target->lanes));
	if (!target->lanes)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_query(s, SQL_LOOK_LANES, ARGS(ARG_TEXT(target->name)), &q, err);
	while (sqlite_next(q, &r, err)) {
		struct lane_info *lane;

		if (target->n_lanes == s->lanes || sqlite3_column_int(q, 0) != target->n_lanes)
			return lanes_differ(t, target->name, err);
		lane = &target->lanes[target->n_lanes++];
		r = sqlite_text(q, 1, t->arena, &lane->lease_owner, err);
		if (r == OUTBOX_OK)
			r = sqlite_text(q, 4, t->arena, &lane->owner, err);
		lane->lease_until = sqlite3_column_int64(q, 2);
		lane->takeovers = sqlite3_column_int64(q, 3);
	}
	if (r == OUTBOX_OK && target->n_lanes != s->lanes)
		r = lanes_differ(t, target->name, err);
	for (int i = 0; r == OUTBOX_OK && i < target->n_lanes; i++)
		r = receipt_last(&(struct lane_op){ .s = s, .target = target->name, .lane = i },
				 &target->lanes[i].last, err);
	return r;
}

static int add_target(struct targets *t, sqlite3_stmt *q, struct outbox_error *err)
{
	struct target_info *target;
	int r = sqlite_grow(&t->list, &t->capacity, t->count, sizeof(*target), err);

	if (r != OUTBOX_OK)
		return r;
	target = &t->list[t->count++];
	*target = (struct target_info){ 0 };
	r = sqlite_text(q, 0, t->arena, &target->name, err);
	if (r == OUTBOX_OK)
		r = sqlite_text(q, 6, t->arena, &target->paused_by, err);
	if (r == OUTBOX_OK)
		r = sqlite_text(q, 7, t->arena, &target->paused_reason, err);
	if (r != OUTBOX_OK)
		return r;
	target->version = sqlite3_column_int64(q, 1);
	target->start_seq = sqlite3_column_int64(q, 2);
	target->hold = sqlite3_column_int(q, 3) != 0;
	target->unordered = sqlite3_column_int(q, 4) != 0;
	target->paused = sqlite3_column_int(q, 5) != 0;
	target->open_since = sqlite3_column_int64(q, 8);
	return load_lanes(t, target, err);
}

static int load_numbers(struct targets *t, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(t->s, SQL_NUMBERS_GONE, NULL, &q, err);

	if (!sqlite_next(q, &r, err))
		return r;
	t->gone_after = sqlite3_column_int64(q, 0);
	t->gone_to = sqlite3_column_int64(q, 1);
	t->again = sqlite3_column_int(q, 2) != 0;
	return OUTBOX_OK;
}

static int load(struct targets *t, const char *only, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(t->s, SQL_LOOK_TARGETS, ARGS(ARG_TEXT(only)), &q, err);

	while (sqlite_next(q, &r, err))
		r = add_target(t, q, err);
	return r;
}

int targets_load(struct sqlite_store *s, const char *only, struct targets *ret_targets,
		 struct outbox_error *err)
{
	struct targets t = { .s = s, .now = sqlite_now(s), .arena = outbox_arena_new(ARENA_MAX) };
	int r;

	if (!t.arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = load(&t, only, err);
	if (r == OUTBOX_OK)
		r = load_numbers(&t, err);
	if (r != OUTBOX_OK) {
		targets_deinit(&t);
		return r;
	}
	*ret_targets = t;
	return OUTBOX_OK;
}

int targets_check_lanes(const struct targets *t, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < t->count && r == OUTBOX_OK; i++) {
		const struct target_info *target = &t->list[i];

		for (int lane = 0; lane < target->n_lanes && r == OUTBOX_OK; lane++) {
			struct lane_op op = {
				.s = t->s, .target = target->name, .lane = lane, .now = t->now
			};

			r = lane_view_check(&op, target->lanes[lane].last.pos, err);
		}
	}
	return r;
}

int targets_take_over(const struct targets *t, struct target_info *target, int lane,
		      const char *actor, struct outbox_error *err)
{
	struct lane_op op = { .s = t->s, .target = target->name, .lane = lane, .now = t->now };
	struct receipt *last = &target->lanes[lane].last;

	if (!last->claim_count)
		return OUTBOX_OK;
	return receipt_take_over(&op, actor ? actor : "operator", sqlite_token(t->s), last, err);
}

/* The first receipt that has passed seq. Rows come in ascending order, so the last one often fits. */
static int find_cover(struct targets *t, const struct target_info *target, int lane, int64_t seq,
		      struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct lane_info *info = &target->lanes[lane];
	int r;

	if (seq > info->cover.from_seq && seq <= info->cover.pos)
		return OUTBOX_OK;
	r = sqlite_query(t->s, SQL_LOOK_COVER,
			 ARGS(ARG_TEXT(target->name), ARG_INT(lane), ARG_INT(seq)), &q, err);
	if (sqlite_next(q, &r, err)) {
		receipt_read(q, &info->cover);
		return sqlite_text(q, RECEIPT_FIELDS, t->arena, &info->cover_owner, err);
	}
	if (r == OUTBOX_OK)
		r = outbox_fail(err, OUTBOX_EPROTO,
				"target %s, lane %d: no receipt has passed message %lld",
				target->name, lane, (long long)seq);
	return r;
}

/* State, and by which version of the routing. */
static int place(struct targets *t, struct target_info *target, int lane, struct outbox_delivery *d,
		 int64_t *ret_version, struct outbox_error *err)
{
	const struct lane_info *info = &target->lanes[lane];
	int r;

	/* one that has a number given again is new, wherever the lane stands */
	if (d->seq > info->last.claim_end || targets_numbered_again(t, d->seq)) {
		d->state = OUTBOX_PENDING;
		d->why = target->paused ? OUTBOX_PAUSED : OUTBOX_NEW;
		*ret_version = target->version;
		return OUTBOX_OK;
	}
	if (d->seq > info->last.pos) {
		d->state = OUTBOX_SENDING;
		d->owner = info->owner;
		d->last_status_at = info->last.settled_at;
		*ret_version = info->last.route_version;
		return OUTBOX_OK;
	}
	r = find_cover(t, target, lane, d->seq, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_version = info->cover.route_version;
	/* Its receipt is purged, and would not be if this message had been meant for the target. */
	if (d->seq <= info->cover.from_seq)
		return OUTBOX_OK;
	d->state = OUTBOX_DELIVERED;
	d->owner = info->cover_owner;
	d->last_status_at = info->cover.settled_at;
	return OUTBOX_OK;
}

int delivery_of_row(struct targets *targets, struct target_info *target, sqlite3_stmt *row,
		    struct outbox_delivery *ret_delivery, struct outbox_error *err)
{
	int r = OUTBOX_OK;
	struct outbox_delivery d = {
		.seq = sqlite3_column_int64(row, COL_SEQ),
		.id = sqlite_peek(row, COL_ID, &r, err),
		.target = target->name,
		.type = sqlite_peek(row, COL_TYPE, &r, err),
		.key = sqlite_look(row, COL_KEY, &r, err),
		.lane = message_lane(row, target->n_lanes, &r, err),
		.event_time = sqlite3_column_int64(row, COL_EVENT_TIME),
		.created_at = sqlite3_column_int64(row, COL_CREATED_AT),
	};
	const struct sqlite_route *route;
	int64_t version;

	if (r == OUTBOX_OK && (d.seq > target->start_seq || targets_numbered_again(targets, d.seq))) {
		r = place(targets, target, d.lane, &d, &version, err);
		if (r == OUTBOX_OK)
			r = sqlite_route_get(targets->s, target->name, version, &route, err);
		if (r == OUTBOX_OK && !message_routed(row, route, &r, err))
			d.state = d.why = 0;
		/* no lane has read it, and when one does it waits until it is due */
		if (d.why && sqlite3_column_int64(row, COL_DUE_AT) > targets->now)
			d.why = OUTBOX_DEFERRED;
	}
	if (r == OUTBOX_OK)
		*ret_delivery = d;
	return r;
}

int delivery_is_wanted(struct targets *targets, struct target_info *target, sqlite3_stmt *row,
		       bool *ret_wanted, struct outbox_error *err)
{
	const struct sqlite_route *route;
	struct outbox_delivery d;
	bool passed;
	int r = delivery_of_row(targets, target, row, &d, err);

	if (r != OUTBOX_OK)
		return r;
	passed = d.seq <= target->start_seq || d.seq <= target->lanes[d.lane].last.pos;
	if (!passed)
		r = sqlite_route_get(targets->s, target->name, target->version, &route, err);
	if (r == OUTBOX_OK)
		*ret_wanted = retention_is_wanted(passed, d.state != 0,
						  !passed && message_routed(row, route, &r, err));
	return r;
}

int delivery_of_detour(const struct target_info *target, sqlite3_stmt *row,
		       struct outbox_delivery *ret_delivery, struct outbox_error *err)
{
	int r = OUTBOX_OK;
	struct outbox_delivery d = {
		.target = target->name,
		.seq = sqlite3_column_int64(row, 0),
		.id = sqlite_peek(row, 1, &r, err),
		.type = sqlite_peek(row, 2, &r, err),
		.key = sqlite_look(row, 3, &r, err),
		.lane = sqlite3_column_int(row, 4),
		.state = outbox_state_parse(sqlite_peek(row, 5, &r, err)),
		.why = outbox_why_parse(sqlite_peek(row, 6, &r, err)),
		.attempts = sqlite3_column_int(row, 7),
		.owner = sqlite_look(row, 8, &r, err),
		.error = sqlite_look(row, 9, &r, err),
		.reason = sqlite_look(row, 10, &r, err),
		.event_time = sqlite3_column_int64(row, 11),
		.created_at = sqlite3_column_int64(row, 12),
		.last_status_at = sqlite3_column_int64(row, 13),
		.next_attempt_at = sqlite3_column_int64(row, 14),
	};

	if (d.state != OUTBOX_PENDING)
		d.why = 0;
	if (r == OUTBOX_OK)
		*ret_delivery = d;
	return r;
}

int delivery_keep(struct outbox_delivery *d, struct outbox_arena *arena, struct outbox_error *err)
{
	const char **const texts[] = { &d->id,    &d->target, &d->type,  &d->key,
				       &d->owner, &d->error,  &d->reason };

	return sqlite_keep(texts, ARRAY_SIZE(texts), arena, err);
}
