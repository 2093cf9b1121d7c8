/* SPDX-License-Identifier: Apache-2.0 */

/* Keys that wait for the first of their deliveries that is not finished. */

#include "store/store.h"
#include "store_world.h"

static struct outbox_keys_page read_keys(struct store_world *w, const char *target,
					 const char *cursor, size_t limit)
{
	struct outbox_keys_filter filter = {
		.struct_size = sizeof(filter), .target = target, .cursor = cursor, .limit = limit
	};
	struct outbox_keys_page page = { 0 };

	OK(store_keys(w->store, &filter, w->arena, &page, &w->err));
	return page;
}

static void a_waiting_one_holds_its_key(struct store_world *w)
{
	const struct outbox_blocked_key *row;
	struct outbox_keys_page page;
	outbox_time since;
	struct worker *k;
	int64_t first, drained[8];

	world_target(w, "a");
	first = world_publish_run(w, "k", 4);
	world_publish(w, "other");
	world_publish(w, NULL);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(read_keys(w, NULL, NULL, 0).count, 0);
	worker_advance(k, 1);
	settle_wait(k, 0, 30 * SEC);
	k->settled[0].error = "not today";
	since = world_now(w);
	worker_advance(k, MANY);
	settle_blocked(k);
	world_step(w, SEC);
	worker_advance(k, 0);

	page = read_keys(w, "a", NULL, 0);
	assert_int_equal(page.count, 1);
	assert_null(page.cursor);
	row = &page.rows[0];
	assert_string_equal(row->front.key, "k");
	assert_string_equal(row->front.target, "a");
	assert_string_equal(row->front.type, "t");
	assert_int_equal(row->front.seq, first);
	assert_int_equal(row->front.state, OUTBOX_PENDING);
	assert_int_equal(row->front.why, OUTBOX_WAITING);
	assert_int_equal(row->front.attempts, 1);
	assert_string_equal(row->front.error, "not today");
	assert_int_equal(row->front.next_attempt_at, since + 30 * SEC);
	assert_int_equal(row->since, since);
	assert_int_equal(row->parked, 3);

	world_step(w, 30 * SEC);
	worker_restart(k);
	worker_advance(k, 1);
	page = read_keys(w, NULL, NULL, 0);
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].front.state, OUTBOX_SENDING);
	worker_advance(k, 0);
	worker_drain(k, drained, 8);
	assert_int_equal(read_keys(w, NULL, NULL, 0).count, 0);
}

/* Only its first one, with how many are parked behind it: of this key, at this target. */
static void only_the_first_is_named(struct store_world *w)
{
	struct outbox_keys_page page;
	outbox_time since;
	int64_t first, other;
	struct worker *k;

	world_target(w, "a");
	world_target(w, "b");
	first = world_publish_run(w, key_in_lane(w, 0, 0), 5);
	other = world_publish_run(w, key_in_lane(w, 0, 1), 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2); /* sent together, and both are to wait */
	settle_wait(k, 0, 10 * SEC);
	settle_wait(k, 1, 20 * SEC);
	since = world_now(w);
	worker_advance(k, MANY);
	settle_blocked(k);
	assert_int_equal(k->claim.items[k->claim.count - 2].seq, other);
	settle_wait(k, k->claim.count - 2, 60 * SEC);
	settle_park(k, k->claim.count - 1);
	worker_advance(k, 0);
	k = worker_start(w, "k", "b", 0);
	worker_advance(k, 1);
	settle_wait(k, 0, 60 * SEC);
	worker_advance(k, MANY);
	settle_blocked(k);
	settle_wait(k, k->claim.count - 2, 60 * SEC);
	settle_park(k, k->claim.count - 1);
	worker_advance(k, 0);

	page = read_keys(w, "a", NULL, 0);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.rows[0].front.seq, first);
	assert_int_equal(page.rows[0].parked, 3);
	assert_int_equal(page.rows[1].front.seq, other);
	assert_int_equal(page.rows[1].parked, 1);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", first + 3).done, 1);
	assert_int_equal(read_keys(w, "a", NULL, 0).rows[0].parked, 2);
	assert_int_equal(read_keys(w, "b", NULL, 0).rows[0].parked, 4);

	/* it is tried once more: named while it is on its way, and waiting for as long as ever */
	world_step(w, 11 * SEC);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 1, first);
	page = read_keys(w, "a", NULL, 0);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.rows[0].front.seq, first);
	assert_int_equal(page.rows[0].front.state, OUTBOX_SENDING);
	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, 0);
	page = read_keys(w, "a", NULL, 0);
	assert_int_equal(page.rows[0].front.attempts, 2);
	assert_int_equal(page.rows[0].since, since);
}

static void failed_ones_only_with_hold(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	struct outbox_keys_page page;
	struct worker *k;
	int64_t first;

	world_target(w, "a");
	first = world_publish_run(w, "k", 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_int_equal(read_keys(w, NULL, NULL, 0).count, 0);
	def.hold = true;
	world_target_put(w, &def);
	worker_advance(k, MANY);
	settle_blocked(k);
	worker_advance(k, 0);
	page = read_keys(w, NULL, NULL, 0);
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].front.seq, first);
	assert_int_equal(page.rows[0].front.state, OUTBOX_FAILED);
	assert_int_equal(page.rows[0].parked, 2);
}

static void deferred_and_unordered_ones_hold_nobody(struct store_world *w)
{
	struct outbox_target_def def = target_def("b");
	struct worker *k;

	def.unordered = true;
	world_target(w, "a");
	world_target_put(w, &def);
	world_publish_run(w, "k", 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_defer(k, 0, world_now(w) + 60 * SEC);
	worker_advance(k, 0);
	k = worker_start(w, "l", "b", 0);
	worker_advance(k, 1);
	settle_wait(k, 0, 60 * SEC);
	worker_advance(k, 0);
	assert_int_equal(read_keys(w, NULL, NULL, 0).count, 0);
}

static void pages_have_each_once(struct store_world *w)
{
	static const char *const names[] = { "a", "b" };
	const char *cursor = NULL;
	struct outbox_keys_page page;
	int64_t last_seq = 0;
	size_t seen = 0;

	world_target(w, "a");
	world_target(w, "b");
	for (int i = 0; i < 5; i++)
		world_publish(w, key_in_lane(w, 0, i));
	for (size_t i = 0; i < 2; i++) {
		struct worker *k = worker_start(w, "k", names[i], 0);

		assert_int_equal(worker_advance(k, MANY), 5);
		for (size_t j = 0; j < 5; j++)
			settle_wait(k, j, 60 * SEC);
		worker_advance(k, 0);
	}
	do {
		page = read_keys(w, NULL, cursor, 3);
		for (size_t i = 0; i < page.count; i++) {
			assert_true(page.rows[i].front.seq >= last_seq);
			assert_string_equal(page.rows[i].front.target, names[(seen + i) % 2]);
			last_seq = page.rows[i].front.seq;
		}
		seen += page.count;
		cursor = page.cursor;
	} while (cursor);
	assert_int_equal(seen, 10);
	assert_int_equal(read_keys(w, "b", NULL, 0).count, 5);
	assert_int_equal(read_keys(w, "nobody", NULL, 0).count, 0);
}

#define CASE(name)                \
	{                         \
#name, name, 1, 0 \
	}
const struct store_case keys_cases[] = {
	CASE(a_waiting_one_holds_its_key), CASE(only_the_first_is_named),
	CASE(failed_ones_only_with_hold),  CASE(deferred_and_unordered_ones_hold_nobody),
	CASE(pages_have_each_once),        { NULL, NULL, 0, 0 },
};
