/* SPDX-License-Identifier: Apache-2.0 */

/* Deliveries by filter: outbox_list(), sql/postgres/look.sql, sorted and cut to the page. */
#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/message.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

#include <regex.h>

/* The columns of a row of type outbox_look, sql/postgres/look.sql. */
#define LOOK_COLUMNS                                                                         \
	"seq, id, target, type, key, lane, state, why, attempts, owner, last_error, reason," \
	" event_time, created_at, last_status_at, next_attempt_at"

enum {
	LOOK_SEQ,
	LOOK_ID,
	LOOK_TARGET,
	LOOK_TYPE,
	LOOK_KEY,
	LOOK_LANE,
	LOOK_STATE,
	LOOK_WHY,
	LOOK_ATTEMPTS,
	LOOK_OWNER,
	LOOK_ERROR,
	LOOK_REASON,
	LOOK_EVENT_TIME,
	LOOK_CREATED_AT,
	LOOK_LAST_STATUS_AT,
	LOOK_NEXT_ATTEMPT_AT,
	LOOK_END
};

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the deliveries asked for");
}

/* Row `row`, whose seq is column `first`; its texts are copied to the arena. */
static int load_delivery(const PGresult *result, int row, int first, struct outbox_arena *arena,
			 struct outbox_delivery *ret_delivery, struct outbox_error *err)
{
	struct outbox_delivery d = {
		.seq = pg_int(result, row, first + LOOK_SEQ),
		.lane = (int)pg_int(result, row, first + LOOK_LANE),
		.state = outbox_state_parse(pg_peek(result, row, first + LOOK_STATE)),
		.why = outbox_why_parse(pg_peek(result, row, first + LOOK_WHY)),
		.attempts = (int)pg_int(result, row, first + LOOK_ATTEMPTS),
		.event_time = pg_time(result, row, first + LOOK_EVENT_TIME),
		.created_at = pg_time(result, row, first + LOOK_CREATED_AT),
		.last_status_at = pg_time(result, row, first + LOOK_LAST_STATUS_AT),
		.next_attempt_at = pg_time(result, row, first + LOOK_NEXT_ATTEMPT_AT),
	};
	const struct {
		int column;
		const char **text;
	} texts[] = {
		{ LOOK_ID, &d.id },         { LOOK_TARGET, &d.target }, { LOOK_TYPE, &d.type },
		{ LOOK_KEY, &d.key },       { LOOK_OWNER, &d.owner },   { LOOK_ERROR, &d.error },
		{ LOOK_REASON, &d.reason },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (pg_text(result, row, first + texts[i].column, arena, texts[i].text, NULL) !=
		    OUTBOX_OK)
			return no_room(err);
	}
	*ret_delivery = d;
	return OUTBOX_OK;
}

/* What a filter becomes. */
struct selection {
	const char *states[OUTBOX_DISCARDED];
	size_t n_states;
	int64_t after_seq;
	char after_target[OUTBOX_TARGET_NAME_MAX + 1];
};

static int select_init(struct selection *sel, const struct outbox_filter *f, struct outbox_error *err)
{
	*sel = (struct selection){ 0 };
	for (int state = OUTBOX_PENDING; state <= OUTBOX_DISCARDED; state++) {
		if (f->state && f->state != state) /* an unknown one is nobody's state */
			continue;
		if (f->why && state != OUTBOX_PENDING)
			continue;
		sel->states[sel->n_states++] = outbox_state_name(state);
	}
	return f->cursor ? store_cursor_parse(f->cursor, &sel->after_seq, sel->after_target, err)
			 : OUTBOX_OK;
}

static int make_page(const PGresult *result, size_t limit, struct outbox_arena *arena,
		     struct outbox_page *page, struct outbox_error *err)
{
	size_t found = (size_t)PQntuples(result), count = found < limit ? found : limit;
	int r = OUTBOX_OK;

	page->rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (size_t i = 0; i < count && r == OUTBOX_OK; i++)
		r = load_delivery(result, (int)i, 0, arena, &page->rows[i], err);
	if (r != OUTBOX_OK)
		return r;
	page->count = count;
	if (found > limit) {
		page->cursor = store_cursor_after(&page->rows[count - 1], arena);
		if (!page->cursor)
			return no_room(err);
	}
	return OUTBOX_OK;
}

int pg_list(struct outbox_store *store, const struct outbox_filter *filter,
	    struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	size_t limit = filter->limit;
	const char *why = filter->why ? outbox_why_name(filter->why) : NULL;
	struct outbox_page page = { 0 };
	struct selection sel;
	int r;

	r = select_init(&sel, filter, err);
	if (r == OUTBOX_OK)
		r = pg_op(pg_of(store), PG_READ,
			  "SELECT " LOOK_COLUMNS " FROM @outbox_list($1, $2, $3, $4, $5, $6, $7, $8,"
			  " $9, $10, $11, $12) ORDER BY seq, target COLLATE \"C\" LIMIT $11",
			  ARGS(ARG_ARRAY(PG_TEXTS, filter->ids, filter->n_ids),
			       ARG_TEXT(filter->target), ARG_TEXT(filter->type),
			       ARG_TEXT(filter->key), ARG_ARRAY(PG_TEXTS, sel.states, sel.n_states),
			       ARG_TEXT(filter->why && !why ? "unknown" : why),
			       ARG_TIME(filter->changed_before), ARG_TIME(filter->created_before),
			       ARG_INT8(sel.after_seq), ARG_TEXT(sel.after_target),
			       ARG_INT8((int64_t)limit + 1), pg_now(pg_of(store))),
			  &result, err);
	if (r == OUTBOX_OK)
		r = make_page(result, limit, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

int pg_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	   struct outbox_claimed *ret_message, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct pg_store *s = pg_of(store);
	const char *source;
	int r;

	r = pg_op(s, PG_READ, "SELECT " MESSAGE_COLUMNS " FROM @outbox_get($1) m",
		  ARGS(ARG_TEXT(id)), &result, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQntuples(result) == 0)
		return store_no_message(id, err);
	source = outbox_arena_text(arena, s->source);
	if (!source)
		return no_room(err);
	return pg_message_load(&(struct pg_row){ result, 0, 0 }, arena, source, false, ret_message,
			       err);
}

/* ---- keys that wait: outbox_blocked_keys(), sql/postgres/keys.sql ------------------------------ */

static int make_keys_page(const PGresult *result, size_t limit, struct outbox_arena *arena,
			  struct outbox_keys_page *page, struct outbox_error *err)
{
	size_t found = (size_t)PQntuples(result), count = found < limit ? found : limit;
	int r = OUTBOX_OK;

	page->rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (int i = 0; (size_t)i < count && r == OUTBOX_OK; i++) {
		r = load_delivery(result, i, 0, arena, &page->rows[i].front, err);
		page->rows[i].since = pg_time(result, i, LOOK_END);
		page->rows[i].parked = pg_int(result, i, LOOK_END + 1);
	}
	if (r != OUTBOX_OK)
		return r;
	page->count = count;
	if (found > limit) {
		page->cursor = store_cursor_after(&page->rows[count - 1].front, arena);
		if (!page->cursor)
			return no_room(err);
	}
	return OUTBOX_OK;
}

int pg_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
	    struct outbox_arena *arena, struct outbox_keys_page *ret_page, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	size_t limit = filter->limit;
	char after_target[OUTBOX_TARGET_NAME_MAX + 1] = "";
	struct pg_store *s = pg_of(store);
	struct outbox_keys_page page = { 0 };
	int64_t after_seq = 0;
	int r = OUTBOX_OK;

	if (filter->cursor)
		r = store_cursor_parse(filter->cursor, &after_seq, after_target, err);
	if (r == OUTBOX_OK)
		r = pg_op(s, PG_READ,
			  "SELECT " LOOK_COLUMNS
			  ", since, parked FROM @outbox_blocked_keys($1, $2, $3, $4, $5,"
			  " @outbox_now($6))",
			  ARGS(ARG_TEXT(filter->target), ARG_INT8(after_seq),
			       ARG_TEXT(after_target), ARG_INT8((int64_t)limit + 1),
			       ARG_INT8(OUTBOX_COUNT_CAP + 1), pg_now(s)),
			  &result, err);
	if (r == OUTBOX_OK)
		r = make_keys_page(result, limit, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

/* ---- messages by their key: outbox_find_key(), sql/postgres/redact.sql ------------------------- */

enum { FIND_ID, FIND_LOOKED, FIND_LAST };

int pg_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		struct outbox_arena *arena, struct outbox_key_found *ret_found,
		struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_key_found found = { 0 };
	int n, r = pg_op(pg_of(store), PG_READ,
			 "SELECT id, looked, last_seq FROM @outbox_find_key($1, $2, $3, $4)",
			 ARGS(ARG_TEXT(search->key), ARG_TEXT(search->key_like),
			      ARG_INT8(search->after_seq), ARG_INT8((int64_t)search->limit)),
			 &result, err);

	if (r != OUTBOX_OK)
		return r;
	n = PQntuples(result) - 1; /* the last row says how far it looked */
	if (n < 0)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_find_key() gave no end");
	found.ids = outbox_arena_alloc(arena, ((size_t)n + 1) * sizeof(*found.ids));
	if (!found.ids)
		return no_room(err);
	for (int i = 0; i < n && r == OUTBOX_OK; i++)
		r = pg_text(result, i, FIND_ID, arena, &found.ids[found.count++], err);
	found.looked = (size_t)pg_int(result, n, FIND_LOOKED);
	found.last_seq = pg_int(result, n, FIND_LAST);
	found.more = found.looked == search->limit;
	if (r == OUTBOX_OK)
		*ret_found = found;
	return r;
}

/* ---- what was settled: outbox_tail(), sql/postgres/tail.sql. The cursor is its own -------------- */

enum { TAIL_CURSOR, TAIL_LOOK };

#define NUMBER "[0-9]{1,18}" /* fits into 63 bits */

/* "A:P:S" and any number of ",LO-HI@N"; see tail.sql. */
static bool is_cursor(const char *cursor)
{
	static const char pattern[] =
		"^" NUMBER ":" NUMBER ":" NUMBER "(," NUMBER "-" NUMBER "@" NUMBER ")*$";
	regex_t regex;
	bool matches;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	matches = regexec(&regex, cursor, 0, NULL, 0) == 0;
	regfree(&regex);
	return matches;
}

static int make_tail_page(const PGresult *result, struct outbox_arena *arena,
			  struct outbox_page *page, struct outbox_error *err)
{
	int n = PQntuples(result) - 1, r = OUTBOX_OK;

	if (n < 0)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_tail() gave no cursor");
	page->rows = outbox_arena_alloc(arena, (size_t)(n ? n : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (int i = 0; i < n && r == OUTBOX_OK; i++)
		r = load_delivery(result, i, TAIL_LOOK, arena, &page->rows[i], err);
	page->count = (size_t)n;
	if (r == OUTBOX_OK)
		r = pg_text(result, n, TAIL_CURSOR, arena, &page->cursor, err);
	return r;
}

int pg_tail(struct outbox_store *store, const char *cursor, size_t limit,
	    struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_page page = { 0 };
	char shown[80];
	int r;

	if (cursor && !is_cursor(cursor))
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"cursor: \"%s\" does not come from a tail of this store; leave it out",
			text_shown(shown, sizeof(shown), cursor));
	r = pg_op(pg_of(store), PG_READ, "SELECT cursor, (d).* FROM @outbox_tail($1, $2)",
		  ARGS(ARG_TEXT(cursor), ARG_INT8((int64_t)limit)), &result, err);
	if (r == OUTBOX_OK)
		r = make_tail_page(result, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
