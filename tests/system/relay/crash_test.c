/* SPDX-License-Identifier: Apache-2.0 */
/* Relays that die, freeze or lose the store's answer: the fence, take-over, and the poison guard. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#define LEASE (15 * OUTBOX_SECONDS)

/* Step relay i until a batch is in flight (its messages may be on the wire). */
static void step_until_in_flight(struct world *w, int i)
{
	size_t batches = 0, messages = 0;

	for (int steps = 0; steps < 1000 && !batches; steps++) {
		worker_step(world_worker(w, i));
		outbox_relay_in_flight(w->relays[i], &batches, &messages);
	}
	assert_int_equal(batches, 1);
}

static void a_dead_relays_lane_is_taken_over_after_its_lease(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 10, 3);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	world_kill(w, 0);
	world_relay_plain(w, 1);
	world_run(w, LEASE - OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 0);
	assert_int_equal(world_stats(w, "events").sending, 10);
	world_run(w, 7 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	assert_int_equal(world_counts(w, 1).takeovers, 1);
	world_assert_order(w, 0);
	world_free(w);
}

static void a_zombie_settles_nothing(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_RETRY, .times = 10 };

	(void)state;
	/* the first relay gets ten refusals, freezes, and wakes up long after its lane was taken */
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 10, 0);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	worker_step(world_worker(w, 0)); /* publishes: all RETRY */
	w->stopped[0] = true;
	world_relay_plain(w, 1);
	world_run(w, 2 * LEASE);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	w->stopped[0] = false;
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(world_counts(w, 0).fenced, 1);
	for (int64_t seq = 1; seq <= 10; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	world_free(w);
}

static void a_zombie_sends_at_most_what_it_had_in_flight(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 30, 30);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	w->stopped[0] = true;
	world_relay_plain(w, 1);
	world_run(w, 2 * LEASE);
	assert_int_equal(memory_broker_count(w->brokers[0]), 30);
	w->stopped[0] = false;
	world_run(w, OUTBOX_MINUTES);
	/* its lease is over by its own clock: it must not publish at all */
	assert_int_equal(memory_broker_count(w->brokers[0]), 30);
	world_free(w);
}

struct lost_reply {
	const char *op;
	enum memory_phase phase;
	int status, times;
};

static int lose(void *context, const char *op, enum memory_phase phase, struct outbox_error *err)
{
	struct lost_reply *l = context;

	if (strcmp(op, l->op) != 0 || phase != l->phase || !l->times)
		return OUTBOX_OK;
	l->times--;
	return outbox_fail(err, l->status, "injected");
}

/* Whatever happens to the answer of an op, each message arrives once. */
static void lost_replies_cause_no_duplicates(void **state)
{
	static const char *const ops[] = { "lease", "take_over", "settle_and_claim" };
	static const int statuses[] = { OUTBOX_ECONN, OUTBOX_ETIMEDOUT, OUTBOX_EBUSY };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++) {
			struct world *w = world_new(1);
			struct lost_reply l = { .op = ops[i],
						.phase = j == 2 ? MEMORY_BEFORE : MEMORY_AFTER,
						.status = statuses[j],
						.times = 5 };

			memory_db_set_fault(w->db, lose, &l);
			world_publish_many(w, 25, 4);
			world_relay_plain(w, 0);
			world_run(w, OUTBOX_MINUTES);
			assert_int_equal(l.times, 0);
			assert_int_equal(memory_broker_count(w->brokers[0]), 25);
			assert_int_equal(world_counts(w, 0).fenced, 0);
			for (int64_t seq = 1; seq <= 25; seq++)
				world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
			world_free(w);
		}
	}
}

struct large_answer {
	bool claimed; /* it stays as large as it is until the lane is taken anew */
	int failures;
};

static int too_large_to_read(void *context, const char *op, enum memory_phase phase,
			     struct outbox_error *err)
{
	struct large_answer *l = context;

	if (phase != MEMORY_AFTER)
		return OUTBOX_OK;
	if (strcmp(op, "take_over") == 0 && l->failures)
		l->claimed = true;
	if (strcmp(op, "settle_and_claim") != 0 || l->claimed)
		return OUTBOX_OK;
	l->failures++;
	return outbox_fail(err, OUTBOX_ENOMEM, "injected");
}

/* The same claim would come again and again, and its messages wait: less is asked for at once. */
static void a_claim_that_memory_does_not_suffice_for_is_taken_anew(void **state)
{
	struct world *w = world_new(1);
	struct large_answer l = { 0 };

	(void)state;
	memory_db_set_fault(w->db, too_large_to_read, &l);
	world_publish_many(w, 25, 4);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(l.failures, 1);
	assert_int_equal(memory_broker_count(w->brokers[0]), 25);
	world_free(w);
}

static void a_store_outage_charges_nothing_and_is_said_once(void **state)
{
	struct world *w = world_new(1);
	struct lost_reply l = { "settle_and_claim", MEMORY_BEFORE, OUTBOX_EFULL, 50 };
	const char *line;

	(void)state;
	world_publish_many(w, 5, 2);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	memory_db_set_fault(w->db, lose, &l);
	world_run(w, 10 * OUTBOX_MINUTES);
	assert_int_equal(l.times, 0);
	line = strstr(w->log, "injected; nothing is charged");
	assert_non_null(line);
	assert_null(strstr(line + 1, "injected; nothing is charged"));
	assert_non_null(strstr(w->log, "store answers again"));
	assert_int_equal(memory_broker_count(w->brokers[0]), 5);
	world_free(w);
}

/* Frozen between two rounds, awake with the lease over by its own clock and no answer from the store:
 * what may not be ours any more is not sent. */
static void nothing_is_sent_past_an_unconfirmed_lease(void **state)
{
	struct world *w = world_new(1);
	struct lost_reply l = { "lease", MEMORY_BEFORE, OUTBOX_ETIMEDOUT, 1000000 };
	struct memory_counts counts;

	(void)state;
	world_publish_many(w, 10, 1);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	worker_step(world_worker(w, 0)); /* the first round */
	memory_db_set_fault(w->db, lose, &l);
	frozen_clock_step(&w->clock, LEASE);
	world_run(w, OUTBOX_MINUTES);
	memory_broker_counts(w->brokers[0], &counts);
	assert_int_equal(counts.publishes, 1);
	memory_db_set_fault(w->db, NULL, NULL);
	world_run(w, 2 * OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	world_free(w);
}

struct killer {
	struct world *world;
	int64_t seq;
	bool dead;
};

static void die_with(void *context, const struct outbox_batch *batch)
{
	struct killer *k = context;

	for (size_t i = 0; i < batch->count; i++)
		k->dead = k->dead || batch->items[i]->seq == k->seq;
}

/* The broker keeps nothing of a batch that killed its relay. */
static enum memory_fate nothing_from_the_dead(void *context, const struct outbox_item *item)
{
	struct killer *k = context;

	(void)item;
	return k->dead ? MEMORY_UNKNOWN_LOST : MEMORY_DEFAULT;
}

/* Message 5 kills every relay that sends it. It must fail in the end, and stop nobody else. */
static void a_message_that_kills_the_relay_fails_in_the_end(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_policy policy = *outbox_policy_find("default");
	struct killer killer = { .world = w, .seq = 5 };
	struct memory_hooks hooks = { &killer, die_with, nothing_from_the_dead };
	int deaths = 0;

	(void)state;
	policy.max_attempts = 3;
	target.policy = &policy;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 12, 4);
	world_relay(w, 0, &config);
	for (int steps = 0; steps < 20000 && deaths < 50; steps++) {
		outbox_time next = worker_step(world_worker(w, 0));
		outbox_time now = w->clock.base.mono(&w->clock.base);

		if (killer.dead) {
			deaths++;
			killer.dead = false;
			world_kill(w, 0);
			world_relay(w, 0, &config);
		} else if (next > now && next != OUTBOX_NEVER) {
			frozen_clock_step(&w->clock, next - now);
		}
	}
	assert_in_range(deaths, 4, 8);
	world_assert(w, "events", 5, OUTBOX_FAILED, 0, 3);
	assert_non_null(strstr(world_delivery(w, "events", 5).error, "died"));
	for (int64_t seq = 1; seq <= 12; seq++)
		if (seq != 5)
			world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_assert_order(w, 0);
	world_free(w);
}

/* Frozen past its lease between two rounds; nobody took the lane, but an operator has acted on what was
 * in flight, through a take-over receipt of its own. The relay must not go on sending. */
static void an_operator_after_the_lease_stops_what_was_in_flight(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 4, 1);
	world_relay_plain(w, 0);
	step_until_in_flight(w, 0);
	worker_step(world_worker(w, 0)); /* the first round: message 1 */
	frozen_clock_step(&w->clock, LEASE + OUTBOX_SECONDS);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "events", 2, 0), 1);
	world_run(w, OUTBOX_MINUTES);
	/* 1 was acknowledged and not settled: the one duplicate that is allowed */
	assert_string_equal(world_arrived(w, 0), "1 1 3 4");
	world_assert(w, "events", 2, OUTBOX_DISCARDED, 0, 0);
	assert_int_equal(world_counts(w, 0).fenced, 1);
	world_free(w);
}

/* Dying twice in a row for reasons of its own must not charge anybody. */
static void killed_relays_charge_nobody(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 10, 3);
	for (int i = 0; i < 4; i++) {
		world_relay_plain(w, 0);
		world_run(w, LEASE + OUTBOX_SECONDS - (i ? 0 : LEASE));
		if (!i)
			world_publish_many(w, 20, 3);
		world_kill(w, 0);
	}
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	for (int64_t seq = 1; seq <= 30; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_relays_lane_is_taken_over_after_its_lease),
		cmocka_unit_test(a_zombie_settles_nothing),
		cmocka_unit_test(a_zombie_sends_at_most_what_it_had_in_flight),
		cmocka_unit_test(a_message_that_kills_the_relay_fails_in_the_end),
		cmocka_unit_test(an_operator_after_the_lease_stops_what_was_in_flight),
		cmocka_unit_test(killed_relays_charge_nobody),
	};
	/* These inject faults into the store's calls, which only the memory store lets them do. */
	const struct CMUnitTest memory_tests[] = {
		cmocka_unit_test(lost_replies_cause_no_duplicates),
		cmocka_unit_test(a_claim_that_memory_does_not_suffice_for_is_taken_anew),
		cmocka_unit_test(a_store_outage_charges_nothing_and_is_said_once),
		cmocka_unit_test(nothing_is_sent_past_an_unconfirmed_lease),
	};
	int failed = WORLD_MAIN(argc, argv, "crash", tests);

	if (world_kind == WORLD_MEMORY)
		failed += WORLD_MAIN(argc, argv, "crash-store", memory_tests);
	return failed;
}
