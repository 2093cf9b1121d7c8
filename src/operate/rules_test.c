/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule at its limit and one beyond. */
#include "operate/health_test.h"
#include "operate/rules.h"
#include "operate/status.h"

static void test_failed(void **state)
{
	struct world *w = *state;

	w->limits.failed = 2;
	w->target.failed = 2;
	never_fires(w, RULE_FAILED);
	w->target.failed = 3;
	fires_after(w, RULE_FAILED, 0);
	assert_string_equal(found(w, RULE_FAILED)->text, "3 failed deliveries, the limit is 2");
	assert_int_equal(found(w, RULE_FAILED)->level, LEVEL_UNHEALTHY);
	assert_int_equal(health_worst(w->findings, w->count, "shop"), LEVEL_UNHEALTHY);
	assert_int_equal(health_worst(w->findings, w->count, "other"), LEVEL_HEALTHY);
	w->target.failed = 2;
	ends_after_settle(w, RULE_FAILED);
}

static void test_overdue(void **state)
{
	struct world *w = *state;

	sample_world(w);
	for (int i = 0; i < 5; i++) {
		w->target.oldest = w->stats.store_now - w->limits.overdue + 60 * OUTBOX_SECONDS;
		go_on(w, 60 * OUTBOX_SECONDS);
		assert_null(found(w, RULE_OVERDUE));
	}
	/* one microsecond more, and it has to last; since when is the store's own knowledge */
	w->target.oldest = w->stats.store_now - w->limits.overdue - 1;
	sample_world(w);
	assert_null(found(w, RULE_OVERDUE));
	go_on(w, w->limits.settle);
	assert_non_null(found(w, RULE_OVERDUE));
	assert_int_equal(found(w, RULE_OVERDUE)->since, w->wall - w->limits.settle - 1);
	w->target.oldest = 0;
	ends_after_settle(w, RULE_OVERDUE);
}

static void test_unserved(void **state)
{
	struct world *w = *state;

	never_fires(w, RULE_UNSERVED);
	w->target.unserved = "a would send to b";
	w->target.unserved_since = w->wall + OUTBOX_HOURS;
	w->target.n_lanes = 0; /* not registered */
	fires_after(w, RULE_UNSERVED, w->limits.settle);
	assert_string_equal(found(w, RULE_UNSERVED)->text, "not served: a would send to b");
	assert_null(found(w, RULE_NO_RELAY));
	w->target.unserved = NULL;
	ends_after_settle(w, RULE_UNSERVED);
}

static void test_backlog(void **state)
{
	struct world *w = *state;

	w->target.pending = 1000;
	w->target.waiting = 4000;
	w->target.parked = 4500;
	w->target.sending = 500;
	w->target.deferred = 99999;
	never_fires(w, RULE_BACKLOG);
	w->target.parked++;
	fires_after(w, RULE_BACKLOG, w->limits.settle);
	assert_string_equal(found(w, RULE_BACKLOG)->text,
			    "10,001 unfinished deliveries, the limit is 10,000");
	w->target.parked = OUTBOX_COUNT_CAP + 1;
	go_on(w, 1);
	assert_string_equal(found(w, RULE_BACKLOG)->text,
			    "more than 100,000 unfinished deliveries, the limit is 10,000");
	w->target.outage = "connection refused";
	go_on(w, 1);
	assert_string_equal(found(w, RULE_BACKLOG)->text,
			    "more than 100,000 unfinished deliveries, the limit is 10,000; the "
			    "target is unreachable");
	w->target.parked = 0;
	ends_after_settle(w, RULE_BACKLOG);
}

static void test_pending(void **state)
{
	struct world *w = *state;

	w->target.pending = 1000;
	never_fires(w, RULE_PENDING);
	w->target.pending = 1001;
	fires_after(w, RULE_PENDING, w->limits.pending_for);
	assert_string_equal(found(w, RULE_PENDING)->text,
			    "1,001 unread messages, the limit is 1,000");
	w->target.paused = true;
	w->target.paused_by = "eve";
	go_on(w, 1);
	assert_string_equal(found(w, RULE_PENDING)->text,
			    "1,001 unread messages, the limit is 1,000; the target is paused by eve");
	w->target.pending = 0;
	ends_after_settle(w, RULE_PENDING);
}

static void test_sending(void **state)
{
	struct world *w = *state;

	/* busy for hours, but it moves */
	w->target.sending = 500;
	for (int i = 0; i < 10; i++) {
		w->lanes[1].receipts++;
		go_on(w, w->limits.sending);
		assert_null(found(w, RULE_SENDING));
	}
	go_on(w, w->limits.sending);
	assert_null(found(w, RULE_SENDING));
	go_on(w, 1);
	assert_null(found(w, RULE_SENDING));
	go_on(w, w->limits.settle);
	assert_non_null(found(w, RULE_SENDING));
	assert_int_equal(found(w, RULE_SENDING)->since, w->wall - w->limits.settle - 1);
	w->target.sending = 0;
	ends_after_settle(w, RULE_SENDING);
}

static void add_latency(struct world *w, uint64_t count, outbox_time each)
{
	w->metrics.latency.count += count;
	w->metrics.latency.sum += (int64_t)count * each;
}

static void test_latency(void **state)
{
	struct world *w = *state;

	add_latency(w, 1000000, OUTBOX_SECONDS); /* from before anybody looked */
	sample_world(w);
	for (int i = 0; i < 10; i++) {
		add_latency(w, 10, w->limits.latency);
		go_on(w, OUTBOX_MINUTES);
		assert_null(found(w, RULE_LATENCY));
	}
	for (int i = 0; i < 10; i++) {
		add_latency(w, 10, w->limits.latency + OUTBOX_SECONDS);
		go_on(w, OUTBOX_MINUTES);
	}
	assert_non_null(found(w, RULE_LATENCY));
	/* the good ones outweigh the bad ones once the bad ones are old */
	for (int i = 0; i < 10; i++) {
		add_latency(w, 10, OUTBOX_SECONDS);
		go_on(w, OUTBOX_MINUTES);
	}
	assert_null(found(w, RULE_LATENCY));
	/* a burst counts for a while, however quick the few behind it are */
	add_latency(w, 1000, 10 * w->limits.latency);
	for (int i = 0; i < 4; i++) {
		add_latency(w, 1, OUTBOX_SECONDS);
		go_on(w, 15 * OUTBOX_SECONDS);
	}
	assert_non_null(found(w, RULE_LATENCY));
	go_on(w, OUTBOX_HOURS);
	go_on(w, OUTBOX_HOURS);
	go_on(w, OUTBOX_HOURS);
	assert_null(found(w, RULE_LATENCY));
	/* a new relay counts from zero */
	w->metrics.latency = (struct histogram_view){ .count = 0 };
	add_latency(w, 5, OUTBOX_SECONDS);
	go_on(w, OUTBOX_MINUTES);
	assert_int_equal(w->count, 0);
}

static void test_no_target(void **state)
{
	struct world *w = *state;

	w->stats.n_targets = 0;
	never_fires(w, RULE_NO_TARGET);
	w->stats.messages = 1;
	fires_after(w, RULE_NO_TARGET, w->limits.settle);
	assert_string_equal(found(w, RULE_NO_TARGET)->text, "1 message, and no target is registered");
	w->stats.n_targets = 1;
	ends_after_settle(w, RULE_NO_TARGET);
}

static void test_cleanup(void **state)
{
	struct world *w = *state;

	never_fires(w, RULE_CLEANUP);
	w->metrics.untidy_since = w->wall;
	fires_after(w, RULE_CLEANUP, w->limits.settle);
	assert_non_null(strstr(found(w, RULE_CLEANUP)->text, "cleanup.failed"));
	w->metrics.untidy_since = 0;
	ends_after_settle(w, RULE_CLEANUP);
}

static void test_retry_rate(void **state)
{
	struct world *w = *state;

	w->target.delivered_minute = 90;
	w->target.retries_minute = 10;
	never_fires(w, RULE_RETRY_RATE);
	w->target.delivered_minute = 89;
	fires_after(w, RULE_RETRY_RATE, w->limits.settle);
	w->target.delivered_minute = 0;
	w->target.retries_minute = RETRY_RATE_MIN - 1;
	ends_after_settle(w, RULE_RETRY_RATE);
	w->target.retries_minute = RETRY_RATE_MIN;
	fires_after(w, RULE_RETRY_RATE, w->limits.settle);
}

static void test_outage(void **state)
{
	struct world *w = *state;

	sample_world(w);
	w->target.outage = "connection refused";
	w->target.outage_since = w->stats.store_now;
	fires_after(w, RULE_OUTAGE, w->limits.settle);
	assert_string_equal(found(w, RULE_OUTAGE)->text, "unreachable: connection refused");
	w->target.outage = NULL;
	ends_after_settle(w, RULE_OUTAGE);
}

static void test_lanes(void **state)
{
	struct world *w = *state;

	w->lanes[0].owner = NULL;
	fires_after(w, RULE_LANES_IDLE, w->limits.settle);
	assert_string_equal(found(w, RULE_LANES_IDLE)->text, "no relay holds 1 of its 2 lanes");
	w->lanes[1].owner = NULL;
	fires_after(w, RULE_NO_RELAY, w->limits.settle);
	assert_null(found(w, RULE_LANES_IDLE));
	/* what is refused is held by nobody: one alert, the one that says why */
	w->lanes[0].refused = "ahead of the log";
	fires_after(w, RULE_REFUSED, 0);
	go_on(w, w->limits.settle);
	assert_int_equal(w->count, 1);
	assert_string_equal(w->findings[0].text, "relays refuse 1 of 2 lanes: ahead of the log");
	w->lanes[0].refused = NULL;
	w->lanes[0].owner = w->lanes[1].owner = "b/0";
	ends_after_settle(w, RULE_REFUSED);
	/* an owner whose lease has run out is none */
	w->lease = 0;
	fires_after(w, RULE_NO_RELAY, w->limits.settle);
	assert_string_equal(found(w, RULE_NO_RELAY)->text,
			    "no relay works on it: no relay holds any of its 2 lanes");
}

static void test_paused_is_information(void **state)
{
	struct world *w = *state;

	w->target.paused = true;
	w->target.paused_by = "eve\n\033[31m";
	fires_after(w, RULE_PAUSED, 0);
	assert_string_equal(found(w, RULE_PAUSED)->text, "paused by eve  [31m: no reason given");
	assert_int_equal(health_worst(w->findings, w->count, NULL), LEVEL_HEALTHY);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static void test_idle_is_no_trouble(void **state)
{
	struct world *w = *state;
	struct rule_reason why;

	for (size_t i = 0; i < w->target.n_lanes; i++)
		w->target.lanes[i].owner = NULL;
	assert_true(status_idle(&w->target));
	assert_int_equal(rule_worst(&w->limits, &w->stats, &why), LEVEL_HEALTHY);
	/* what failed or is deferred needs nobody now */
	w->target.deferred = 1;
	assert_int_equal(rule_worst(&w->limits, &w->stats, &why), LEVEL_HEALTHY);
	w->target.waiting = 1;
	assert_int_equal(rule_worst(&w->limits, &w->stats, &why), LEVEL_UNHEALTHY);
	assert_int_equal(why.rule, RULE_NO_RELAY);
	assert_string_equal(why.target, w->target.name);
	assert_non_null(strstr(why.text, "no relay works on it"));
	w->target.waiting = 0;
	/* somebody died instead of ending */
	w->target.lanes[0].owner = "a";
	w->target.lanes[0].lease_until = w->stats.store_now;
	assert_false(status_idle(&w->target));
	assert_int_equal(rule_worst(&w->limits, &w->stats, &why), LEVEL_UNHEALTHY);
}

static void test_drain_is_told_from_a_rate_that_is(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < w->target.n_lanes; i++)
		w->target.lanes[i].lease_until = w->stats.store_now + OUTBOX_MINUTES;
	w->target.delivered_minute = 600;
	w->target.pending = 90;
	w->target.sending = 10;
	w->target.oldest = w->stats.store_now - OUTBOX_MINUTES;
	assert_int_equal(status_drain(&w->stats, &w->target), 10 * OUTBOX_SECONDS);
	/* what waits for its next try goes by another clock */
	w->target.waiting = w->target.parked = 1000;
	assert_int_equal(status_drain(&w->stats, &w->target), 10 * OUTBOX_SECONDS);
	w->target.pending = w->target.sending = 0;
	assert_int_equal(status_drain(&w->stats, &w->target), 0);
	/* seconds of work are not a minute's rate */
	w->target.pending = 90;
	w->target.oldest++;
	assert_int_equal(status_drain(&w->stats, &w->target), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_failed),
		TEST(test_overdue),
		TEST(test_unserved),
		TEST(test_backlog),
		TEST(test_pending),
		TEST(test_sending),
		TEST(test_latency),
		TEST(test_no_target),
		TEST(test_cleanup),
		TEST(test_retry_rate),
		TEST(test_outage),
		TEST(test_lanes),
		TEST(test_paused_is_information),
		TEST(test_idle_is_no_trouble),
		TEST(test_drain_is_told_from_a_rate_that_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
