/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limits and breakers: pure rules, under a time that the test owns. */
#include "base/random.h"
#include "base/unit_test.h"
#include "relay/breaker.h"
#include "relay/throttle.h"

#define S OUTBOX_SECONDS
#define MS OUTBOX_MILLISECONDS
#define MANY ((size_t)100000)

static void a_bucket_starts_full_and_fills_evenly(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 50, S, 0, 0);
	assert_int_equal(bucket_take(&b, MANY, 0), 50); /* a second's worth */
	assert_int_equal(bucket_take(&b, 1, 0), 0);
	assert_int_equal(bucket_next(&b, 1, 0), 20 * MS);
	assert_int_equal(bucket_take(&b, MANY, 20 * MS - 1), 0);
	assert_int_equal(bucket_take(&b, MANY, 20 * MS), 1);
	assert_int_equal(bucket_take(&b, MANY, 520 * MS), 25);
	assert_int_equal(bucket_take(&b, 3, 620 * MS), 3); /* what is not taken stays */
	assert_int_equal(bucket_take(&b, MANY, 620 * MS), 2);
}

static void a_long_sleep_brings_no_more_than_the_burst(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 50, S, 10, 0);
	assert_int_equal(bucket_take(&b, MANY, 0), 10);
	assert_int_equal(bucket_take(&b, MANY, 365 * OUTBOX_DAYS), 10);
	assert_int_equal(bucket_take(&b, MANY, 365 * OUTBOX_DAYS), 0);
	/* the largest numbers there are */
	bucket_init(&b, 1000000000, OUTBOX_HOURS, 1000000000, 0);
	assert_int_equal(bucket_take(&b, SIZE_MAX, 0), 1000000000);
	assert_int_equal(bucket_take(&b, SIZE_MAX, OUTBOX_NEVER - 1), 1000000000);
	assert_int_equal(bucket_take(&b, SIZE_MAX, OUTBOX_NEVER - 1), 0);
}

static void nothing_is_lost_by_rounding(void **state)
{
	struct bucket b;
	size_t taken = 0;
	outbox_time now = 0;

	(void)state;
	bucket_init(&b, 7, OUTBOX_HOURS, 2, 0);
	assert_int_equal(bucket_take(&b, 2, 0), 2);
	while (now < 10 * OUTBOX_HOURS) {
		now = bucket_next(&b, 1, now + 1);
		if (now <= 10 * OUTBOX_HOURS)
			taken += bucket_take(&b, 1, now);
	}
	assert_int_equal(taken, 70);
}

static void what_is_given_back_or_owed_counts(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 10, S, 10, 0);
	assert_int_equal(bucket_take(&b, 10, 0), 10);
	bucket_give(&b, 4);
	assert_int_equal(bucket_take(&b, MANY, 0), 4);
	bucket_give(&b, MANY); /* never more than fits */
	assert_int_equal(bucket_take(&b, MANY, 0), 10);
	bucket_owe(&b, 5);
	assert_int_equal(bucket_take(&b, MANY, 500 * MS), 0);
	assert_int_equal(bucket_next(&b, 1, 500 * MS), 600 * MS);
	assert_int_equal(bucket_take(&b, MANY, 600 * MS), 1);
}

static void a_clock_that_goes_back_brings_nothing(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 10, S, 10, 100 * S);
	assert_int_equal(bucket_take(&b, 10, 100 * S), 10);
	assert_int_equal(bucket_take(&b, 10, 50 * S), 0);
	assert_int_equal(bucket_take(&b, 10, 100 * S), 0);
	assert_int_equal(bucket_take(&b, 10, 100 * S + 100 * MS), 1);
}

static void higher_bands_go_first(void **state)
{
	outbox_time again = 0, now = 0;
	struct throttle t;

	(void)state;
	throttle_init(&t, 50, S, 1, 0);
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, now, &again), 1);
	throttle_used(&t, RANK_LOW, 1, 1, now);
	assert_false(throttle_holds(&t, now));
	assert_int_equal(throttle_take(&t, RANK_HIGH, 10, now, &again), 0);
	assert_int_equal(again, 20 * MS);
	assert_true(throttle_holds(&t, now));
	now = again; /* there is a permit, and it is not for low */
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, now, &again), 0);
	assert_int_equal(throttle_take(&t, RANK_NORMAL, 10, now, &again), 0);
	assert_int_equal(throttle_take(&t, RANK_HIGH, 10, now, &again), 1);
	throttle_used(&t, RANK_HIGH, 1, 0, now); /* had nothing to send: normal is next, then low */
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, now, &again), 0);
	assert_int_equal(throttle_take(&t, RANK_NORMAL, 10, now, &again), 1);
	throttle_used(&t, RANK_NORMAL, 1, 0, now);
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, now, &again), 1);
}

static void who_does_not_come_back_is_not_waited_for(void **state)
{
	outbox_time again = 0;
	struct throttle t;

	(void)state;
	throttle_init(&t, 50, S, 1, 0);
	assert_int_equal(throttle_take(&t, RANK_HIGH, 10, 0, &again), 1);
	throttle_used(&t, RANK_HIGH, 1, 1, 0); /* and dies */
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, 100 * MS, &again), 0);
	assert_in_range(again, 100 * MS + 1, S);
	assert_int_equal(throttle_take(&t, RANK_LOW, 10, S, &again), 1);
}

static void without_a_limit_everything_goes(void **state)
{
	outbox_time again = 7;
	struct throttle t;

	(void)state;
	throttle_init(&t, 0, 0, 0, 0);
	assert_int_equal(throttle_take(&t, RANK_LOW, MANY, 0, &again), MANY);
	throttle_used(&t, RANK_LOW, MANY, MANY, 0);
}

static void a_breaker_waits_as_long_as_it_is_asked_to(void **state)
{
	struct random_state random;
	struct breaker b;

	(void)state;
	random_init(&random, 1);
	breaker_init(&b, 500 * MS, 30 * S);
	assert_true(breaker_trip(&b, 0, 120 * S, &random.base));
	assert_true(breaker_open(&b, 120 * S - 1));
	assert_false(breaker_open(&b, 120 * S));
	assert_true(breaker_probing(&b));
	/* the next wait is the breaker's own, which grew as always */
	assert_false(breaker_trip(&b, 200 * S, 0, &random.base));
	assert_in_range(b.until, 200 * S + 750 * MS, 201 * S);
	/* asked for less than it waits anyway */
	breaker_init(&b, 10 * S, 30 * S);
	breaker_trip(&b, 0, S, &random.base);
	assert_in_range(b.until, 7500 * MS, 10 * S);
}

static void a_portion_is_what_a_tenth_of_a_second_brings(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 500, S, 0, 0);
	assert_int_equal(bucket_portion(&b), 50);
	assert_int_equal(bucket_take(&b, MANY, 0), 500);
	assert_int_equal(bucket_next(&b, 50, 0), 100 * MS);
	assert_int_equal(bucket_next(&b, 50, 100 * MS), 100 * MS);
	assert_int_equal(bucket_next(&b, SIZE_MAX, 100 * MS), 1000 * MS); /* the burst */
	bucket_init(&b, 500, S, 3, 0);
	assert_int_equal(bucket_portion(&b), 3);
	bucket_init(&b, 1, OUTBOX_MINUTES, 0, 0);
	assert_int_equal(bucket_portion(&b), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_starts_full_and_fills_evenly),
		cmocka_unit_test(a_portion_is_what_a_tenth_of_a_second_brings),
		cmocka_unit_test(a_long_sleep_brings_no_more_than_the_burst),
		cmocka_unit_test(nothing_is_lost_by_rounding),
		cmocka_unit_test(what_is_given_back_or_owed_counts),
		cmocka_unit_test(a_clock_that_goes_back_brings_nothing),
		cmocka_unit_test(higher_bands_go_first),
		cmocka_unit_test(who_does_not_come_back_is_not_waited_for),
		cmocka_unit_test(without_a_limit_everything_goes),
		cmocka_unit_test(a_breaker_waits_as_long_as_it_is_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
