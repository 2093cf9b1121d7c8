/* SPDX-License-Identifier: Apache-2.0 */

/* The numbers that people and monitors look at. */

#include "store/store.h"
#include "store_world.h"

static void numbers_of_each_state(struct store_world *w)
{
	const struct outbox_target_stats *stats;
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	world_target(w, "b");
	s = world_publish_many(w, 4);
	world_publish_run(w, "x", 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 7);
	settle_fail(k, 1);
	settle_defer(k, 2, world_now(w) + OUTBOX_HOURS);
	settle_wait(k, 4, OUTBOX_HOURS);
	settle_park(k, 5);
	settle_park(k, 6);
	worker_advance(k, 0);
	world_publish_many(w, 5);
	worker_advance(k, 2);
	world_act(w, OUTBOX_DISCARD, "a", s + 1);
	stats = world_stats(w, "a");
	assert_int_equal(stats->pending, 3);
	assert_int_equal(stats->sending, 2);
	assert_int_equal(stats->waiting, 1);
	assert_int_equal(stats->deferred, 1);
	assert_int_equal(stats->parked, 2);
	assert_int_equal(stats->failed, 0);
	assert_int_equal(stats->discarded, 1);
	assert_int_equal(stats->delivered_ever, 2);
	assert_int_equal(stats->delivered_minute, 2);
	assert_int_equal(stats->retries_minute, 1);
	assert_false(stats->paused);
	assert_int_equal(stats->n_lanes, 1);
	assert_string_equal(stats->lanes[0].owner, "k");
	assert_int_equal(stats->lanes[0].receipts, k->n);
	stats = world_stats(w, "b");
	assert_int_equal(stats->pending, 12);
	assert_int_equal(stats->delivered_ever, 0);
	assert_null(stats->lanes[0].owner);
	assert_int_equal(world_messages(w), 12);
}

static void a_sending_detour_counts_as_sending(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, 0);
	worker_advance(k, 0);
	assert_int_equal(world_stats(w, "a")->waiting, 1);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.count, 1);
	assert_int_equal(world_stats(w, "a")->sending, 1);
	assert_int_equal(world_stats(w, "a")->waiting, 0);
}

static void the_minute_slides(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 4; i++) {
		world_publish_many(w, 10);
		worker_drain(k, (int64_t[10]){ 0 }, 10);
		world_step(w, 25 * SEC);
	}
	/* settled 100, 75, 50 and 25 s ago */
	assert_int_equal(world_stats(w, "a")->delivered_minute, 20);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 40);
	world_step(w, OUTBOX_MINUTES);
	assert_int_equal(world_stats(w, "a")->delivered_minute, 0);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 40);
}

static void oldest_is_the_oldest_unfinished(struct store_world *w)
{
	outbox_time start = world_now(w);
	struct worker *k;

	world_target(w, "a");
	assert_int_equal(world_stats(w, "a")->oldest, 0);
	for (int i = 0; i < 5; i++) {
		world_publish(w, NULL);
		world_step(w, SEC);
	}
	assert_int_equal(world_stats(w, "a")->oldest, start);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 4);
	assert_int_equal(world_stats(w, "a")->oldest, start); /* sending is not finished */
	settle_fail(k, 1);
	settle_defer(k, 2, world_now(w) + OUTBOX_HOURS);
	settle_wait(k, 3, OUTBOX_HOURS);
	worker_advance(k, 0);
	assert_int_equal(world_stats(w, "a")->oldest, start + 3 * SEC); /* the one that waits */
	world_step(w, OUTBOX_HOURS);
	worker_drain(k, (int64_t[5]){ 0 }, 5);
	assert_int_equal(world_stats(w, "a")->oldest, 0);
}

static outbox_time oldest(struct store_world *w)
{
	return world_stats(w, "a")->oldest;
}

static void act(struct store_world *w, int action, outbox_time until)
{
	struct outbox_filter filter = { .target = "a" };
	struct outbox_act act = {
		.action = action, .filter = &filter, .actor = "op", .reason = "r", .until = until
	};
	struct outbox_acted acted = { 0 };

	OK(store_act(w->store, &act, &acted, &w->err));
	assert_int_equal(acted.done, 1);
}

/* Ages count from when a delivery could first be sent: a claim says it, and the oldest of the numbers. */
static void a_scheduled_one_ages_from_when_it_is_due(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	outbox_time due = world_now(w) + OUTBOX_HOURS;
	struct worker *k;

	world_target(w, "a");
	m.type = "t";
	m.data = "{}";
	m.size = 2;
	m.due_at = due;
	world_publish_message(w, &m);
	assert_int_equal(oldest(w), 0);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_int_equal(oldest(w), 0);
	settle_defer(k, 0, due);
	worker_advance(k, 0);
	assert_int_equal(oldest(w), 0);
	world_step(w, OUTBOX_HOURS);
	assert_int_equal(oldest(w), due);
	worker_advance(k, 1);
	assert_int_equal(k->claim.items[0].ready_at, due);
	world_step(w, SEC);
	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, 0);
	assert_int_equal(oldest(w), due); /* a retry changes nothing */
	world_step(w, 10 * SEC);
	worker_advance(k, 1);
	assert_int_equal(k->claim.items[0].ready_at, due);
}

/* Read only when it is due already, it was never deferred. */
static void one_that_was_due_ages_from_then(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	outbox_time due = world_now(w) + OUTBOX_HOURS;
	struct worker *k;

	world_target(w, "a");
	m.type = "t";
	m.data = "{}";
	m.size = 2;
	m.due_at = due;
	world_publish_message(w, &m);
	world_step(w, 2 * OUTBOX_HOURS);
	assert_int_equal(oldest(w), due);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_int_equal(oldest(w), due);
	settle_wait(k, 0, SEC);
	worker_advance(k, 0);
	assert_int_equal(oldest(w), due);
}

static void a_requeued_one_ages_from_then(struct store_world *w)
{
	outbox_time start = world_now(w), again;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	world_publish_many(w, 1);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	world_step(w, OUTBOX_HOURS);
	again = world_now(w);
	act(w, OUTBOX_REQUEUE, 0);
	assert_int_equal(oldest(w), again);
	world_step(w, SEC);
	worker_advance(k, 1);
	assert_int_equal(k->claim.items[0].ready_at, again);
	settle_wait(k, 0, SEC);
	worker_advance(k, 0);
	assert_int_equal(oldest(w), again);
	act(w, OUTBOX_DEFER, again + OUTBOX_HOURS);
	assert_int_equal(oldest(w), 0);
	world_step(w, OUTBOX_HOURS);
	assert_int_equal(oldest(w), again + OUTBOX_HOURS);
	/* and not from when the first was published */
	world_publish_many(w, 1);
	assert_int_equal(oldest(w), again + OUTBOX_HOURS);
	assert_true(oldest(w) > start);
}

static void nothing_ages_before_its_target_is_open(struct store_world *w)
{
	outbox_time opened;
	struct worker *k;

	world_publish_many(w, 1);
	world_step(w, OUTBOX_HOURS);
	opened = world_now(w);
	world_target(w, "a");
	assert_int_equal(oldest(w), opened);
	k = worker_new(w, "k", "a");
	worker_lease(k);
	assert_int_equal(k->lease.open_since, opened);
	OK(store_target_pause(w->store, "a", true, "op", "r", &w->err));
	world_step(w, OUTBOX_HOURS);
	assert_int_equal(oldest(w), opened); /* a pause that was forgotten is worth an alert */
	OK(store_target_pause(w->store, "a", false, "op", "r", &w->err));
	assert_int_equal(oldest(w), world_now(w));
	worker_lease(k);
	assert_int_equal(k->lease.open_since, world_now(w));
}

static void stats_know_the_time(struct store_world *w)
{
	struct outbox_stats stats = { 0 };

	world_step(w, 7 * SEC);
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	assert_int_equal(stats.store_now, world_now(w));
	assert_int_equal(stats.n_targets, 0);
	assert_int_equal(stats.messages, 0);
	world_publish_many(w, 3);
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	assert_int_equal(stats.messages, 3);
}

static void targets_come_by_name(struct store_world *w)
{
	struct outbox_stats stats = { 0 };

	world_target(w, "c");
	world_target(w, "a");
	world_target(w, "b");
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	assert_int_equal(stats.n_targets, 3);
	assert_string_equal(stats.targets[0].name, "a");
	assert_string_equal(stats.targets[1].name, "b");
	assert_string_equal(stats.targets[2].name, "c");
}

static void unrouted_messages_are_nobodys(struct store_world *w)
{
	static const char *const types[] = { "wanted*" };
	struct outbox_target_def def = target_def("a");

	def.route.types = types;
	def.route.n_types = 1;
	world_target_put(w, &def);
	world_publish_type(w, "other");
	world_publish_type(w, "wanted.1");
	assert_int_equal(world_stats(w, "a")->pending, 1);
	assert_int_equal(world_messages(w), 2);
}

const struct store_case stats_cases[] = {
	{ "numbers_of_each_state", numbers_of_each_state, 0, 0 },
	{ "a_sending_detour_counts_as_sending", a_sending_detour_counts_as_sending, 0, 0 },
	{ "the_minute_slides", the_minute_slides, 0, 0 },
	{ "oldest_is_the_oldest_unfinished", oldest_is_the_oldest_unfinished, 0, 0 },
	{ "a_scheduled_one_ages_from_when_it_is_due", a_scheduled_one_ages_from_when_it_is_due, 0, 0 },
	{ "one_that_was_due_ages_from_then", one_that_was_due_ages_from_then, 0, 0 },
	{ "a_requeued_one_ages_from_then", a_requeued_one_ages_from_then, 0, 0 },
	{ "nothing_ages_before_its_target_is_open", nothing_ages_before_its_target_is_open, 0, 0 },
	{ "stats_know_the_time", stats_know_the_time, 0, 0 },
	{ "targets_come_by_name", targets_come_by_name, 0, 0 },
	{ "unrouted_messages_are_nobodys", unrouted_messages_are_nobodys, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
