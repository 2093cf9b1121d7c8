/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/lane.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdio.h>
#include <string.h>

int sqlite_no_target(const char *target, struct outbox_error *err)
{
	char shown[96];

	return outbox_fail(err, OUTBOX_ENOTFOUND, "no target \"%s\" is registered here",
			   text_shown(shown, sizeof(shown), target));
}

int receipt_lanes_differ(struct sqlite_store *s, const char *target, int64_t there, int64_t said,
			 struct outbox_error *err)
{
	s->ready = false; /* it may know a number that was put right meanwhile */
	return outbox_fail(err, OUTBOX_EPROTO,
			   "target %s has %lld lanes, but outbox_meta says %lld: it was changed by hand; "
			   "set it back: UPDATE outbox_meta SET value = %lld WHERE name = 'lanes'",
			   target, (long long)there, (long long)said, (long long)there);
}

/* In the order of RECEIPT_COLUMNS. */
static const size_t fields[] = {
	offsetof(struct receipt, n),
	offsetof(struct receipt, fence_token),
	offsetof(struct receipt, settled_at),
	offsetof(struct receipt, route_version),
	offsetof(struct receipt, from_seq),
	offsetof(struct receipt, pos),
	offsetof(struct receipt, claim_end),
	offsetof(struct receipt, claim_count),
	offsetof(struct receipt, claim_detours),
	offsetof(struct receipt, claim_seq),
	offsetof(struct receipt, claim_last),
	offsetof(struct receipt, caution.takeovers),
	offsetof(struct receipt, caution.end),
	offsetof(struct receipt, caution.left),
	offsetof(struct receipt, caution.suspect_seq),
	offsetof(struct receipt, counts.delivered),
	offsetof(struct receipt, counts.retried),
	offsetof(struct receipt, counts.failed),
	offsetof(struct receipt, counts.parked),
	offsetof(struct receipt, counts.deferred),
	offsetof(struct receipt, delivered_total),
	offsetof(struct receipt, retried_total),
};
_Static_assert(ARRAY_SIZE(fields) == RECEIPT_FIELDS, "a field for each column");

void receipt_read(sqlite3_stmt *row, struct receipt *ret_receipt)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		int64_t value = sqlite3_column_int64(row, (int)i);

		memcpy((char *)ret_receipt + fields[i], &value, sizeof(value));
	}
}

int receipt_last(const struct lane_op *op, struct receipt *ret_receipt, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t known = 0;
	int r = sqlite_query(op->s, SQL_RECEIPT_LAST, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			     &q, err);

	if (sqlite_next(q, &r, err)) {
		receipt_read(q, ret_receipt);
		return OUTBOX_OK;
	}
	if (r == OUTBOX_OK)
		r = sqlite_number(op->s, SQL_TARGET_GET, ARGS(ARG_TEXT(op->target)), 0, &known, err);
	if (r != OUTBOX_OK)
		return r;
	if (!known)
		return sqlite_no_target(op->target, err);
	return outbox_fail(err, OUTBOX_ENOTFOUND, "target %s has no lane %d", op->target, op->lane);
}

struct receipt receipt_next(const struct receipt *last, int64_t token, outbox_time now)
{
	return (struct receipt){
		.n = last->n + 1,
		.fence_token = token,
		.settled_at = now,
		.route_version = last->route_version,
		.from_seq = last->pos,
		.pos = last->pos,
		.claim_end = last->pos,
		.delivered_total = last->delivered_total,
		.retried_total = last->retried_total,
	};
}

int receipt_append(const struct lane_op *op, const char *owner, const struct receipt *receipt,
		   struct outbox_error *err)
{
	struct sqlite_args args = *ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_TEXT(owner));

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct sqlite_arg *arg = &args.values[3 + i];

		arg->type = DB_ARG_INT;
		memcpy(&arg->number, (const char *)receipt + fields[i], sizeof(arg->number));
	}
	return sqlite_run(op->s, SQL_RECEIPT_ADD, &args, err);
}

bool receipt_cautious(const struct receipt *receipt)
{
	return caution_applies(&receipt->caution, receipt->pos);
}

int lane_view_read(struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = op->s;
	struct lane_view *v = &op->view;
	int r = sqlite_query(s, SQL_LANE_VIEW,
			     ARGS(ARG_TEXT(op->target), ARG_INT(pos), ARG_INT(op->lane)), &q, err);

	if (!sqlite_next(q, &r, err))
		return r == OUTBOX_OK ? sqlite_no_target(op->target, err) : r;
	*v = (struct lane_view){
		.version = sqlite3_column_int64(q, 0),
		.paused = sqlite3_column_int(q, 1) != 0,
		.hold = sqlite3_column_int(q, 2) != 0,
		.unordered = sqlite3_column_int(q, 3) != 0,
		.last_seq = sqlite3_column_int64(q, 4),
		.pending = sqlite3_column_int(q, 5) != 0,
		.failed = sqlite3_column_int(q, 6) != 0,
		.ahead = sqlite3_column_int(q, 7) != 0,
		.gone_to = sqlite3_column_int64(q, 8),
		.again = sqlite3_column_int64(q, 9),
		.lanes = sqlite3_column_int64(q, 10),
		.lanes_meta = sqlite3_column_int64(q, 11),
		.refused = sqlite3_column_int(q, 12) != 0,
	};
	return OUTBOX_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* For people, and without the remedy. False: nothing is wrong. */
static bool find_fault(const struct lane_op *op, int64_t pos, char *fault, size_t size)
{
	const struct lane_view *v = &op->view;
	int64_t known = pos > v->gone_to ? pos : v->gone_to;

	if (v->again)
		snprintf(fault, size,
			 "target %s, lane %d: message %lld has a number that was given before: the log's "
			 "sequence was reset",
			 op->target, op->lane, (long long)v->again);
	else if (known > v->last_seq)
		snprintf(fault, size,
			 "target %s, lane %d: messages up to %lld were there, but the log ends at %lld: its "
			 "sequence was reset, or the file restored in part",
			 op->target, op->lane, (long long)known, (long long)v->last_seq);
	else if (v->refused)
		snprintf(fault, size,
			 "target %s, lane %d: it was refused before, and nobody has realigned it",
			 op->target, op->lane);
	else
		return false;
	return true;
}

static int history_check(const struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	char fault[FAULT_TEXT_MAX];

	if (!find_fault(op, pos, fault, sizeof(fault)))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EPROTO, "%s; run: outbox realign", fault);
}

static int read_refusal(const struct lane_op *op, struct outbox_error *err)
{
	char text[sizeof(err->message)];
	int r = sqlite_string(op->s, SQL_LANE_REFUSED, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			      text, sizeof(text), err);

	return r == OUTBOX_OK ? outbox_fail(err, OUTBOX_EPROTO, "%s", text) : r;
}

static int lanes_check(const struct lane_op *op, struct outbox_error *err)
{
	const struct lane_view *v = &op->view;

	if (v->lanes != v->lanes_meta || v->lanes != op->s->lanes)
		return receipt_lanes_differ(op->s, op->target, v->lanes, v->lanes_meta, err);
	return OUTBOX_OK;
}

int lane_view_check(struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	int r = lane_view_read(op, pos, err);

	if (r == OUTBOX_OK && op->view.refused)
		return read_refusal(op, err);
	if (r == OUTBOX_OK)
		r = lanes_check(op, err);
	return r == OUTBOX_OK ? history_check(op, pos, err) : r;
}

int lane_view_fault(struct lane_op *op, int64_t pos, char *ret_fault, struct outbox_error *err)
{
	char fault[FAULT_TEXT_MAX];
	int r = lane_view_read(op, pos, err);

	if (r == OUTBOX_OK)
		r = lanes_check(op, err);
	if (r != OUTBOX_OK)
		return r;
	if (!find_fault(op, pos, fault, sizeof(fault)))
		fault[0] = '\0';
	memcpy(ret_fault, fault, sizeof(fault));
	return OUTBOX_OK;
}

static int write_refusal(struct lane_op *op, struct outbox_error *err)
{
	struct outbox_error fault = OUTBOX_ERROR_INIT;
	struct receipt last;
	int r = receipt_last(op, &last, err);

	if (r == OUTBOX_OK)
		r = lane_view_read(op, last.pos, err);
	if (r != OUTBOX_OK || op->view.refused || history_check(op, last.pos, &fault) == OUTBOX_OK)
		return r;
	r = sqlite_run(op->s, SQL_LANE_REFUSE,
		       ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_TEXT(fault.message),
			    ARG_INT(op->now)),
		       err);
	/* It stands ahead of the log: whatever gets those numbers next is new. */
	if (r == OUTBOX_OK && !op->view.again)
		r = numbers_mark(op->s, last.pos, err);
	return r;
}

int numbers_note_refusal(struct sqlite_store *s, const char *target, int lane, int status)
{
	struct lane_op op = { .s = s, .target = target, .lane = lane };

	/* That it was noted is not what the caller asked for: who does not get here is told again. */
	if (status != OUTBOX_EPROTO || sqlite_enter(s, DB_WRITE, NULL) != OUTBOX_OK)
		return status;
	op.now = sqlite_now(s);
	(void)!sqlite_end(s, write_refusal(&op, NULL), NULL);
	return status;
}

int numbers_mark(struct sqlite_store *s, int64_t to, struct outbox_error *err)
{
	return sqlite_run(s, SQL_NUMBERS_MARK, ARGS(ARG_INT(to)), err);
}

/* ---- history ------------------------------------------------------------------------------------ */

static int receipt_at(const struct lane_op *op, int64_t n, struct receipt *ret_receipt,
		      struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(op->s, SQL_RECEIPT_AT,
			     ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(n)), &q, err);

	if (sqlite_next(q, &r, err))
		receipt_read(q, ret_receipt);
	else if (r == OUTBOX_OK)
		r = outbox_fail(err, OUTBOX_EPROTO, "target %s, lane %d: receipt %lld is missing",
				op->target, op->lane, (long long)n);
	return r;
}

int history_before(const struct lane_op *op, int64_t last_n, outbox_time time,
		   struct history *ret_history, struct outbox_error *err)
{
	int64_t first, low, high = last_n;
	struct receipt point = { 0 };
	int r = sqlite_number(op->s, SQL_RECEIPT_FIRST,
			      ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), 0, &first, err);

	if (r != OUTBOX_OK)
		return r;
	/* Everything before low is older, everything from high + 1 on is not. */
	for (low = first; low <= high;) {
		int64_t middle = low + (high - low) / 2;

		r = receipt_at(op, middle, &point, err);
		if (r != OUTBOX_OK)
			return r;
		if (point.settled_at < time)
			low = middle + 1;
		else
			high = middle - 1;
	}
	r = receipt_at(op, low > first ? low - 1 : first, &point, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_history = (struct history){ .found = low > first,
					 .pos = point.pos,
					 .delivered_total = point.delivered_total,
					 .retried_total = point.retried_total };
	if (low == first) {
		ret_history->pos = point.from_seq;
		ret_history->delivered_total -= point.counts.delivered;
		ret_history->retried_total -= point.counts.retried;
	}
	return OUTBOX_OK;
}

/* ---- taking over: core/caution.h says what a new owner must suspect ----------------------------- */

/* What was in flight is pending again. */
static int reclaim(const struct lane_op *op, const struct receipt *last, bool *ret_suspect,
		   struct outbox_error *err)
{
	int64_t suspect = 0;
	int r = OUTBOX_OK;

	if (last->claim_detours)
		r = sqlite_number(op->s, SQL_DETOUR_SUSPECT,
				  ARGS(ARG_TEXT(op->target), ARG_INT(last->claim_seq)), 0, &suspect,
				  err);
	if (r == OUTBOX_OK && last->claim_detours)
		r = sqlite_run(op->s, SQL_DETOUR_RECLAIM,
			       ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now)), err);
	if (r == OUTBOX_OK)
		r = sqlite_run(op->s, SQL_LANE_TAKEN, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			       err);
	*ret_suspect = suspect != 0;
	return r;
}

int receipt_take_over(struct lane_op *op, const char *owner, int64_t token,
		      struct receipt *ret_receipt, struct outbox_error *err)
{
	struct caution_claim claim;
	struct receipt last, next;
	int r = receipt_last(op, &last, err);

	if (r != OUTBOX_OK)
		return r;
	if (last.fence_token == token) {
		/* The very same request, done before. */
		*ret_receipt = last;
		return OUTBOX_OK;
	}
	r = lane_view_check(op, last.pos, err);
	if (r != OUTBOX_OK)
		return r;
	claim = (struct caution_claim){ .count = last.claim_count,
					.detours = last.claim_detours,
					.first = last.claim_seq,
					.last = last.claim_last };
	if (last.claim_count > 0)
		r = reclaim(op, &last, &claim.first_is_suspect, err);
	next = receipt_next(&last, token, op->now);
	next.caution = caution_take_over(&last.caution, last.pos, &claim);
	if (r == OUTBOX_OK)
		r = receipt_append(op, owner, &next, err);
	if (r == OUTBOX_OK)
		*ret_receipt = next;
	return r;
}

int sqlite_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		     int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct lane_op op = { .s = s, .target = target, .lane = lane };
	struct receipt receipt = { 0 }, last = { 0 };
	int r = sqlite_enter(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	op.now = sqlite_now(s);
	r = receipt_last(&op, &last, err);
	if (r == OUTBOX_OK)
		r = receipt_take_over(&op, owner, new_token, &receipt, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_head = (struct outbox_head){
			.n = receipt.n,
			.fence_token = receipt.fence_token,
			.takeovers = (int)receipt.caution.takeovers,
			.cautious = receipt_cautious(&receipt),
			.suspect_seq = receipt.caution.suspect_seq,
			.in_flight = last.fence_token == new_token ? 0 : last.claim_count,
		};
	return numbers_note_refusal(s, target, lane, r);
}
