/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/numbers.h"

#include "base/cleanup.h"

static int history_check(const struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	const struct lane_view *v = &op->view;
	int64_t known = pos > v->gone_to ? pos : v->gone_to;

	if (v->again)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "target %s, lane %d: message %lld has a number that was given before: "
				   "the log's sequence was reset; run: outbox rebase",
				   op->target, op->lane, (long long)v->again);
	if (known > v->last_seq)
		return outbox_fail(
			err, OUTBOX_EPROTO,
			"target %s, lane %d: messages up to %lld were there, but the log ends at "
			"%lld: its sequence was reset, or the file restored in part; run: outbox "
			"rebase",
			op->target, op->lane, (long long)known, (long long)v->last_seq);
	return OUTBOX_OK;
}

static int read_note(const struct lane_op *op, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *text;
	bool row = false;
	int r;

	r = sqlite_query(op->s, SQL_LANE_REFUSED, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), &q,
			 err);
	if (r == OUTBOX_OK)
		r = sqlite_step(op->s, q, &row, err);
	if (r != OUTBOX_OK)
		return r;
	text = row ? sqlite_peek(q, 0, &r, err) : "";
	return r == OUTBOX_OK ? outbox_fail(err, OUTBOX_EPROTO, "%s", text) : r;
}

int numbers_check(const struct lane_op *op, int64_t pos, struct outbox_error *err)
{
	const struct lane_view *v = &op->view;

	if (v->refused)
		return read_note(op, err);
	if (v->lanes != v->lanes_meta || v->lanes != op->s->lanes)
		return receipt_lanes_differ(op->s, op->target, v->lanes, v->lanes_meta, err);
	return history_check(op, pos, err);
}

static int note(struct lane_op *op, struct outbox_error *err)
{
	struct outbox_error fault = OUTBOX_ERROR_INIT;
	struct receipt last;
	int r;

	r = receipt_last(op, &last, err);
	if (r == OUTBOX_OK)
		r = receipt_read_view(op, last.pos, err);
	if (r != OUTBOX_OK || op->view.refused || history_check(op, last.pos, &fault) == OUTBOX_OK)
		return r;
	r = sqlite_run(op->s, SQL_LANE_REFUSE,
		       ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_TEXT(fault.message),
			    ARG_INT(op->now)),
		       NULL, err);
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
	(void)!sqlite_end(s, note(&op, NULL), NULL);
	return status;
}

int numbers_mark(struct sqlite_store *s, int64_t to, struct outbox_error *err)
{
	return sqlite_run(s, SQL_NUMBERS_MARK, ARGS(ARG_INT(to)), NULL, err);
}

int numbers_check_all(const struct targets *t, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < t->count && r == OUTBOX_OK; i++) {
		const struct target_info *target = &t->list[i];

		for (int lane = 0; lane < target->n_lanes && r == OUTBOX_OK; lane++) {
			struct lane_op op = {
				.s = t->s, .target = target->name, .lane = lane, .now = t->now
			};

			r = receipt_view(&op, target->lanes[lane].last.pos, err);
		}
	}
	return r;
}
