/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the way of a redaction, page by page, on a store that says what it was asked. */
#include "base/unit_test.h"
#include "operate/redact/redact_key.h"

#include <string.h>

#define PAGES 3

struct scripted_store {
	struct outbox_store base;
	int pages;
};

static int no_stats(struct outbox_store *store, struct outbox_arena *arena,
		    struct outbox_stats *ret_stats, struct outbox_error *err)
{
	(void)store;
	(void)arena;
	(void)err;
	*ret_stats = (struct outbox_stats){ .n_targets = 1 };
	return OUTBOX_OK;
}

static int find_one(struct outbox_store *store, const struct outbox_key_search *search,
		    struct outbox_arena *arena, struct outbox_key_found *ret_found,
		    struct outbox_error *err)
{
	static const char *ids[] = { "a1" };

	(void)store;
	(void)search;
	(void)arena;
	(void)err;
	*ret_found = (struct outbox_key_found){ .count = 1, .ids = ids, .looked = 1, .last_seq = 1 };
	return OUTBOX_OK;
}

/* A page of one row; its cursor is in the arena, as every store's is. The next page needs room before it is read. */
static int list_pages(struct outbox_store *store, const struct outbox_filter *filter,
		      struct outbox_arena *arena, struct outbox_page *ret_page,
		      struct outbox_error *err)
{
	static const char *const cursors[PAGES] = { "the second", "the third", NULL };
	struct scripted_store *s = (struct scripted_store *)store;
	struct outbox_delivery *row = outbox_arena_alloc(arena, sizeof(*row));

	(void)err;
	assert_non_null(row);
	assert_true(s->pages < PAGES);
	*row = (struct outbox_delivery){ .id = "a1", .target = "events", .state = OUTBOX_PENDING };
	if (s->pages > 0)
		assert_string_equal(filter->cursor, cursors[s->pages - 1]);
	*ret_page = (struct outbox_page){ .count = 1,
					  .rows = row,
					  .cursor = outbox_arena_text(arena, cursors[s->pages++]) };
	return OUTBOX_OK;
}

static void count(void *context, const struct outbox_delivery *row)
{
	assert_string_equal(row->target, "events");
	++*(int *)context;
}

static void all_that_is_in_the_way_is_told(void **state)
{
	static const struct outbox_store_ops ops = {
		.contract = OUTBOX_STORE_CONTRACT,
		.name = "scripted",
		.operate = { .stats = no_stats, .find_key = find_one, .list = list_pages }
	};
	struct scripted_store store = { .base = { .ops = &ops } };
	int told = 0;
	struct redact_key work = { .store = &store.base,
				   .key = "ada",
				   .dry_run = true,
				   .unfinished = count,
				   .context = &told };

	(void)state;
	assert_ok(redact_key(&work, NULL, err));
	assert_int_equal(told, PAGES);
	assert_int_equal(work.left, 1);
	assert_int_equal(work.done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_that_is_in_the_way_is_told) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
