/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/select.h"
#include "store/store.h"

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the deliveries asked for");
}

static int make_page(const struct selection *sel, struct outbox_arena *arena,
		     struct outbox_page *page, struct outbox_error *err)
{
	size_t count = sel->count < sel->limit ? sel->count : sel->limit;

	page->rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (size_t i = 0; i < count; i++)
		page->rows[i] = sel->rows[i].d;
	page->count = count;
	if (sel->count > sel->limit) {
		page->cursor = store_cursor_after(&page->rows[count - 1], arena);
		if (!page->cursor)
			return no_room(err);
	}
	return OUTBOX_OK;
}

static int list(struct sqlite_store *s, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *page, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	_cleanup_(select_deinit) struct selection sel = {
		.targets = &targets,
		.filter = filter,
		.arena = arena,
		.states = SELECT_ALL_STATES,
		.limit = store_page_limit(filter->limit),
	};
	int r;

	r = targets_load(s, filter->target, &targets, err);
	if (r == OUTBOX_OK)
		r = select_deliveries(&sel, err);
	if (r == OUTBOX_OK)
		r = make_page(&sel, arena, page, err);
	return r;
}

int sqlite_list(struct outbox_store *store, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_page page = { 0 };
	int r;

	r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, list(s, filter, arena, &page, err), err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

static int get(struct sqlite_store *s, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *message, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *source;
	int r;

	r = message_find(s, SQL_LOOK_MESSAGE, id, &q, err);
	if (r != OUTBOX_OK)
		return r;
	source = outbox_arena_text(arena, s->source);
	return source ? message_load(q, arena, source, false, message, err) : no_room(err);
}

int sqlite_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_claimed message;
	int r;

	r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, get(s, id, arena, &message, err), err);
	if (r == OUTBOX_OK)
		*ret_message = message;
	return r;
}
