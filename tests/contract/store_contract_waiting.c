/* SPDX-License-Identifier: Apache-2.0 */

/* look(): lanes that wait are asked about together, in one question that writes nothing and misses nothing. */

#include "store_world.h"

#include "store/store.h"

/* What look() says of both lanes, with the receipts that k and other hold; bit i: lane i has work. */
static unsigned look_at(struct worker *k, const struct worker *other,
			struct outbox_looked *ret_looked)
{
	struct store_world *w = k->w;
	int lanes[] = { k->lane, other->lane };
	int64_t n[] = { k->n, other->n }, tokens[] = { k->fence_token, other->fence_token };
	struct outbox_look question = { .target = k->target,
					.route_version = k->version,
					.count = 2,
					.lanes = lanes,
					.n = n,
					.fence_tokens = tokens };

	assert_true(lanes[0] < lanes[1]);
	OK(store_look(k->store, &question, ret_looked, &w->err));
	return (unsigned)ret_looked->work[0] | (unsigned)ret_looked->work[1] << 1;
}

#define NONE 0u
#define FIRST 1u
#define SECOND 2u

static void assert_work(struct worker *k, const struct worker *other, unsigned expected)
{
	struct outbox_looked looked;

	assert_int_equal(look_at(k, other, &looked), expected);
	assert_int_equal(looked.store_now, world_now(k->w));
	assert_int_equal(looked.next_due, 0);
}

/* Lanes 0 and 1 of the target, idle. */
static void start_both(struct store_world *w, const char *target, struct worker **ret_first,
		       struct worker **ret_second)
{
	struct worker *first = worker_start(w, "k", target, 0), *second = worker_new(w, "k", target);
	int64_t seqs[CLAIM_MAX];

	worker_take(second, 1);
	worker_drain(first, seqs, CLAIM_MAX);
	worker_drain(second, seqs, CLAIM_MAX);
	*ret_first = first;
	*ret_second = second;
}

static void an_idle_lane_is_looked_at_and_nothing_is_written(struct store_world *w)
{
	struct worker *first, *second;
	int64_t receipts;

	world_target(w, "a");
	world_publish_many(w, 20);
	start_both(w, "a", &first, &second);
	receipts = world_receipts(w, "a", 0) + world_receipts(w, "a", 1);
	for (int i = 0; i < 5; i++) {
		assert_work(first, second, NONE);
		world_step(w, SEC);
	}
	assert_int_equal(world_receipts(w, "a", 0) + world_receipts(w, "a", 1), receipts);
}

static void a_look_finds_a_new_message_in_its_lane_only(struct store_world *w)
{
	struct worker *first, *second;
	int64_t seq;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	seq = world_publish(w, key_in_lane(w, 1, 0));
	assert_work(first, second, SECOND);
	assert_work(first, second, SECOND); /* until somebody claims it */
	assert_drains(second, 1, seq);
	assert_work(first, second, NONE);
	seq = world_publish(w, key_in_lane(w, 0, 0));
	assert_work(first, second, FIRST);
	world_publish(w, key_in_lane(w, 1, 0));
	assert_work(first, second, FIRST | SECOND);
	assert_drains(first, 1, seq);
	assert_work(first, second, SECOND);
}

static void a_look_minds_the_routing(struct store_world *w)
{
	static const char *const types[] = { "wanted" };
	struct outbox_target_def def = target_def("a");
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct worker *first, *second;

	def.route.types = types;
	def.route.n_types = 1;
	world_target_put(w, &def);
	start_both(w, "a", &first, &second);
	for (int i = 0; i < 3; i++)
		world_publish(w, key_in_lane(w, i % 2, i));
	assert_work(first, second, NONE);
	m.type = "wanted";
	m.key = key_in_lane(w, 0, 3);
	world_publish_message(w, &m);
	assert_work(first, second, FIRST);
}

/* A message of lane 0 that is tried again in 10 s. */
static int64_t make_retry(struct worker *first)
{
	int64_t seq = world_publish(first->w, key_in_lane(first->w, 0, 0));

	assert_int_equal(worker_advance(first, MANY), 1);
	settle_wait(first, 0, 10 * SEC);
	assert_int_equal(worker_advance(first, MANY), 0);
	return seq;
}

static void a_look_finds_a_retry_when_it_is_due(struct store_world *w)
{
	struct worker *first, *second;
	struct outbox_looked looked;
	int64_t seq;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	seq = make_retry(first);
	assert_int_equal(look_at(first, second, &looked), NONE);
	assert_int_equal(looked.next_due, world_now(w) + 10 * SEC);
	world_step(w, 10 * SEC - 1);
	assert_int_equal(look_at(first, second, &looked), NONE);
	assert_int_equal(looked.next_due, world_now(w) + 1);
	world_step(w, 1);
	assert_int_equal(look_at(first, second, &looked), FIRST);
	assert_drains(first, 1, seq);
	assert_work(first, second, NONE);
}

/* Who waits for the next one would ask again at once, and again, while this one cannot be claimed. */
static void what_is_due_is_not_next(struct store_world *w)
{
	struct worker *first, *second;
	struct outbox_looked looked;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	make_retry(first);
	world_step(w, 11 * SEC);
	OK(store_target_pause(w->store, "a", true, "anna", "why", &w->err));
	assert_true(look_at(first, second, &looked) <= FIRST);
	assert_int_equal(looked.next_due, 0);
	OK(store_target_pause(w->store, "a", false, "anna", "why", &w->err));
	world_publish(w, key_in_lane(w, 0, 1));
	assert_int_equal(worker_advance(first, MANY), 2);
	settle_wait(first, 0, 5 * SEC);
	settle_wait(first, 1, 20 * SEC);
	assert_int_equal(worker_advance(first, MANY), 0);
	world_step(w, 6 * SEC);
	assert_int_equal(look_at(first, second, &looked), FIRST);
	assert_true(!looked.next_due || looked.next_due == world_now(w) + 14 * SEC);
}

static void a_look_tells_who_lost_the_lane(struct store_world *w)
{
	struct worker *first, *second, *thief = worker_new(w, "k", "a");

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	worker_take(thief, 1);
	assert_work(first, second, SECOND);
	assert_int_equal(worker_try_advance(second, MANY, BYTES), OUTBOX_EFENCED);
	assert_work(first, second, SECOND); /* still not his */
	assert_drains(thief, 0);
	assert_work(first, thief, NONE);
}

static void a_claim_in_flight_is_work(struct store_world *w)
{
	struct worker *first, *second;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	world_publish(w, key_in_lane(w, 0, 0));
	worker_advance(first, MANY);
	assert_work(first, second, FIRST); /* whoever asks has forgotten it */
}

static void a_paused_target_with_work_writes_nothing(struct store_world *w)
{
	struct worker *first, *second;
	int64_t receipts, seq;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	make_retry(first);
	seq = world_publish(w, key_in_lane(w, 1, 0));
	OK(store_target_pause(w->store, "a", true, "anna", "why", &w->err));
	world_step(w, 11 * SEC);
	receipts = world_receipts(w, "a", 0) + world_receipts(w, "a", 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(worker_advance(first, MANY), 0);
		assert_true(first->claim.paused);
		assert_int_equal(worker_advance(second, MANY), 0);
		assert_true(second->claim.paused);
		world_step(w, SEC);
	}
	assert_int_equal(world_receipts(w, "a", 0) + world_receipts(w, "a", 1), receipts);
	OK(store_target_pause(w->store, "a", false, "anna", "why", &w->err));
	assert_work(first, second, FIRST | SECOND);
	assert_drains(second, 1, seq);
}

static void what_was_discarded_unread_is_no_work(struct store_world *w)
{
	struct worker *first, *second;
	int64_t seq;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	seq = world_publish(w, key_in_lane(w, 0, 0));
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	for (int i = 0; i < 3; i++) {
		assert_work(first, second, NONE);
		world_step(w, OUTBOX_HOURS);
	}
	seq = world_publish(w, key_in_lane(w, 0, 1));
	assert_work(first, second, FIRST);
	assert_drains(first, 1, seq);
	assert_work(first, second, NONE);
}

static void a_look_follows_the_log(struct store_world *w)
{
	struct worker *first, *second;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	world_publish_run(w, key_in_lane(w, 1, 0), 1020);
	assert_work(first, second, FIRST | SECOND); /* so that the position moves on */
	assert_int_equal(worker_advance(first, MANY), 0);
	assert_work(first, second, SECOND);
}

static int64_t tx_publish(struct store_world *w, void *tx, const char *key)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq = 0;

	m.type = "t";
	m.key = key;
	OK(w->fixture->publish(tx, &m, &seq, &w->err));
	return seq;
}

static void a_look_finds_a_late_commit(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *first, *second;
	int64_t low, high;
	void *late;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	late = f->begin(w->place);
	low = tx_publish(w, late, key_in_lane(w, 0, 0));
	high = world_publish(w, key_in_lane(w, 0, 1));
	assert_drains(first, 1, high);
	assert_work(first, second, NONE);
	f->commit(late);
	/* that it is not the other's may be unknown, and is known once that has asked */
	assert_drains(second, 0);
	assert_work(first, second, FIRST);
	assert_drains(first, 1, low);
	assert_work(first, second, NONE);
}

/* The number is used up, and nobody waits for it. */
static void a_late_rollback_is_no_work(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *first, *second;
	int64_t high, receipts;
	void *late;

	world_target(w, "a");
	start_both(w, "a", &first, &second);
	late = f->begin(w->place);
	tx_publish(w, late, key_in_lane(w, 0, 0));
	high = world_publish(w, key_in_lane(w, 0, 1));
	assert_drains(first, 1, high);
	f->rollback(late);
	assert_drains(first, 0);
	assert_drains(second, 0);
	receipts = world_receipts(w, "a", 0) + world_receipts(w, "a", 1);
	for (int i = 0; i < 3; i++) {
		assert_work(first, second, NONE);
		assert_drains(first, 0);
	}
	assert_int_equal(world_receipts(w, "a", 0) + world_receipts(w, "a", 1), receipts);
}

#define LOOKS(name)                         \
	{                                   \
#name, name, 2, STORE_LOOKS \
	}
#define LATE(name)                                               \
	{                                                        \
#name, name, 2, STORE_LOOKS | STORE_LATE_COMMITS \
	}

const struct store_case waiting_cases[] = {
	LOOKS(an_idle_lane_is_looked_at_and_nothing_is_written),
	LOOKS(a_look_finds_a_new_message_in_its_lane_only),
	LOOKS(a_look_minds_the_routing),
	LOOKS(a_look_finds_a_retry_when_it_is_due),
	LOOKS(what_is_due_is_not_next),
	LOOKS(a_look_tells_who_lost_the_lane),
	LOOKS(a_claim_in_flight_is_work),
	LOOKS(a_paused_target_with_work_writes_nothing),
	LOOKS(what_was_discarded_unread_is_no_work),
	LOOKS(a_look_follows_the_log),
	LATE(a_look_finds_a_late_commit),
	LATE(a_late_rollback_is_no_work),
	{ NULL, NULL, 0, 0 },
};
