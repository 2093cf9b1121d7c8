/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stores whose transactions overlap: a lower seq may become visible after a higher one was settled,
 * and must still be delivered.
 */

#include "store_world.h"

static int64_t tx_publish(struct store_world *w, void *tx, const char *key)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq = 0;

	m.type = "t";
	m.key = key;
	OK(w->fixture->publish(tx, &m, &seq, &w->err));
	return seq;
}

static void a_late_commit_is_delivered(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	void *early = f->begin(w->place), *late = f->begin(w->place);
	int64_t low = tx_publish(w, late, "x"), high = tx_publish(w, early, "y");
	struct worker *k;

	assert_true(low < high);
	world_target(w, "a");
	f->commit(early);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, high);
	f->commit(late);
	assert_drains(k, 1, low);
	assert_drains(k, 0);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 2);
}

static void a_late_commit_far_below_is_delivered(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	int64_t low[2], seqs[CLAIM_MAX];
	struct worker *k;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	low[0] = tx_publish(w, late, "x");
	for (int i = 0; i < 6; i++) {
		world_publish_many(w, 300);
		assert_int_equal(worker_drain(k, seqs, CLAIM_MAX), 300);
	}
	low[1] = tx_publish(w, late, "x");
	world_publish_many(w, 5);
	assert_int_equal(worker_drain(k, seqs, CLAIM_MAX), 5);
	worker_restart(k); /* a new owner knows nothing but the store */
	f->commit(late);
	assert_drains(k, 2, low[0], low[1]);
}

static void a_late_commit_after_an_idle_lane_moved(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	const char *key = key_in_lane(w, 1, 0), *other = key_in_lane(w, 0, 0);
	struct worker *k;
	int64_t low;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 1);
	late = f->begin(w->place);
	low = tx_publish(w, late, key);
	world_publish_run(w, other, 1100);
	worker_advance(k, MANY); /* an empty receipt moves the position */
	assert_int_equal(k->claim.count, 0);
	f->commit(late);
	assert_drains(k, 1, low);
}

static void a_late_rollback_leaves_nothing(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *k;
	int64_t seq;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	tx_publish(w, late, "x");
	seq = world_publish(w, "x");
	assert_drains(k, 1, seq);
	f->rollback(late);
	assert_drains(k, 0);
	assert_int_equal(world_messages(w), 1);
}

static void a_late_commit_is_not_covered_by_the_claim(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	int64_t first, low, last;
	struct worker *k;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	first = world_publish(w, "x");
	late = f->begin(w->place);
	low = tx_publish(w, late, "y");
	last = world_publish(w, "z");
	worker_advance(k, MANY);
	assert_claim(k, 2, first, last);
	f->commit(late); /* between two messages in flight */
	worker_advance(k, MANY);
	assert_claim(k, 1, low);
	assert_state(w, "a", low, OUTBOX_SENDING, 0);
}

static void a_late_commit_in_a_returned_claim(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	int64_t low, seq;
	struct worker *k;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	low = tx_publish(w, late, "x");
	seq = world_publish(w, "y");
	worker_advance(k, MANY);
	f->commit(late);
	settle_return(k, 0);
	worker_advance(k, MANY);
	assert_claim(k, 2, low, seq);
}

static void a_late_commit_of_a_waiting_key_is_delivered(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	int64_t low, high, seqs[4];
	struct worker *k;
	size_t count;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	low = tx_publish(w, late, "x");
	high = world_publish(w, "x");
	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, 0);
	f->commit(late);
	count = worker_drain(k, seqs, 4); /* now or when the other one is due: no order is defined */
	world_step(w, 10 * SEC);
	count += worker_drain(k, seqs + count, 4 - count);
	assert_int_equal(count, 2);
	assert_true((seqs[0] == low && seqs[1] == high) || (seqs[0] == high && seqs[1] == low));
}

static void a_late_commit_survives_purge(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_purge purge;
	struct worker *k;
	int64_t low, seq;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	low = tx_publish(w, late, "x");
	seq = world_publish(w, "x");
	assert_drains(k, 1, seq);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) };
	assert_int_equal(world_purge(w, &purge).messages, 1);
	f->commit(late);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	assert_drains(k, 1, low);
}

static void a_target_that_starts_now_gets_a_late_commit(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	const struct store_fixture *f = w->fixture;
	struct worker *k;
	int64_t low;
	void *late = f->begin(w->place);

	low = tx_publish(w, late, "x");
	world_publish(w, "x");
	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 0);
	f->commit(late);
	assert_drains(k, 1, low);
}

static void a_target_that_starts_at_a_time_gets_a_late_commit(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	const struct store_fixture *f = w->fixture;
	int64_t low, high;
	struct worker *k;
	void *late = f->begin(w->place);

	def.start = OUTBOX_START_TIME;
	def.start_time = world_now(w);
	low = tx_publish(w, late, "x");
	high = world_publish(w, "x");
	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, high);
	f->commit(late);
	assert_state(w, "a", low, OUTBOX_PENDING, OUTBOX_NEW);
	assert_drains(k, 1, low);
}

static void a_family_that_starts_now_gets_a_late_commit(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	const struct store_fixture *f = w->fixture;
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	void *late = f->begin(w->place);
	struct worker *k;
	int64_t seq = 0;

	m.type = "t";
	m.priority = 1;
	OK(f->publish(late, &m, &seq, &w->err));
	world_publish_message(w, &m);
	def.start = OUTBOX_START_NOW;
	def.band_of = "a";
	def.route.bands = OUTBOX_BAND_NORMAL;
	world_target_put(w, &def);
	def.name = "a-high";
	def.route.bands = OUTBOX_BAND_HIGH;
	world_target_put(w, &def);
	k = worker_start(w, "k", "a-high", 0);
	assert_drains(k, 0);
	f->commit(late);
	assert_state(w, "a-high", seq, OUTBOX_PENDING, OUTBOX_NEW);
	assert_drains(k, 1, seq);
}

#define LATE(name, lanes)                              \
	{                                              \
#name, name, lanes, STORE_LATE_COMMITS \
	}

const struct store_case late_cases[] = {
	LATE(a_late_commit_is_delivered, 0),
	LATE(a_late_commit_far_below_is_delivered, 0),
	LATE(a_late_commit_after_an_idle_lane_moved, 2),
	LATE(a_late_rollback_leaves_nothing, 0),
	LATE(a_late_commit_is_not_covered_by_the_claim, 0),
	LATE(a_late_commit_in_a_returned_claim, 0),
	LATE(a_late_commit_of_a_waiting_key_is_delivered, 0),
	LATE(a_late_commit_survives_purge, 0),
	LATE(a_target_that_starts_now_gets_a_late_commit, 0),
	LATE(a_target_that_starts_at_a_time_gets_a_late_commit, 0),
	LATE(a_family_that_starts_now_gets_a_late_commit, 0),
	{ NULL, NULL, 0, 0 },
};
