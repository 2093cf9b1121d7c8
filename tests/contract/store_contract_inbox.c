/* SPDX-License-Identifier: Apache-2.0 */

/* The inbox: beside an outbox or alone, each id once for each consumer, and what people ask of it. */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>

static bool make_inbox(struct store_world *w)
{
	bool made = false;

	OK(store_inbox_init(w->store, &made, &w->err));
	return made;
}

static struct outbox_inbox_stats stats_of(struct store_world *w)
{
	struct outbox_inbox_stats stats;

	OK(store_inbox_stats(w->store, &stats, &w->err));
	return stats;
}

static bool accept(struct store_world *w, void *tx, const char *consumer, const char *id)
{
	bool first = false;

	OK(w->fixture->accept(tx, consumer, id, &first, &w->err));
	return first;
}

/* Of the consumer, received at the n-th second before now: "id-N". */
static void receive(struct store_world *w, const char *consumer, int n)
{
	char id[16];

	snprintf(id, sizeof(id), "id-%d", n);
	w->fixture->received(w->place, consumer, id, world_now(w) - n * SEC);
}

static int64_t count(struct store_world *w, const char *consumer, int older)
{
	const struct outbox_inbox_filter filter = { .struct_size = sizeof(filter),
						    .consumer = consumer,
						    .before = older ? world_now(w) - older * SEC
								    : 0 };
	int64_t ids = -1;

	OK(store_inbox_count(w->store, &filter, &ids, &w->err));
	return ids;
}

static int64_t prune(struct store_world *w, const char *consumer, int older, size_t limit)
{
	const struct outbox_inbox_filter filter = { .struct_size = sizeof(filter),
						    .consumer = consumer,
						    .before = world_now(w) - older * SEC,
						    .limit = limit };
	int64_t ids = -1;

	OK(store_inbox_prune(w->store, &filter, &ids, &w->err));
	return ids;
}

/* All pages of this size, as "billing/id-3 mail/id-2 ". */
static const char *list(struct store_world *w, const char *consumer, int older, size_t limit)
{
	static char text[2000];
	struct outbox_inbox_filter filter = { .struct_size = sizeof(filter),
					      .consumer = consumer,
					      .before = older ? world_now(w) - older * SEC : 0,
					      .limit = limit };
	struct outbox_inbox_page page;
	size_t at = 0;

	text[0] = '\0';
	do {
		OK(store_inbox_list(w->store, &filter, w->arena, &page, &w->err));
		assert_true(page.count <= limit);
		for (size_t i = 0; i < page.count; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%s ",
					       page.rows[i].consumer, page.rows[i].id);
		filter.cursor = page.cursor;
	} while (page.cursor);
	return text;
}

static void it_needs_no_outbox(struct store_world *w)
{
	struct outbox_store_info info;
	void *tx;

	assert_false(stats_of(w).there);
	assert_true(make_inbox(w));
	assert_false(make_inbox(w));
	assert_true(stats_of(w).there);
	OK(store_info(w->store, &info, &w->err));
	assert_int_equal(info.schema_version, 0);
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, "billing", "1"));
	w->fixture->commit(tx);
	/* and does not mind one that comes later */
	OK(store_init(w->store, NULL, &w->err));
	assert_int_equal(count(w, NULL, 0), 1);
}

static void the_outbox_leaves_it_alone(struct store_world *w)
{
	struct outbox_stats stats;
	int from;

	make_inbox(w);
	receive(w, "billing", 5);
	OK(store_upgrade(w->store, NULL, &from, &w->err));
	OK(store_truncate(w->store, &w->err));
	assert_int_equal(count(w, NULL, 0), 1);
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	assert_int_equal(stats.inbox.rows, 1);
	OK(store_drop(w->store, &w->err));
	assert_int_equal(count(w, NULL, 0), 1);
	OK(store_inbox_drop(w->store, &w->err));
	assert_false(stats_of(w).there);
	OK(store_inbox_drop(w->store, &w->err));
}

static void without_one_it_says_so(struct store_world *w)
{
	const struct outbox_inbox_filter all = { .struct_size = sizeof(all), .before = 1 };
	struct outbox_inbox_page page;
	void *tx = w->fixture->begin(w->place);
	bool first = true;
	int64_t ids;

	assert_int_equal(w->fixture->accept(tx, "billing", "1", &first, &w->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(w->err.message, "run: outbox init --inbox"));
	w->fixture->rollback(tx);
	assert_int_equal(store_inbox_list(w->store, &all, w->arena, &page, &w->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(w->err.message, "run: outbox init --inbox"));
	assert_int_equal(store_inbox_count(w->store, &all, &ids, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(store_inbox_prune(w->store, &all, &ids, &w->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(w->err.message, "run: outbox init --inbox"));
}

static void an_id_is_new_once(struct store_world *w)
{
	void *tx;

	make_inbox(w);
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, "billing", "1"));
	assert_false(accept(w, tx, "billing", "1"));
	assert_true(accept(w, tx, "mail", "1"));
	assert_true(accept(w, tx, "billing", "2"));
	w->fixture->commit(tx);
	tx = w->fixture->begin(w->place);
	assert_false(accept(w, tx, "billing", "1"));
	assert_false(accept(w, tx, "mail", "1"));
	w->fixture->commit(tx);
	assert_int_equal(count(w, "billing", 0), 2);
	assert_int_equal(stats_of(w).rows, 3);
}

static void a_rollback_takes_it_back(struct store_world *w)
{
	void *tx;

	make_inbox(w);
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, "billing", "1"));
	w->fixture->rollback(tx);
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, "billing", "1"));
	w->fixture->savepoint(tx);
	assert_true(accept(w, tx, "billing", "2"));
	w->fixture->rollback_to(tx);
	assert_true(accept(w, tx, "billing", "2"));
	w->fixture->commit(tx);
	assert_int_equal(count(w, NULL, 0), 2);
}

static void the_limits_are_those_of_ids(struct store_world *w)
{
	char longest[256 * 2 + 1] = "";
	bool first = false;
	void *tx;

	for (int i = 0; i < 256; i++)
		strcat(longest, "\xc3\xa9");
	make_inbox(w);
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, longest + 2, longest + 2));
	assert_false(accept(w, tx, longest + 2, longest + 2));
	assert_int_equal(w->fixture->accept(tx, longest, "1", &first, &w->err), OUTBOX_EINVAL);
	assert_int_equal(w->fixture->accept(tx, "billing", longest, &first, &w->err), OUTBOX_EINVAL);
	assert_int_equal(w->fixture->accept(tx, "billing", "", &first, &w->err), OUTBOX_EINVAL);
	assert_string_equal(w->err.message, "id: is empty; give it a value or leave it unset");
	w->fixture->commit(tx);
}

static void lists_go_from_the_oldest_on(struct store_world *w)
{
	const struct outbox_inbox_filter odd = { .struct_size = sizeof(odd), .cursor = "7:mail" };
	struct outbox_inbox_page page;

	make_inbox(w);
	for (int i = 1; i <= 4; i++) {
		receive(w, "mail", i);
		receive(w, "billing", i);
	}
	w->fixture->received(w->place, "billing", "1:2:3 4", world_now(w) - 2 * SEC);
	for (size_t limit = 1; limit < 12; limit++) {
		assert_string_equal(list(w, NULL, 0, limit),
				    "billing/id-4 mail/id-4 billing/id-3 mail/id-3 billing/1:2:3 4 "
				    "billing/id-2 mail/id-2 billing/id-1 mail/id-1 ");
		assert_string_equal(list(w, "mail", 0, limit),
				    "mail/id-4 mail/id-3 mail/id-2 mail/id-1 ");
		assert_string_equal(list(w, NULL, 2, limit),
				    "billing/id-4 mail/id-4 billing/id-3 mail/id-3 ");
	}
	assert_string_equal(list(w, "nobody", 0, 3), "");
	assert_int_equal(store_inbox_list(w->store, &odd, w->arena, &page, &w->err), OUTBOX_EINVAL);
	assert_int_equal(count(w, NULL, 2), 4);
	assert_int_equal(count(w, "billing", 1), 4);
	assert_int_equal(stats_of(w).oldest, world_now(w) - 4 * SEC);
}

static void pruning_removes_the_oldest_alone(struct store_world *w)
{
	make_inbox(w);
	for (int i = 1; i <= 5; i++) {
		receive(w, "mail", i);
		receive(w, "billing", i);
	}
	assert_int_equal(prune(w, NULL, 5, 100), 0);
	assert_int_equal(prune(w, "mail", 3, 1), 1);
	assert_string_equal(list(w, "mail", 0, 100), "mail/id-4 mail/id-3 mail/id-2 mail/id-1 ");
	assert_int_equal(prune(w, "mail", 3, 100), 1);
	assert_int_equal(prune(w, NULL, 1, 2), 2);
	assert_string_equal(list(w, NULL, 0, 100),
			    "billing/id-3 mail/id-3 billing/id-2 mail/id-2 billing/id-1 mail/id-1 ");
	assert_int_equal(prune(w, NULL, 1, 100), 4);
	assert_int_equal(prune(w, NULL, 1, 100), 0);
	assert_string_equal(list(w, NULL, 0, 100), "billing/id-1 mail/id-1 ");
}

/* It waits for nobody who accepts other ids, and takes none that is not committed. */
static void pruning_goes_on_beside_accepting(struct store_world *w)
{
	void *tx;

	make_inbox(w);
	for (int i = 1; i <= 4; i++)
		receive(w, "billing", i);
	tx = w->fixture->begin(w->place);
	assert_false(accept(w, tx, "billing", "id-1"));
	assert_true(accept(w, tx, "billing", "new"));
	assert_int_equal(prune(w, NULL, 2, 100), 2);
	w->fixture->commit(tx);
	assert_int_equal(count(w, NULL, 0), 3);
	/* what was removed is new again */
	tx = w->fixture->begin(w->place);
	assert_true(accept(w, tx, "billing", "id-4"));
	assert_false(accept(w, tx, "billing", "id-2"));
	w->fixture->commit(tx);
}

static void an_age_is_required(struct store_world *w)
{
	const struct outbox_inbox_filter all = { .struct_size = sizeof(all) };
	int64_t ids;

	make_inbox(w);
	assert_int_equal(store_inbox_prune(w->store, &all, &ids, &w->err), OUTBOX_EINVAL);
}

const struct store_case inbox_cases[] = {
	{ "inbox_needs_no_outbox", it_needs_no_outbox, -1, STORE_INBOX },
	{ "inbox_the_outbox_leaves_it_alone", the_outbox_leaves_it_alone, 0, STORE_INBOX },
	{ "inbox_without_one_it_says_so", without_one_it_says_so, 0, STORE_INBOX },
	{ "inbox_an_id_is_new_once", an_id_is_new_once, -1, STORE_INBOX },
	{ "inbox_a_rollback_takes_it_back", a_rollback_takes_it_back, -1, STORE_INBOX },
	{ "inbox_the_limits_are_those_of_ids", the_limits_are_those_of_ids, -1, STORE_INBOX },
	{ "inbox_lists_go_from_the_oldest_on", lists_go_from_the_oldest_on, -1, STORE_INBOX },
	{ "inbox_pruning_removes_the_oldest_alone", pruning_removes_the_oldest_alone, -1,
	  STORE_INBOX },
	{ "inbox_pruning_goes_on_beside_accepting", pruning_goes_on_beside_accepting, -1,
	  STORE_INBOX | STORE_LATE_COMMITS },
	{ "inbox_an_age_is_required", an_age_is_required, -1, STORE_INBOX },
	{ NULL, NULL, 0, 0 },
};
