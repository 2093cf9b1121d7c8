/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Corrections, in one transaction like every operator's act: the deliveries are looked at, what the message was is
 * kept, what it becomes is written, and what had failed or waits is due. Relays read a message in the transaction that
 * claims it, so whoever has not claimed it sends what it is now.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/message.h"
#include "core/redacted_key.h"
#include "core/routing.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/select.h"
#include "store/store.h"

#define ROWS_MEMORY ((size_t)4 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

struct amending {
	struct sqlite_store *s;
	const struct outbox_amend *amend;
	struct targets targets;
	struct selection sel; /* its deliveries */
	int64_t seq;
	bool redacted;
};

static int find_amended(struct amending *a, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = message_find(a->s, SQL_REDACT_LOOK, a->amend->id, &q, err);

	if (r != OUTBOX_OK)
		return r;
	a->seq = sqlite3_column_int64(q, 0);
	a->redacted = sqlite3_column_int(q, 2) != 0;
	return OUTBOX_OK;
}

static int load_deliveries(struct amending *a, struct outbox_error *err)
{
	int r;

	targets_deinit(&a->targets);
	select_deinit(&a->sel);
	a->sel.rows = NULL;
	a->sel.count = a->sel.capacity = 0;
	r = targets_load(a->s, NULL, &a->targets, err);
	return r == OUTBOX_OK ? select_deliveries(&a->sel, err) : r;
}

/* What a dead owner has in flight: fence it, and look again. */
static int take_over_dead(struct amending *a, struct outbox_error *err)
{
	bool any = false;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < a->sel.count && r == OUTBOX_OK; i++) {
		const struct outbox_delivery *d = &a->sel.rows[i].d;
		struct target_info *t = targets_find(&a->targets, d->target);

		if (!t || d->state != OUTBOX_SENDING ||
		    lane_is_leased(&t->lanes[d->lane], a->targets.now))
			continue;
		any = true;
		r = targets_take_over(&a->targets, t, d->lane, a->amend->actor, err);
	}
	return r == OUTBOX_OK && any ? load_deliveries(a, err) : r;
}

/* Has this target got it, or will it, only because it failed at another one? Then it is no delivery of its own. */
static int dead_letter_only(struct amending *a, const struct target_info *t, bool *ret_only,
			    struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const struct sqlite_route *route;
	int64_t dead;
	int r;

	*ret_only = false;
	r = sqlite_number(a->s, SQL_AMEND_DEAD, ARGS(ARG_TEXT(t->name), ARG_INT(a->seq)), 0, &dead,
			  err);
	if (r != OUTBOX_OK || !dead)
		return r;
	r = sqlite_route_get(a->s, t->name, t->version, &route, err);
	if (r == OUTBOX_OK)
		r = message_find(a->s, SQL_LOOK_ID, a->amend->id, &q, err);
	if (r == OUTBOX_OK)
		*ret_only = a->seq <= t->start_seq || !message_routed(q, route, &r, err);
	return r;
}

static bool is_waiting(const struct outbox_delivery *d)
{
	return d->state == OUTBOX_FAILED || (d->state == OUTBOX_PENDING && d->why == OUTBOX_WAITING);
}

/* Those that are not its own are forgotten; each of the others must allow it, and one be left to be made. */
static int judge_deliveries(struct amending *a, struct outbox_error *err)
{
	bool alive = false, dead = false;
	size_t kept = 0;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < a->sel.count && r == OUTBOX_OK; i++) {
		const struct selected row = a->sel.rows[i];
		struct target_info *t = targets_find(&a->targets, row.d.target);

		if (!t)
			return outbox_fail(err, OUTBOX_EINTERNAL, "a delivery without a target");
		r = dead_letter_only(a, t, &dead, err);
		if (r == OUTBOX_OK && (!dead || row.d.state == OUTBOX_SENDING))
			r = store_amend_judge(row.d.target, row.d.state, err);
		if (r != OUTBOX_OK || dead)
			continue;
		alive |= row.d.state == OUTBOX_PENDING || row.d.state == OUTBOX_FAILED;
		a->sel.rows[kept++] = row;
	}
	a->sel.count = kept;
	return r == OUTBOX_OK && (!alive || a->redacted) ? store_amend_nothing(err) : r;
}

/* In every version of every target's routing: a lane may have passed it by an earlier one. */
static int check_routes(struct amending *a, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const struct outbox_message *to = a->amend->message;
	const struct sqlite_route *route;
	int r = sqlite_query(a->s, SQL_ROUTES_BY_HEADERS, NULL, &q, err);

	while (sqlite_next(q, &r, err)) {
		const char *target = sqlite_peek(q, 0, &r, err);

		if (r == OUTBOX_OK)
			r = sqlite_route_get(a->s, target, sqlite3_column_int64(q, 1), &route, err);
		if (r == OUTBOX_OK &&
		    message_headers_routed(a->seq, route, &r, err) !=
			    route_match_headers(&route->route, to->headers, to->n_headers) &&
		    r == OUTBOX_OK)
			r = store_amend_reroutes(target, err);
	}
	return r;
}

static int write_message(const struct amending *a, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf headers = BUF_INIT(HEADERS_TEXT_MAX);
	const struct outbox_message *m = a->amend->message;
	const char *data = m->size ? m->data : "";
	bool text = message_is_text(m);
	int r = headers_format(m->headers, m->n_headers, &headers, err);

	if (r == OUTBOX_OK)
		r = sqlite_run(a->s, SQL_AMEND_MESSAGE,
			       ARGS(ARG_INT(a->seq), ARG_TEXT(m->content_type),
				    ARG_TEXT(m->n_headers ? buf_str(&headers) : NULL),
				    ARG_STRING(text ? data : NULL, m->size),
				    ARG_BYTES(text ? NULL : data, m->size)),
			       err);
	return r;
}

static int replace_message(const struct amending *a, struct outbox_error *err)
{
	const struct outbox_amend *amend = a->amend;
	struct outbox_audit entry = { .at = a->targets.now,
				      .actor = amend->actor,
				      .action = "amend",
				      .id = amend->id,
				      .reason = amend->reason };
	int r = sqlite_run(a->s, SQL_AMEND_KEEP,
			   ARGS(ARG_INT(a->seq), ARG_INT(a->targets.now), ARG_TEXT(amend->actor),
				ARG_TEXT(amend->reason)),
			   err);

	if (r == OUTBOX_OK)
		r = sqlite_run(a->s, SQL_META_PUT, ARGS(ARG_TEXT("amend"), ARG_INT(a->seq)), err);
	if (r == OUTBOX_OK)
		r = write_message(a, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(a->s, SQL_META_DELETE, ARGS(ARG_TEXT("amend")), err);
	return r == OUTBOX_OK ? sqlite_audit_write(a->s, &entry, err) : r;
}

static int requeue_delivery(struct amending *a, const struct selected *row,
			    struct outbox_amended *amended, struct outbox_error *err)
{
	const struct outbox_act requeue = { .action = OUTBOX_REQUEUE,
					    .actor = a->amend->actor,
					    .reason = a->amend->reason };
	const struct target_info *t = targets_find(&a->targets, row->d.target);
	int64_t parked = 0;
	int r = select_act(&a->targets, t, &requeue, row, row->d.state, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(a->s, SQL_AMEND_PARKED,
				  ARGS(ARG_TEXT(t->name), ARG_TEXT(row->d.key), ARG_INT(row->d.seq),
				       ARG_INT(OUTBOX_COUNT_CAP + 1)),
				  0, &parked, err);
	amended->requeued++;
	amended->parked += parked;
	return r;
}

static int amend_in(struct amending *a, struct outbox_amended *amended, struct outbox_error *err)
{
	int r = find_amended(a, err);

	if (r == OUTBOX_OK)
		r = load_deliveries(a, err);
	if (r == OUTBOX_OK)
		r = take_over_dead(a, err);
	if (r == OUTBOX_OK)
		r = judge_deliveries(a, err);
	if (r == OUTBOX_OK)
		r = check_routes(a, err);
	if (r == OUTBOX_OK)
		r = replace_message(a, err);
	for (size_t i = 0; i < a->sel.count && r == OUTBOX_OK; i++)
		if (is_waiting(&a->sel.rows[i].d))
			r = requeue_delivery(a, &a->sel.rows[i], amended, err);
	return r;
}

int sqlite_amend(struct outbox_store *store, const struct outbox_amend *amend,
		 struct outbox_amended *ret_amended, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ROWS_MEMORY);
	const struct outbox_filter filter = { .ids = &amend->id, .n_ids = 1 };
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_amended amended = { 0 };
	struct amending a = {
		.s = s,
		.amend = amend,
		.sel = { .filter = &filter, .arena = arena, .states = SELECT_ALL_STATES, .limit = 1 },
	};
	int r = OUTBOX_OK;

	a.sel.targets = &a.targets;
	if (!arena)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, amend_in(&a, &amended, err), err);
	select_deinit(&a.sel);
	targets_deinit(&a.targets);
	if (r == OUTBOX_OK && ret_amended)
		*ret_amended = amended;
	return r;
}

/* ---- cancelling ----------------------------------------------------------------------------- */

/*
 * In the transaction that is open: an operator's, or the application's. Whoever writes has the whole file, so that no
 * relay can read the message meanwhile. Later targets are cared for by sqlite_cancel_for().
 */

static int discard_deliveries(struct amending *a, struct outbox_error *err)
{
	const struct outbox_act discard = { .action = OUTBOX_DISCARD,
					    .actor = a->amend->actor,
					    .reason = a->amend->reason };
	bool wanted;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < a->sel.count && r == OUTBOX_OK; i++)
		r = store_cancel_judge(&a->sel.rows[i].d, a->targets.now, &wanted, err);
	for (size_t i = 0; i < a->sel.count && r == OUTBOX_OK; i++) {
		const struct selected *row = &a->sel.rows[i];
		const struct target_info *t = targets_find(&a->targets, row->d.target);

		r = store_cancel_judge(&row->d, a->targets.now, &wanted, err);
		if (r == OUTBOX_OK && wanted && t)
			r = select_act(&a->targets, t, &discard, row, row->d.state, err);
	}
	return r;
}

static int read_due(struct amending *a, outbox_time *ret_due, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = message_find(a->s, SQL_LOOK_ID, a->amend->id, &q, err);

	if (r == OUTBOX_OK)
		*ret_due = sqlite3_column_int64(q, COL_DUE_AT);
	return r;
}

static int cancel_in(struct amending *a, bool *done, struct outbox_error *err)
{
	const struct outbox_amend *as = a->amend;
	struct outbox_audit entry = {
		.actor = as->actor, .action = "cancel", .id = as->id, .reason = as->reason
	};
	outbox_time due = 0;
	int64_t before = 0;
	int r = find_amended(a, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(a->s, SQL_CANCELLED, ARGS(ARG_INT(a->seq), ARG_TEXT(as->id)), 0,
				  &before, err);
	if (r != OUTBOX_OK || before)
		return r;
	r = read_due(a, &due, err);
	if (r == OUTBOX_OK)
		r = store_cancel_check(due, sqlite_now(a->s), err);
	if (r == OUTBOX_OK)
		r = load_deliveries(a, err);
	if (r == OUTBOX_OK)
		r = take_over_dead(a, err);
	if (r == OUTBOX_OK)
		r = discard_deliveries(a, err);
	entry.at = a->targets.now;
	if (r == OUTBOX_OK)
		r = sqlite_run(a->s, SQL_CANCELLED_ADD,
			       ARGS(ARG_INT(a->seq), ARG_TEXT(as->id), ARG_INT(entry.at),
				    ARG_TEXT(as->actor), ARG_TEXT(as->reason)),
			       err);
	if (r == OUTBOX_OK)
		r = sqlite_audit_write(a->s, &entry, err);
	*done = r == OUTBOX_OK;
	return r;
}

int sqlite_cancel_inside(struct sqlite_store *s, const struct outbox_cancel *cancel, bool *ret_done,
			 struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ROWS_MEMORY);
	const struct outbox_filter filter = { .ids = &cancel->id, .n_ids = 1 };
	const struct outbox_amend as = { .id = cancel->id,
					 .actor = cancel->actor,
					 .reason = cancel->reason };
	struct amending a = {
		.s = s,
		.amend = &as,
		.sel = { .filter = &filter, .arena = arena, .states = SELECT_ALL_STATES, .limit = 1 },
	};
	bool done = false;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	a.sel.targets = &a.targets;
	if (r == OUTBOX_OK)
		r = cancel_in(&a, &done, err);
	select_deinit(&a.sel);
	targets_deinit(&a.targets);
	if (r == OUTBOX_OK && ret_done)
		*ret_done = done;
	return r;
}

int sqlite_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
		  struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	return r ? r : sqlite_end(s, sqlite_cancel_inside(s, cancel, ret_done, err), err);
}

static int cancel_rows(struct targets *targets, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct target_info *t = &targets->list[0];
	int r = sqlite_query(targets->s, SQL_CANCELLED_FOR, ARGS(ARG_TEXT(t->name)), &q, err);

	while (sqlite_next(q, &r, err)) {
		const char *reason = sqlite_peek(q, COL_DUE_AT + 1, &r, err);
		struct outbox_delivery d = { 0 };

		if (r == OUTBOX_OK)
			r = delivery_of_row(targets, t, q, &d, err);
		if (r == OUTBOX_OK && d.state == OUTBOX_PENDING)
			r = sqlite_run(targets->s, SQL_ACT_ADD,
				       ARGS(ARG_TEXT(t->name), ARG_INT(d.seq), ARG_INT(targets->now),
					    ARG_TEXT(reason), ARG_TEXT("discarded"), ARG_TEXT(NULL),
					    ARG_TIME(0), ARG_INT(d.lane)),
				       err);
	}
	return r;
}

int sqlite_cancel_for(struct sqlite_store *s, const char *target, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	int r = targets_load(s, target, &targets, err);

	return r == OUTBOX_OK && targets.count ? cancel_rows(&targets, err) : r;
}

/* ---- what it was ---------------------------------------------------------------------------- */

static int read_amendment(sqlite3_stmt *q, struct outbox_arena *arena, struct outbox_amendment *was,
			  struct outbox_error *err)
{
	const char **const texts[] = { &was->actor, &was->reason, &was->content_type, &was->headers };
	const void *data;
	int r = OUTBOX_OK;

	was->at = sqlite3_column_int64(q, 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = sqlite_text(q, (int)i + 1, arena, texts[i], err);
	if (r != OUTBOX_OK)
		return r;
	was->bytes = sqlite3_column_type(q, 5) == SQLITE_NULL;
	data = sqlite3_column_blob(q, was->bytes ? 6 : 5);
	was->size = data ? (size_t)sqlite3_column_bytes(q, was->bytes ? 6 : 5) : 0;
	was->data = outbox_arena_copy(arena, data ? data : "", was->size);
	return OUTBOX_OK;
}

static int read_amendments(struct sqlite_store *s, const char *id, struct outbox_arena *arena,
			   struct outbox_amendment **ret_rows, size_t *ret_count,
			   struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t count;
	size_t n = 0;
	int r = sqlite_number(s, SQL_AMENDED_COUNT, ARGS(ARG_TEXT(id)), 0, &count, err);

	if (r == OUTBOX_OK)
		r = sqlite_query(s, SQL_AMENDED_OF, ARGS(ARG_TEXT(id)), &q, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_rows = outbox_arena_alloc(arena, ((size_t)count + 1) * sizeof(**ret_rows));
	if (!*ret_rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	while (n < (size_t)count && sqlite_next(q, &r, err))
		r = read_amendment(q, arena, &(*ret_rows)[n++], err);
	*ret_count = n;
	return r;
}

int sqlite_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		      struct outbox_amendment **ret_rows, size_t *ret_count,
		      struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_amendment *rows = NULL;
	size_t count = 0;
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, read_amendments(s, id, arena, &rows, &count, err), err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

/* ---- redaction ---------------------------------------------------------------------------------- */

/*
 * Redaction: what may be personal goes, for good. The message stays where it is in the log, with its id,
 * type and times; its key becomes another of the same hash (core/redacted_key.h), so that no lane loses or
 * finds it a second time. secure_delete: what is taken out is overwritten in the file, not only forgotten. The
 * write-ahead log has it until the next checkpoint; backups have it as long as they are kept.
 */

struct redacted {
	int64_t seq;
	char key[REDACTED_KEY_MAX]; /* what it becomes; empty: it has none */
	bool before;                /* it was redacted before */
};

static int find_redacted(struct sqlite_store *s, const char *id, struct redacted *found,
			 struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *key;
	int r = message_find(s, SQL_REDACT_LOOK, id, &q, err);

	if (r != OUTBOX_OK)
		return r;
	found->seq = sqlite3_column_int64(q, 0);
	found->before = sqlite3_column_int(q, 2) != 0;
	key = sqlite_look(q, 1, &r, err);
	if (r == OUTBOX_OK && key)
		redacted_key(key, found->key);
	return r;
}

static int refuse_unfinished(const struct outbox_delivery *d, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "its delivery to %s is %s; only a message whose deliveries are all delivered or "
			   "discarded can be redacted: %s or discard it first",
			   d->target, outbox_state_name(d->state),
			   d->state == OUTBOX_FAILED ? "requeue it" : "wait for it");
}

/* Every delivery is delivered or discarded. */
static int check_finished(struct targets *targets, const char *id, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ROWS_MEMORY);
	const struct outbox_filter filter = { .ids = &id, .n_ids = 1 };
	_cleanup_(select_deinit) struct selection sel = {
		.targets = targets,
		.filter = &filter,
		.arena = arena,
		.states = SELECT_ALL_STATES,
		.limit = 1,
	};
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!targets->count)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "no target is registered, so it still waits for one; it can be redacted "
				   "once it is delivered");
	r = select_deliveries(&sel, err);
	for (size_t i = 0; i < sel.count && r == OUTBOX_OK; i++) {
		const struct outbox_delivery *d = &sel.rows[i].d;

		if (d->state != OUTBOX_DELIVERED && d->state != OUTBOX_DISCARDED)
			r = refuse_unfinished(d, err);
	}
	return r;
}

static int redact_message(struct sqlite_store *s, const struct outbox_redact *redact,
			  const struct redacted *found, struct outbox_error *err)
{
	static const enum sqlite_statement steps[] = {
		SQL_REDACT_MESSAGE,
		SQL_REDACT_DETOURS,
		SQL_REDACT_AMENDED,
		SQL_REDACT_AUDIT,
	};
	struct outbox_audit entry = { .actor = redact->actor,
				      .action = "redact",
				      .id = redact->id,
				      .reason = redact->reason };
	int r = sqlite_run(s, SQL_META_PUT, ARGS(ARG_TEXT("redact"), ARG_INT(found->seq)), err);

	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == OUTBOX_OK; i++)
		r = sqlite_run(s, steps[i],
			       ARGS(ARG_INT(found->seq), ARG_TEXT(found->key), ARG_TEXT(redact->id)),
			       err);
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_META_DELETE, ARGS(ARG_TEXT("redact")), err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

static int redact_in(struct sqlite_store *s, const struct outbox_redact *redact, bool *done,
		     struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	struct redacted found = { 0 };
	int r = find_redacted(s, redact->id, &found, err);

	if (r != OUTBOX_OK || found.before)
		return r;
	r = targets_load(s, NULL, &targets, err);
	if (r == OUTBOX_OK)
		r = check_finished(&targets, redact->id, err);
	if (r == OUTBOX_OK)
		r = redact_message(s, redact, &found, err);
	*done = r == OUTBOX_OK;
	return r;
}

int sqlite_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		  struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	bool done = false;
	int r = sqlite_run(s, SQL_SECURE_DELETE, NULL, err);

	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, redact_in(s, redact, &done, err), err);
	if (r == OUTBOX_OK && ret_done)
		*ret_done = done;
	return r;
}
