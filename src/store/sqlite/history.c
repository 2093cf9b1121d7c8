/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/history.h"

#include "base/cleanup.h"

struct point {
	outbox_time settled_at;
	int64_t from_seq, pos, delivered, retried, delivered_total, retried_total;
};

static int read_point(const struct lane_op *op, int64_t n, struct point *ret_point,
		      struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	bool row;
	int r;

	r = sqlite_query(op->s, SQL_RECEIPT_AT,
			 ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(n)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(op->s, q, &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (!row)
		return outbox_fail(err, OUTBOX_EPROTO, "target %s, lane %d: receipt %lld is missing",
				   op->target, op->lane, (long long)n);
	*ret_point = (struct point){
		.settled_at = sqlite3_column_int64(q, 0),
		.from_seq = sqlite3_column_int64(q, 1),
		.pos = sqlite3_column_int64(q, 2),
		.delivered = sqlite3_column_int64(q, 3),
		.retried = sqlite3_column_int64(q, 4),
		.delivered_total = sqlite3_column_int64(q, 5),
		.retried_total = sqlite3_column_int64(q, 6),
	};
	return OUTBOX_OK;
}

int history_before(const struct lane_op *op, int64_t last_n, outbox_time time,
		   struct history *ret_history, struct outbox_error *err)
{
	int64_t first, low, high = last_n;
	struct point point = { 0 };
	int r;

	r = sqlite_number(op->s, SQL_RECEIPT_FIRST, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			  0, &first, err);
	if (r != OUTBOX_OK)
		return r;
	/* Everything before low is older, everything from high + 1 on is not. */
	for (low = first; low <= high;) {
		int64_t middle = low + (high - low) / 2;

		r = read_point(op, middle, &point, err);
		if (r != OUTBOX_OK)
			return r;
		if (point.settled_at < time)
			low = middle + 1;
		else
			high = middle - 1;
	}
	r = read_point(op, low > first ? low - 1 : first, &point, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_history = (struct history){ .found = low > first,
					 .n = low - 1,
					 .pos = point.pos,
					 .delivered_total = point.delivered_total,
					 .retried_total = point.retried_total };
	if (low == first) {
		ret_history->pos = point.from_seq;
		ret_history->delivered_total -= point.delivered;
		ret_history->retried_total -= point.retried;
	}
	return OUTBOX_OK;
}
