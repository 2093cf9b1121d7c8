/* SPDX-License-Identifier: Apache-2.0 */

/* What was settled: outbox_tail(), sql/postgres/tail.sql. The cursor is its own. */

#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/look.h"
#include "store/postgres/ops.h"
#include "store/store.h"

#include <string.h>

enum { TAIL_CURSOR, TAIL_LOOK };

/* Digits that fit into 63 bits, and the character behind them; NULL: something else. */
static const char *pass_number(const char *at, char end)
{
	size_t digits = strspn(at, "0123456789");

	if (digits < 1 || digits > 18 || at[digits] != end)
		return NULL;
	return at + digits + (end != '\0');
}

/* "A:P:S" and any number of ",LO-HI@N"; see tail.sql. */
static bool is_cursor(const char *cursor)
{
	static const char separators[] = "-@";
	size_t length = strcspn(cursor, ",");
	char head[64];
	const char *at = head;

	if (length >= sizeof(head))
		return false;
	memcpy(head, cursor, length);
	head[length] = '\0';
	at = pass_number(at, ':');
	at = at ? pass_number(at, ':') : NULL;
	at = at ? pass_number(at, '\0') : NULL;
	if (!at)
		return false;
	for (cursor += length; *cursor == ',';) {
		cursor++;
		for (size_t i = 0; i < 2; i++) {
			cursor = pass_number(cursor, separators[i]);
			if (!cursor)
				return false;
		}
		at = pass_number(cursor, ',');
		cursor = at ? at - 1 : pass_number(cursor, '\0');
		if (!cursor)
			return false;
	}
	return true;
}

static int make_page(const PGresult *result, struct outbox_arena *arena, struct outbox_page *page,
		     struct outbox_error *err)
{
	int n = PQntuples(result) - 1, r = OUTBOX_OK;

	if (n < 0)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_tail() gave no cursor");
	page->rows = outbox_arena_alloc(arena, (size_t)(n ? n : 1) * sizeof(*page->rows));
	if (!page->rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the deliveries asked for");
	for (int i = 0; i < n && r == OUTBOX_OK; i++)
		r = pg_look_load(result, i, TAIL_LOOK, arena, &page->rows[i], err);
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
		  ARGS(ARG_TEXT(cursor), ARG_INT8((int64_t)store_page_limit(limit))), &result, err);
	if (r == OUTBOX_OK)
		r = make_page(result, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
