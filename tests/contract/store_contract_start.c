/* SPDX-License-Identifier: Apache-2.0 */

/* A new target that starts at a time: this is also how a part of the log is sent once more. */

#include "store/store.h"
#include "store_world.h"

static struct outbox_target_def at(const char *name, outbox_time time)
{
	struct outbox_target_def def = target_def(name);

	def.start = OUTBOX_START_TIME;
	def.start_time = time;
	return def;
}

/* Written at this time. */
static int64_t publish_at(struct store_world *w, outbox_time time)
{
	outbox_time now = world_now(w);
	int64_t seq;

	if (w->fixture->publish_at)
		return w->fixture->publish_at(w->place, time);
	world_step(w, time - now);
	seq = world_publish(w, NULL);
	world_step(w, now - time);
	return seq;
}

static void a_target_starts_at_a_time(struct store_world *w)
{
	outbox_time now = world_now(w);
	int64_t first = publish_at(w, now - 3 * SEC), second = publish_at(w, now - 2 * SEC),
		third = publish_at(w, now - SEC), fourth;
	struct outbox_target_def def = at("b", now - 2 * SEC);
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 3, first, second, third);
	world_target_put(w, &def);
	assert_null(world_find(w, "b", first));
	assert_state(w, "b", second, OUTBOX_PENDING, OUTBOX_NEW);
	assert_int_equal(world_stats(w, "b")->pending, 2);
	fourth = world_publish(w, NULL);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 3, second, third, fourth);
	assert_null(world_find(w, "b", first));
	assert_state(w, "b", second, OUTBOX_DELIVERED, 0);
}

static void a_time_between_is_the_next_message(struct store_world *w)
{
	outbox_time now = world_now(w);
	struct outbox_target_def def = at("b", now - 2 * SEC + 1);
	int64_t third;
	struct worker *k;

	publish_at(w, now - 3 * SEC);
	publish_at(w, now - 2 * SEC);
	third = publish_at(w, now - SEC);
	world_target_put(w, &def);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, third);
}

static void older_than_everything_is_the_oldest(struct store_world *w)
{
	outbox_time now = world_now(w);
	struct outbox_target_def def = at("b", now - 100 * SEC);
	int64_t first = publish_at(w, now - 3 * SEC), second = publish_at(w, now - 2 * SEC);
	struct worker *k;

	world_target_put(w, &def);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 2, first, second);
}

static void younger_than_everything_is_now(struct store_world *w)
{
	outbox_time now = world_now(w);
	struct outbox_target_def def = at("b", now - SEC);
	struct worker *k;
	int64_t seq;

	publish_at(w, now - 3 * SEC);
	world_target_put(w, &def);
	seq = world_publish(w, NULL);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, seq);
}

static void what_lies_ahead_is_refused(struct store_world *w)
{
	struct outbox_target_def def = at("b", world_now(w) + SEC);
	int64_t version = -1;

	assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ECONFIG);
	assert_non_null(strstr(w->err.message, "is in the future"));
	assert_int_equal(version, -1);
	def.start = OUTBOX_START_OLDEST;
	version = world_target_put(w, &def);
	def.start = OUTBOX_START_TIME; /* only looked at when it is new */
	assert_int_equal(world_target_put(w, &def), version);
}

/* What the target never gets does not hold retention back, and what it gets does. */
static void retention_waits_for_what_it_gets(struct store_world *w)
{
	outbox_time now = world_now(w);
	struct outbox_target_def def = at("b", now - 2 * SEC);
	struct outbox_purge purge = { 0 };
	int64_t second;

	publish_at(w, now - 3 * SEC);
	second = publish_at(w, now - 2 * SEC);
	world_target_put(w, &def);
	world_step(w, OUTBOX_DAYS);
	purge.delivered_before = world_now(w);
	assert_int_equal(world_purge(w, &purge).messages, 1);
	assert_int_equal(world_messages(w), 1);
	assert_state(w, "b", second, OUTBOX_PENDING, OUTBOX_NEW);
}

/* In whatever order the times are: from the first one on. */
static void times_out_of_order(struct store_world *w)
{
	outbox_time now = world_now(w);
	struct outbox_target_def def = at("b", now - 2 * SEC);
	int64_t second, third, fourth;
	struct worker *k;

	publish_at(w, now - 3 * SEC);
	second = publish_at(w, now - SEC);
	third = publish_at(w, now - 9 * SEC);
	fourth = publish_at(w, now - 2 * SEC);
	world_target_put(w, &def);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 3, second, third, fourth);
}

/* Written in time by a transaction that is still open: it is for the target, once it is committed. */
static void a_late_commit_is_for_it(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_target_def def = at("b", world_now(w) - 60 * SEC);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t low = 0, high;
	struct worker *k;
	void *late;

	publish_at(w, world_now(w) - 90 * SEC);
	late = f->begin(w->place);
	m.type = "t";
	OK(f->publish(late, &m, &low, &w->err));
	high = world_publish(w, NULL);
	assert_true(low < high);
	world_target_put(w, &def);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, high);
	f->commit(late);
	assert_drains(k, 1, low);
}

/* What nobody can see yet does not say where it starts. */
static void a_rollback_moves_nothing(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_target_def def = at("b", world_now(w) - 60 * SEC);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq = 0;
	struct worker *k;
	void *late = f->begin(w->place);

	m.type = "t";
	OK(f->publish(late, &m, &seq, &w->err));
	publish_at(w, world_now(w) - 90 * SEC);
	seq = world_publish(w, NULL);
	world_target_put(w, &def);
	f->rollback(late);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, seq);
}

#define CASE(name)                \
	{                         \
#name, name, 1, 0 \
	}
static bool wants_start(struct store_world *w, const char *target)
{
	bool wants = false;

	OK(store_wants_start(w->store, target, &wants, &w->err));
	return wants;
}

static void a_new_target_among_delivered_messages_wants_a_start(struct store_world *w)
{
	struct outbox_target_def def = target_def("late");
	struct worker *k;

	def.start = OUTBOX_START_UNSET;
	assert_false(wants_start(w, "events"));
	world_target(w, "events");
	world_publish(w, "k");
	assert_false(wants_start(w, "late")); /* nothing was delivered */
	k = worker_start(w, "k", "events", 0);
	worker_advance(k, 1);
	assert_false(wants_start(w, "late"));
	worker_advance(k, 0);
	assert_true(wants_start(w, "late"));
	assert_false(wants_start(w, "events")); /* it is there */
	assert_int_equal(store_target_put(w->store, &def, NULL, &w->err), OUTBOX_ECONFIG);
	OK(store_target_drop(w->store, "events", "me", "test", &w->err));
	assert_true(wants_start(w, "events"));
	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	assert_false(wants_start(w, "late"));
}

static void note_unserved(struct store_world *w, const char *target)
{
	OK(store_unserved(w->store,
			  &(struct outbox_unserved){
				  .target = target, .owner = "z", .duration = LEASE, .why = "waits" },
			  &w->err));
}

static void nothing_goes_while_a_target_waits_for_its_start(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_purged purged = { 0 };
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 2);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, s, s + 1);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) };
	note_unserved(w, "new");
	assert_int_equal(world_purge(w, &purge).messages, 0);
	purge.actor = "me";
	assert_int_equal(store_purge(w->store, &purge, &purged, &w->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "target \"new\""));
	world_step(w, LEASE);  /* nobody repeats it */
	note_unserved(w, "a"); /* registered: what it wants is known */
	assert_int_equal(world_purge(w, &purge).messages, 2);
}

const struct store_case start_cases[] = {
	CASE(a_target_starts_at_a_time),
	CASE(a_time_between_is_the_next_message),
	CASE(older_than_everything_is_the_oldest),
	CASE(younger_than_everything_is_now),
	CASE(what_lies_ahead_is_refused),
	CASE(retention_waits_for_what_it_gets),
	CASE(times_out_of_order),
	{ "a_late_commit_is_for_it", a_late_commit_is_for_it, 1, STORE_LATE_COMMITS },
	{ "a_rollback_moves_nothing", a_rollback_moves_nothing, 1, STORE_LATE_COMMITS },
	CASE(a_new_target_among_delivered_messages_wants_a_start),
	CASE(nothing_goes_while_a_target_waits_for_its_start),
	{ NULL, NULL, 0, 0 },
};
