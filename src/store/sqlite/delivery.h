/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_DELIVERY_H
#define STORE_SQLITE_DELIVERY_H

/*
 * Deliveries as people look at them. Most have no row of their own: their state follows from the
 * message's seq and the lane's receipts. So whoever looks loads all targets and lanes first.
 */

#include "store/sqlite/lane.h"
#include "store/sqlite/message.h"

struct lane_info {
	struct receipt last;
	const char *owner;       /* of the last receipt */
	const char *lease_owner; /* NULL: nobody */
	outbox_time lease_until;
	int64_t takeovers;
	struct receipt cover; /* that settled what was asked for last */
	const char *cover_owner;
};

struct target_info {
	const char *name;
	int64_t version, start_seq;
	bool paused, hold, unordered;
	const char *paused_by, *paused_reason;
	outbox_time open_since; /* resumed, or else registered */
	int n_lanes;
	struct lane_info *lanes;
};

struct targets {
	struct sqlite_store *s;
	struct outbox_arena *arena; /* of its own, for what is here */
	outbox_time now;
	struct target_info *list; /* by name */
	size_t count, capacity;
	int64_t gone_after, gone_to; /* lane.h */
	bool again;                  /* the log has messages there */
};

/* In the transaction that is open. only: one target, or NULL for all; an unknown one gives none. */
int targets_load(struct sqlite_store *s, const char *only, struct targets *ret_targets,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
void targets_deinit(struct targets *targets);

/* NULL: none has this name. */
struct target_info *targets_find(struct targets *targets, const char *name);

/* The owner of a lane is gone: fence it, and what it has in flight is pending again. actor: for whom, or NULL. */
int targets_take_over(const struct targets *targets, struct target_info *target, int lane,
		      const char *actor, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* EPROTO: the first lane that is refused. */
int targets_check_lanes(const struct targets *targets, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is this a new message under a number that another one had? */
static inline bool targets_numbered_again(const struct targets *targets, int64_t seq)
{
	return seq > targets->gone_after && seq <= targets->gone_to;
}

/* Does somebody work on the lane? */
bool lane_is_leased(const struct lane_info *lane, outbox_time now);

/*
 * The delivery of a log row (columns up to COL_DUE_AT) that has no detour. state is 0 when the
 * message is not routed to the target. Its texts are borrowed from the row and from targets.
 */
int delivery_of_row(struct targets *targets, struct target_info *target, sqlite3_stmt *row,
		    struct outbox_delivery *ret_delivery, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Did the target get this row, or has it to get it? Once more a row that has no detour. */
int delivery_is_wanted(struct targets *targets, struct target_info *target, sqlite3_stmt *row,
		       bool *ret_wanted, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The delivery of a detour, a row of SQL_DETOUR_* with DETOUR_COLUMNS. Texts are borrowed. */
int delivery_of_detour(const struct target_info *target, sqlite3_stmt *row,
		       struct outbox_delivery *ret_delivery,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Copy the borrowed texts. */
int delivery_keep(struct outbox_delivery *delivery, struct outbox_arena *arena,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
