/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operators' actions: one call of outbox_act(), sql/postgres/act.sql. What may be done in which state is
 * the lifecycle table's: the server is told, and says in which state a delivery was that it refused.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "core/lifecycle.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

enum {
	ACTED_DONE,
	ACTED_REFUSED,
	ACTED_MORE,
	ACTED_OLDEST,
	ACTED_MISSING,
	ACTED_ID,
	ACTED_TARGET,
	ACTED_STATE,
	ACTED_LAST_SEQ,
	ACTED_LAST_TARGET
};

/* A selection as outbox_act_filter has it. */
struct wanted {
	const char *states[OUTBOX_DISCARDED + 1];
	size_t n_states;
	const char *allowed[OUTBOX_DISCARDED + 1];
	size_t n_allowed;
	int64_t after_seq;
	char after_target[OUTBOX_TARGET_NAME_MAX + 1];
};

/* Whoever names deliveries is told why it cannot be done; a filter selects those with which it can. */
static int wanted_init(struct wanted *w, const struct outbox_act *act, struct outbox_error *err)
{
	const struct outbox_filter *f = act->filter;

	for (int state = OUTBOX_PENDING; state <= OUTBOX_DISCARDED; state++) {
		if (!lifecycle_next(state, lifecycle_of_action(act->action)))
			continue;
		w->allowed[w->n_allowed++] = outbox_state_name(state);
		if ((!f->state || f->state == state) && (!f->why || state == OUTBOX_PENDING))
			w->states[w->n_states++] = outbox_state_name(state);
	}
	return f->cursor ? store_cursor_parse(f->cursor, &w->after_seq, w->after_target, err)
			 : OUTBOX_OK;
}

static int send(struct pg_store *s, const struct outbox_act *act, PGresult **ret_row,
		struct outbox_error *err)
{
	const struct outbox_filter *f = act->filter;
	const char *why = f->n_ids ? NULL : outbox_why_name(f->why);
	struct wanted w = { 0 };
	int r;

	r = wanted_init(&w, act, err);
	if (r != OUTBOX_OK)
		return r;
	if (!f->n_ids && f->why && !why)
		w.n_states = 0; /* an unknown one is nobody's */
	return pg_op(s, act->dry_run ? PG_READ : PG_WRITE,
		     "SELECT * FROM @outbox_act(ROW($1, $2, $3, $4, $5, $6, $7)::@outbox_act_order,"
		     " ROW($8, $9, @outbox_like($10), $11, $12, $13, $14, $15, $16, $17, $18,"
		     " $19)::@outbox_act_filter, $20, 2)",
		     ARGS(ARG_TEXT(action_names[act->action]), ARG_TEXT(act->actor),
			  ARG_TEXT(act->reason), ARG_TIME(act->until), ARG_BOOL(act->dry_run),
			  ARG_ARRAY(PG_TEXTS, w.allowed, w.n_allowed), pg_new_token(s),
			  ARG_ARRAY(PG_TEXTS, f->ids, f->n_ids), ARG_TEXT(f->target),
			  ARG_TEXT(f->type), ARG_TEXT(f->key),
			  ARG_ARRAY(PG_TEXTS, w.states, w.n_states), ARG_TEXT(why),
			  ARG_TIME(f->changed_before), ARG_TIME(f->created_before),
			  ARG_TIME(act->action == OUTBOX_DEFER ? act->until : 0),
			  ARG_INT8(w.after_seq), ARG_TEXT(w.after_target),
			  ARG_INT8((int64_t)f->limit), pg_now(s)),
		     ret_row, err);
}

static void tell_refusal(const PGresult *row, const struct outbox_act *act, char *out, size_t size)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int state = outbox_state_parse(pg_peek(row, 0, ACTED_STATE));
	const char *text = "it is being sent right now; try again";
	char shown[96];

	if (!PQgetisnull(row, 0, ACTED_MISSING)) {
		snprintf(out, size, "no message with the id \"%s\"",
			 text_shown(shown, sizeof(shown), pg_peek(row, 0, ACTED_MISSING)));
		return;
	}
	if (PQgetisnull(row, 0, ACTED_ID))
		return;
	if (state != OUTBOX_SENDING &&
	    lifecycle_check(state, lifecycle_of_action(act->action), &why) != OUTBOX_OK)
		text = why.message;
	snprintf(out, size, "%s to %s: %.300s",
		 text_shown(shown, sizeof(shown), pg_peek(row, 0, ACTED_ID)),
		 pg_peek(row, 0, ACTED_TARGET), text);
}

int pg_act(struct outbox_store *store, const struct outbox_act *act, struct outbox_acted *ret_acted,
	   struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct outbox_acted acted = { 0 };
	int r;

	r = send(pg_of(store), act, &row, err);
	if (r != OUTBOX_OK)
		return r;
	acted.done = (size_t)pg_int(row, 0, ACTED_DONE);
	acted.refused = (size_t)pg_int(row, 0, ACTED_REFUSED);
	acted.more = pg_bool(row, 0, ACTED_MORE);
	acted.oldest = pg_time(row, 0, ACTED_OLDEST);
	if (acted.more)
		store_cursor_format(pg_int(row, 0, ACTED_LAST_SEQ),
				    pg_peek(row, 0, ACTED_LAST_TARGET), acted.cursor,
				    sizeof(acted.cursor));
	tell_refusal(row, act, acted.why, sizeof(acted.why));
	*ret_acted = acted;
	return OUTBOX_OK;
}

/* ---- the audit trail --------------------------------------------------------------------------- */

static int read_entry(const PGresult *result, int row, struct outbox_arena *arena,
		      struct outbox_audit *entry, struct outbox_error *err)
{
	const char **const texts[] = { &entry->actor, &entry->action, &entry->target,
				       &entry->id,    &entry->reason, &entry->detail };
	int r = OUTBOX_OK;

	entry->number = pg_int(result, row, 0);
	entry->at = pg_time(result, row, 1);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = pg_text(result, row, (int)i + 2, arena, texts[i], err);
	return r;
}

int pg_audit(struct outbox_store *store, const char *id, size_t limit, struct outbox_arena *arena,
	     struct outbox_audit **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_audit *rows;
	size_t count;
	int r;

	r = pg_op(pg_of(store), PG_READ,
		  "SELECT number, at, actor, action, target, id, reason, detail"
		  " FROM @outbox_read_audit($1, $2) ORDER BY number DESC",
		  ARGS(ARG_TEXT(id), ARG_INT8((int64_t)limit)), &result, err);
	if (r != OUTBOX_OK)
		return r;
	count = (size_t)PQntuples(result);
	rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && r == OUTBOX_OK; i++)
		r = read_entry(result, (int)i, arena, &rows[i], err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

int pg_audit_add(struct outbox_store *store, const struct outbox_audit *row, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE,
		     "INSERT INTO @outbox_audit (at, actor, action, target, reason, detail)"
		     " VALUES (@outbox_now($1), $2, $3, $4, $5, $6)",
		     ARGS(pg_now(s), ARG_TEXT(row->actor), ARG_TEXT(row->action),
			  ARG_TEXT(row->target), ARG_TEXT(row->reason), ARG_TEXT(row->detail)),
		     NULL, err);
}
