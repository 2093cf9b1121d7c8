/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_LANE_H
#define STORE_SQLITE_LANE_H

/* A lane: its receipts, what its owner must know besides the last one, its history. */

#include "core/caution.h"
#include "core/settlement.h"
#include "store/sqlite/db.h"

/* The columns of outbox_receipt; sql/sqlite/schema.sql says what they mean. */
struct receipt {
	int64_t n, fence_token;
	outbox_time settled_at;
	int64_t route_version, from_seq, pos;
	int64_t claim_end, claim_count, claim_detours, claim_seq, claim_last;
	struct caution caution;
	struct settlement_counts counts;
	int64_t delivered_total, retried_total;
};

/* What a claim depends on, read after the settlement in the same transaction. */
struct lane_view {
	int64_t version; /* of the target's routing */
	bool paused, hold, unordered;
	int64_t last_seq;     /* of the log */
	bool pending, failed; /* the target has such detours */
	bool ahead;           /* it has detours after the lane's position */
	/* see numbers below */
	int64_t gone_to, again; /* again: a message whose number was given before, or 0 */
	int64_t lanes, lanes_meta;
	bool refused; /* that is noted */
};

/* Columns of a row of RECEIPT_COLUMNS; what a statement selects besides comes after them. */
#define RECEIPT_FIELDS 22

/* One op's work on one lane. */
struct lane_op {
	struct sqlite_store *s;
	const char *target;
	int lane;
	outbox_time now;
	struct lane_view view; /* after lane_view_check() */
};

/* From a row that begins with RECEIPT_COLUMNS. */
void receipt_read(sqlite3_stmt *row, struct receipt *ret_receipt);

/* The lane's last one. ENOTFOUND when there is no such target or lane. */
int receipt_last(const struct lane_op *op, struct receipt *ret_receipt,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What the next one starts from: same position, nothing in flight, nothing settled. */
struct receipt receipt_next(const struct receipt *last, int64_t token, outbox_time now);

int receipt_append(const struct lane_op *op, const char *owner, const struct receipt *receipt,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* One message at a time? */
bool receipt_cautious(const struct receipt *receipt);

/* Fill op->view for a lane that stands at pos. ENOTFOUND. */
int lane_view_read(struct lane_op *op, int64_t pos, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same, and EPROTO when the lane is refused: its position and the log do not belong together. */
int lane_view_check(struct lane_op *op, int64_t pos, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A sentence about a target's lane, with three numbers. */
#define FAULT_TEXT_MAX (OUTBOX_TARGET_NAME_MAX + 240)

/* The same for realign: that the lane is refused is no error. ret_fault (FAULT_TEXT_MAX): why, without the remedy, for
 * people; "": it is not. */
int lane_view_fault(struct lane_op *op, int64_t pos, char *ret_fault,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Append a take-over receipt: fences the owner, what was in flight is pending again. Shared by take_over()
 * and by operators who act on what a dead owner left.
 */
int receipt_take_over(struct lane_op *op, const char *owner, int64_t token,
		      struct receipt *ret_receipt, struct outbox_error *err) OUTBOX_MUSTCHECK;

int sqlite_no_target(const char *target, struct outbox_error *err);

/* EPROTO: a target has other lanes than outbox_meta says, and a message's lane depends on their number. */
int receipt_lanes_differ(struct sqlite_store *s, const char *target, int64_t there, int64_t said,
			 struct outbox_error *err);

/* ---- numbers ------------------------------------------------------------------------------- */

/*
 * Is the log still numbered as it was when lanes passed it?
 *
 * SQLite gives a new row the number behind the highest that is there or that sqlite_sequence knows. If
 * that is reset when the end of the log is purged, numbers are given again, and what gets them lies
 * before positions that have passed them: nobody would read it. So every purge notes which numbers are
 * gone for good, those in (gone_after, gone_to]: from the last message that is left to the end of the log. A
 * message with such a number is a new one under an old number, and lanes are refused until outbox realign.
 */

/* A lane was refused: note that, so that it stays refused when publishers have come past its position.
 * status is what its op returns, and returned. */
int numbers_note_refusal(struct sqlite_store *s, const char *target, int lane, int status);

/* What is not there now up to the end of the log, or to `to`, is gone for good. In the transaction that removes. */
int numbers_mark(struct sqlite_store *s, int64_t to, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- history ------------------------------------------------------------------------------- */

struct history {
	bool found; /* false: no receipt is that old, and the numbers are those before the oldest */
	int64_t pos, delivered_total, retried_total;
};

/*
 * Where the lane stood before `time`: the last receipt settled earlier. By halving, since a lane may
 * have a million receipts; exact as long as the clock did not go back.
 */
int history_before(const struct lane_op *op, int64_t last_n, outbox_time time,
		   struct history *ret_history, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
