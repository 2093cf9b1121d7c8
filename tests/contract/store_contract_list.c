/* SPDX-License-Identifier: Apache-2.0 */

/* list, get and tail. */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>

static size_t count_of(struct store_world *w, const struct outbox_filter *filter)
{
	return world_list(w, filter).count;
}

/* One delivery of each state to "a", keys k0, k1 ...; "b" has them all new. */
static int64_t one_of_each(struct store_world *w)
{
	static const char *const keys[] = { "k0", "k1", "k2", "k3", "k3", "k5", "k6" };
	struct worker *k;
	int64_t first = 0;

	world_target(w, "a");
	world_target(w, "b");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		int64_t seq = world_publish(w, keys[i]);

		first = first ? first : seq;
	}
	world_step(w, SEC);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 6);
	settle_fail(k, 1);
	settle_defer(k, 2, world_now(w) + OUTBOX_HOURS);
	settle_wait(k, 3, OUTBOX_HOURS);
	settle_park(k, 4);
	worker_advance(k, 0);
	world_act(w, OUTBOX_DISCARD, "a", first + 5); /* delivered: refused */
	world_publish_type(w, "last.one");
	return first; /* delivered, failed, deferred, retry, parked, delivered, new, new */
}

static void filters_by_state(struct store_world *w)
{
	static const struct {
		int state, why;
		size_t count;
	} expected[] = {
		{ OUTBOX_DELIVERED, 0, 2 },
		{ OUTBOX_FAILED, 0, 1 },
		{ OUTBOX_PENDING, 0, 5 },
		{ OUTBOX_PENDING, OUTBOX_NEW, 2 },
		{ OUTBOX_PENDING, OUTBOX_WAITING, 1 },
		{ OUTBOX_PENDING, OUTBOX_DEFERRED, 1 },
		{ OUTBOX_PENDING, OUTBOX_PARKED, 1 },
		{ 0, OUTBOX_PARKED, 1 },
		{ OUTBOX_SENDING, 0, 0 },
		{ OUTBOX_DISCARDED, 0, 0 },
		{ 0, 0, 8 },
	};

	one_of_each(w);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct outbox_filter filter = filter_of("a");
		struct outbox_page page;

		filter.state = expected[i].state;
		filter.why = expected[i].why;
		page = world_list(w, &filter);
		assert_int_equal(page.count, expected[i].count);
		assert_null(page.cursor);
		for (size_t j = 0; j < page.count; j++) {
			assert_true(!filter.state || page.rows[j].state == filter.state);
			assert_true(!filter.why || page.rows[j].why == filter.why);
			assert_string_equal(page.rows[j].target, "a");
		}
	}
}

static void filters_by_the_rest(struct store_world *w)
{
	int64_t first = one_of_each(w);
	const char *ids[] = { world_id(w, "a", first + 3), world_id(w, "a", first), "nobody's",
			      world_id(w, "a", first) };
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_page page;

	assert_int_equal(count_of(w, &filter), 16);
	filter.key = "k3";
	assert_int_equal(count_of(w, &filter), 4);
	filter.target = "a";
	assert_int_equal(count_of(w, &filter), 2);
	filter.key = "k";
	assert_int_equal(count_of(w, &filter), 0); /* exact */

	filter = filter_of("a");
	filter.type = "last.*";
	assert_int_equal(count_of(w, &filter), 1);
	filter.type = "?";
	assert_int_equal(count_of(w, &filter), 7);
	filter.type = "T";
	assert_int_equal(count_of(w, &filter), 0); /* case counts */

	filter = filter_of("a");
	filter.ids = ids;
	filter.n_ids = ARRAY_SIZE(ids);
	page = world_list(w, &filter);
	assert_int_equal(page.count, 2); /* each once, in seq order, unknown ones left out */
	assert_int_equal(page.rows[0].seq, first);
	assert_int_equal(page.rows[1].seq, first + 3);

	filter = filter_of("nobody");
	assert_int_equal(count_of(w, &filter), 0);
}

static void filters_by_time_of_change(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	int64_t first = one_of_each(w);
	outbox_time at = world_row(w, "a", first + 1)->last_status_at;

	filter.state = OUTBOX_FAILED;
	filter.changed_before = at;
	assert_int_equal(count_of(w, &filter), 1);
	filter.changed_before = at - 1;
	assert_int_equal(count_of(w, &filter), 0);
	filter.state = OUTBOX_DELIVERED;
	filter.changed_before = at;
	assert_int_equal(count_of(w, &filter), 2);
	filter.changed_before = at - 1;
	assert_int_equal(count_of(w, &filter), 0);
}

static void paging_is_stable_while_rows_are_added(struct store_world *w)
{
	struct outbox_filter filter = filter_of(NULL);
	int64_t last_seq = 0, first;
	char last_target[64] = "";
	size_t seen = 0;
	struct outbox_page page;

	world_target(w, "b");
	world_target(w, "a");
	world_target(w, "c");
	first = world_publish_many(w, 10);
	filter.limit = 4;
	do {
		page = world_list(w, &filter);
		assert_true(page.count <= 4);
		for (size_t i = 0; i < page.count; i++) {
			const struct outbox_delivery *d = &page.rows[i];

			assert_true(d->seq > last_seq ||
				    (d->seq == last_seq && strcmp(d->target, last_target) > 0));
			last_seq = d->seq;
			snprintf(last_target, sizeof(last_target), "%s", d->target);
			seen += d->seq < first + 10;
		}
		if (seen < 20)
			world_publish(w, "x");
		filter.cursor = page.cursor;
	} while (page.cursor);
	assert_int_equal(seen, 30);
}

static void pages_have_limits(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");

	world_target(w, "a");
	world_publish_many(w, 1005);
	filter.limit = 0;
	assert_int_equal(count_of(w, &filter), 100);
	filter.limit = 5000;
	assert_int_equal(count_of(w, &filter), 1000);
	filter.limit = 1000;
	filter.cursor = world_list(w, &filter).cursor;
	assert_non_null(filter.cursor);
	assert_int_equal(count_of(w, &filter), 5);
	assert_null(world_list(w, &filter).cursor);
}

static void a_made_up_cursor_is_refused(struct store_world *w)
{
	static const char *const wrong[] = {
		"", "x", "12", ":", "a:b", "-1:a", "99999999999999999999:a"
	};
	struct outbox_filter filter = filter_of("a");
	struct outbox_page page;

	world_target(w, "a");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		filter.cursor = wrong[i];
		assert_int_equal(store_list(w->store, &filter, w->arena, &page, &w->err),
				 OUTBOX_EINVAL);
		assert_non_null(strstr(w->err.message, "cursor"));
	}
}

static void get_finds_one_message(struct store_world *w)
{
	struct outbox_claimed got;

	assert_int_equal(store_get(w->store, "nobody's", w->arena, &got, &w->err), OUTBOX_ENOTFOUND);
	assert_non_null(strstr(w->err.message, "nobody's"));
}

/* ---- tail ---------------------------------------------------------------------------------- */

static struct outbox_page tail(struct store_world *w, const char *cursor, size_t limit)
{
	struct outbox_page page = { 0 };

	OK(store_tail(w->store, cursor, limit, w->arena, &page, &w->err));
	assert_non_null(page.cursor);
	return page;
}

static void tail_starts_now(struct store_world *w)
{
	struct worker *k;
	const char *cursor;
	struct outbox_page page;
	int64_t seq;

	world_target(w, "a");
	world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_drain(k, (int64_t[3]){ 0 }, 3);
	page = tail(w, NULL, 10);
	assert_int_equal(page.count, 0);
	cursor = page.cursor;
	assert_int_equal(tail(w, cursor, 10).count, 0);
	seq = world_publish(w, "x");
	assert_int_equal(tail(w, cursor, 10).count, 0); /* not settled yet */
	worker_advance(k, MANY);
	assert_int_equal(tail(w, cursor, 10).count, 0);
	settle_return(k, 0);
	worker_advance(k, MANY);
	assert_int_equal(tail(w, cursor, 10).count, 0); /* returned is not settled */
	world_step(w, SEC);
	worker_advance(k, MANY);
	page = tail(w, cursor, 10);
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].seq, seq);
	assert_int_equal(page.rows[0].state, OUTBOX_DELIVERED);
	assert_int_equal(page.rows[0].last_status_at, world_now(w));
	assert_string_equal(page.rows[0].target, "a");
	assert_string_equal(page.rows[0].owner, "k");
	assert_string_equal(page.rows[0].key, "x");
}

static void tail_sees_every_delivery_once(struct store_world *w)
{
	const char *cursor = NULL;
	struct worker *workers[2];
	size_t delivered = 0, rounds = 0;
	int seen[2][64] = { { 0 } };
	int64_t first;

	world_target(w, "a");
	world_target(w, "b");
	workers[0] = worker_start(w, "k", "a", 0);
	workers[1] = worker_start(w, "k", "b", 0);
	cursor = tail(w, NULL, 3).cursor;
	first = world_publish_many(w, 30);
	while (delivered < 60 && rounds++ < 200) {
		struct outbox_page page;

		world_step(w, SEC);
		worker_advance(workers[0], 7);
		worker_advance(workers[1], 5);
		if (rounds == 2 && workers[0]->claim.count > 2)
			settle_wait(workers[0], 1, SEC); /* one takes a detour */
		page = tail(w, cursor, 3);
		assert_true(page.count <= 3);
		for (size_t i = 0; i < page.count; i++) {
			if (page.rows[i].state != OUTBOX_DELIVERED)
				continue;
			delivered++;
			seen[page.rows[i].target[0] == 'b'][page.rows[i].seq - first]++;
		}
		cursor = page.cursor;
	}
	for (int i = 0; i < 30; i++) {
		assert_int_equal(seen[0][i], 1);
		assert_int_equal(seen[1][i], 1);
	}
	assert_int_equal(tail(w, cursor, 100).count, 0);
}

static size_t count_why(struct store_world *w, int why)
{
	struct outbox_filter filter = filter_of("a");

	filter.why = why;
	return count_of(w, &filter);
}

/* How many an act with this filter would change. */
static size_t act_why(struct store_world *w, int why)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = {
		.action = OUTBOX_DISCARD, .reason = "r", .filter = &filter, .dry_run = true
	};

	filter.why = why;
	return world_act_filter(w, &act).done;
}

static void what_is_due_later_is_deferred_before_anybody_reads_it(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_filter one = filter_of("a");
	const char *id;
	int64_t seq;

	world_target(w, "a");
	world_publish(w, "k");
	m.type = "reminder";
	m.data = "{}";
	m.size = 2;
	m.due_at = world_now(w) + OUTBOX_HOURS;
	seq = world_publish_message(w, &m);
	assert_int_equal(world_row(w, "a", seq)->why, OUTBOX_DEFERRED);
	assert_int_equal(count_why(w, OUTBOX_DEFERRED), 1);
	assert_int_equal(count_why(w, OUTBOX_NEW), 1);
	id = world_id(w, "a", seq);
	one.ids = &id;
	one.n_ids = 1;
	assert_int_equal(world_list(w, &one).rows[0].why, OUTBOX_DEFERRED);
	/* who acts selects what who looks sees */
	assert_int_equal(act_why(w, OUTBOX_DEFERRED), 1);
	assert_int_equal(act_why(w, OUTBOX_NEW), 1);
	assert_int_equal(act_why(w, OUTBOX_WAITING), 0);
	OK(store_target_pause(w->store, "a", true, "me", "r", &w->err));
	assert_int_equal(count_why(w, OUTBOX_DEFERRED), 1);
	assert_int_equal(act_why(w, OUTBOX_PAUSED), 1);
	assert_int_equal(count_why(w, OUTBOX_NEW), 0);
	world_step(w, OUTBOX_HOURS);
	assert_int_equal(count_why(w, OUTBOX_PAUSED), 2);
	assert_int_equal(act_why(w, OUTBOX_PAUSED), 2);
	assert_int_equal(count_why(w, OUTBOX_DEFERRED), 0);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case list_cases[] = {
	CASE(filters_by_state),
	CASE(filters_by_the_rest),
	CASE(filters_by_time_of_change),
	CASE(what_is_due_later_is_deferred_before_anybody_reads_it),
	CASE(paging_is_stable_while_rows_are_added),
	CASE(pages_have_limits),
	CASE(a_made_up_cursor_is_refused),
	CASE(get_finds_one_message),
	CASE(tail_starts_now),
	CASE(tail_sees_every_delivery_once),
	{ NULL, NULL, 0, 0 },
};
