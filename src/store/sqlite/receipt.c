/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/receipt.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sqlite/numbers.h"

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

static void read_columns(sqlite3_stmt *q, struct receipt *r)
{
	int64_t *const fields[] = {
		&r->n,
		&r->token,
		&r->settled_at,
		&r->route_version,
		&r->from_seq,
		&r->pos,
		&r->claim_end,
		&r->claim_count,
		&r->claim_detours,
		&r->claim_seq,
		&r->claim_last,
		&r->caution.takeovers,
		&r->caution.end,
		&r->caution.left,
		&r->caution.suspect_seq,
		&r->counts.delivered,
		&r->counts.retried,
		&r->counts.failed,
		&r->counts.parked,
		&r->counts.deferred,
		&r->delivered_total,
		&r->retried_total,
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*fields[i] = sqlite3_column_int64(q, (int)i);
}

int receipt_last(const struct lane_op *op, struct receipt *ret_receipt, struct outbox_error *err)
{
	struct sqlite_store *s = op->s;
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	bool row;
	int r;

	r = sqlite_query(s, SQL_RECEIPT_LAST, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(s, q, &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (!row) {
		int64_t known = 0;

		r = sqlite_number(s, SQL_TARGET_VERSION, ARGS(ARG_TEXT(op->target)), 0, &known, err);
		if (r != OUTBOX_OK)
			return r;
		if (!known)
			return sqlite_no_target(op->target, err);
		return outbox_fail(err, OUTBOX_ENOTFOUND, "target %s has no lane %d", op->target,
				   op->lane);
	}
	read_columns(q, ret_receipt);
	return OUTBOX_OK;
}

struct receipt receipt_next(const struct receipt *last, int64_t token, outbox_time now)
{
	return (struct receipt){
		.n = last->n + 1,
		.token = token,
		.settled_at = now,
		.route_version = last->route_version,
		.from_seq = last->pos,
		.pos = last->pos,
		.claim_end = last->pos,
		.delivered_total = last->delivered_total,
		.retried_total = last->retried_total,
	};
}

int receipt_append(const struct lane_op *op, const char *owner, const struct receipt *r,
		   struct outbox_error *err)
{
	return sqlite_run(op->s, SQL_RECEIPT_ADD,
			  ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_TEXT(owner),
			       ARG_INT(r->n), ARG_INT(r->token), ARG_INT(r->settled_at),
			       ARG_INT(r->route_version), ARG_INT(r->from_seq), ARG_INT(r->pos),
			       ARG_INT(r->claim_end), ARG_INT(r->claim_count),
			       ARG_INT(r->claim_detours), ARG_INT(r->claim_seq),
			       ARG_INT(r->claim_last), ARG_INT(r->caution.takeovers),
			       ARG_INT(r->caution.end), ARG_INT(r->caution.left),
			       ARG_INT(r->caution.suspect_seq), ARG_INT(r->counts.delivered),
			       ARG_INT(r->counts.retried), ARG_INT(r->counts.failed),
			       ARG_INT(r->counts.parked), ARG_INT(r->counts.deferred),
			       ARG_INT(r->delivered_total), ARG_INT(r->retried_total)),
			  NULL, err);
}

bool receipt_cautious(const struct receipt *receipt)
{
	return caution_applies(&receipt->caution, receipt->pos);
}

int receipt_read_view(struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = op->s;
	struct lane_view *v = &op->view;
	bool row;
	int r;

	r = sqlite_query(s, SQL_LANE_VIEW,
			 ARGS(ARG_TEXT(op->target), ARG_INT(pos), ARG_INT(op->lane)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(s, q, &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (!row)
		return sqlite_no_target(op->target, err);
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

int receipt_view(struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	int r = receipt_read_view(op, pos, err);

	return r == OUTBOX_OK ? numbers_check(op, pos, err) : r;
}
