/* SPDX-License-Identifier: Apache-2.0 */

/* Delays, budgets, and the documented numbers of the presets. */

#include "base/unit_test.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "core/retry.h"

#include <string.h>

#define S OUTBOX_SECONDS

/* The delays of a preset without jitter, until it gives up. */
static void assert_delays(const char *name, const int *seconds, size_t n)
{
	const struct outbox_policy *policy = outbox_policy_find(name);
	outbox_time delay = 0;
	size_t i;

	assert_non_null(policy);
	assert_ok(retry_check(policy, err));
	assert_int_equal(policy->struct_size, sizeof(*policy));
	for (i = 0; i < n; i++) {
		assert_true(retry_delay(policy, (int)i + 1, 0, 0, NULL, &delay));
		assert_int_equal(delay, seconds[i] * S);
	}
	delay = 42;
	assert_false(retry_delay(policy, (int)n + 1, 0, 0, NULL, &delay));
	assert_int_equal(delay, 42);
	assert_int_equal(retry_tries(policy), n + 1);
}

static void presets_have_the_documented_delays(void **state)
{
	static const int ours[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };
	static const int hermodr[] = { 30, 60, 120, 300 };
	static const int blueprint[] = { 5, 10, 20, 40, 80, 160, 320, 640, 900 };
	static const int protean[] = { 60, 120 };
	static const int opinionated[] = { 2, 4, 8, 16 };
	static const int webhooks[] = { 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400 };

	(void)state;
	assert_delays("default", ours, ARRAY_SIZE(ours));
	assert_delays("hermodr", hermodr, ARRAY_SIZE(hermodr));
	assert_delays("blueprint", blueprint, ARRAY_SIZE(blueprint));
	assert_delays("protean", protean, ARRAY_SIZE(protean));
	assert_delays("opinionated", opinionated, ARRAY_SIZE(opinionated));
	assert_delays("webhooks", webhooks, ARRAY_SIZE(webhooks));
}

static void presets_fix_what_their_systems_fix(void **state)
{
	/* clang-format off */
	static const struct outbox_policy want[] = {
		{ .name = "default", .jitter_percent = 25, .cap = 300 * S },
		{ .name = "hermodr", .poll = 30 * S },
		{ .name = "blueprint", .cap = 900 * S, .poll = 5 * S, .batch = 20 },
		{ .name = "protean", .jitter_percent = 25, .cap = 3600 * S, .lease = 300 * S,
		  .retain_delivered = 168 * 3600 * S, .retain_failed = 720 * 3600 * S },
		{ .name = "opinionated", .cap = 300 * S, .poll = 1 * S, .lease = 300 * S, .batch = 50,
		  .retain_delivered = 7 * 86400 * S, .retain_failed = OUTBOX_NEVER,
		  .purge_interval = 3600 * S },
		{ .name = "webhooks", .jitter_percent = 25 },
	};
	/* clang-format on */
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		const struct outbox_policy *got = outbox_policy_at(i);

		assert_ptr_equal(outbox_policy_find(want[i].name), got);
		assert_int_equal(got->jitter_percent, want[i].jitter_percent);
		assert_int_equal(got->cap, want[i].cap);
		assert_int_equal(got->budget, 0);
		assert_int_equal(got->poll, want[i].poll);
		assert_int_equal(got->lease, want[i].lease);
		assert_int_equal(got->batch, want[i].batch);
		assert_int_equal(got->retain_delivered, want[i].retain_delivered);
		assert_int_equal(got->retain_failed, want[i].retain_failed);
		assert_int_equal(got->purge_interval, want[i].purge_interval);
	}
	assert_null(outbox_policy_at(i));
	assert_null(outbox_policy_find("Default"));
	assert_null(outbox_policy_find(NULL));
}

static void jitter_keeps_its_bounds_and_uses_them(void **state)
{
	struct outbox_policy policy = { .base = 1000, .cap = 1000000, .factor = 2 };
	struct random_state random;
	int percent, i;

	(void)state;
	random_init(&random, 1);
	for (percent = 1; percent <= 100; percent++) {
		outbox_time lowest = INT64_MAX, highest = 0, sum = 0, delay = 0;

		policy.jitter_percent = percent;
		for (i = 0; i < 4000; i++) {
			assert_true(retry_delay(&policy, 4, 0, 0, &random.base, &delay));
			lowest = delay < lowest ? delay : lowest;
			highest = delay > highest ? delay : highest;
			sum += delay;
		}
		assert_in_range(lowest, 8000 - 80 * percent, 8000 - 76 * percent);
		assert_in_range(highest, 8000 + 76 * percent, 8000 + 80 * percent);
		assert_in_range(sum / 4000, 8000 - 4 * percent, 8000 + 4 * percent);
	}
}

static void growth_stops_at_the_cap_whatever_the_numbers(void **state)
{
	struct outbox_policy policy = { .base = S, .cap = 300 * S, .factor = 2 };
	outbox_time delay = 0, last = 0;
	int attempts;

	(void)state;
	for (attempts = 1; attempts < 2000; attempts++) {
		assert_true(retry_delay(&policy, attempts, 0, 0, NULL, &delay));
		assert_true(delay >= last && delay <= policy.cap);
		last = delay;
	}
	assert_true(retry_delay(&policy, INT32_MAX, 0, 0, NULL, &delay));
	assert_int_equal(delay, 300 * S);
	policy.factor = 1;
	assert_true(retry_delay(&policy, INT32_MAX, 0, 0, NULL, &delay));
	assert_int_equal(delay, S);
	policy.factor = 1000;
	policy.cap = INT64_MAX;
	assert_true(retry_delay(&policy, INT32_MAX, 0, 0, NULL, &delay));
	assert_true(delay > 0 && delay < INT64_MAX / 2);
	policy.factor = 1.5;
	assert_true(retry_delay(&policy, 3, 0, 0, NULL, &delay));
	assert_int_equal(delay, 2250000);
}

static void the_budget_counts_from_the_first_failure(void **state)
{
	struct outbox_policy policy = { .base = 10 * S, .cap = 10 * S, .factor = 2, .budget = 60 * S };
	outbox_time delay = 0;

	(void)state;
	/* Next try at 1060, the budget ends at 1060: still inside. */
	assert_true(retry_delay(&policy, 5, 1000 * S, 1050 * S, NULL, &delay));
	assert_false(retry_delay(&policy, 5, 1000 * S, 1050 * S + 1, NULL, &delay));
	assert_true(retry_delay(&policy, 1, 0, 1050 * S, NULL, &delay)); /* fails for the first time */
	assert_true(retry_delay(&policy, 1, 2000 * S, 1050 * S, NULL, &delay)); /* the clock went back */
	policy.budget = 9 * S;
	assert_false(retry_delay(&policy, 1, 0, 1050 * S, NULL, &delay));
	policy.budget = OUTBOX_NEVER;
	assert_true(retry_delay(&policy, 5, 1, OUTBOX_NEVER / 2, NULL, &delay));
}

static void attempts_count_tries_in_all(void **state)
{
	struct outbox_policy policy = { .base = S, .cap = S, .factor = 1, .max_attempts = 1 };
	outbox_time delay = 0;

	(void)state;
	assert_false(retry_delay(&policy, 1, 0, 0, NULL, &delay));
	assert_int_equal(retry_first_delay(&policy, NULL),
			 S); /* what is not charged waits all the same */
	policy.max_attempts = 2;
	assert_true(retry_delay(&policy, 1, 0, 0, NULL, &delay));
	assert_false(retry_delay(&policy, 2, 0, 0, NULL, &delay));
	policy.max_attempts = 0;
	assert_true(retry_delay(&policy, 100000, 0, 0, NULL, &delay));
	assert_int_equal(retry_tries(&policy), 0);
	/* The shorter of count and schedule. */
	policy = (struct outbox_policy){ .n_schedule = 3, .schedule = { S, 2 * S, 3 * S } };
	assert_int_equal(retry_tries(&policy), 4);
	assert_true(retry_delay(&policy, 3, 0, 0, NULL, &delay));
	assert_int_equal(delay, 3 * S);
	assert_false(retry_delay(&policy, 4, 0, 0, NULL, &delay));
	policy.max_attempts = 2;
	assert_int_equal(retry_tries(&policy), 2);
	assert_false(retry_delay(&policy, 2, 0, 0, NULL, &delay));
}

static void wrong_policies_are_named(void **state)
{
	static const struct outbox_policy good = { .base = S, .cap = 2 * S, .factor = 2 };
	static const struct {
		struct outbox_policy policy;
		const char *want;
	} bad[] = {
		{ { .base = 0, .cap = S, .factor = 2 }, "base: 0 us" },
		{ { .base = -S, .cap = S, .factor = 2 }, "base: -1000000 us" },
		{ { .base = 2 * S, .cap = S, .factor = 2 }, "cap: is below the base; write 2s" },
		{ { .base = S, .cap = S, .factor = 0.5 }, "factor: 0.5" },
		{ { .base = S, .cap = S, .factor = __builtin_nan("") }, "factor: " },
		{ { .base = S, .cap = S, .factor = __builtin_inf() }, "factor: inf" },
		{ { .base = S, .cap = S, .factor = 1, .jitter_percent = 101 }, "jitter: 101" },
		{ { .base = S, .cap = S, .factor = 1, .jitter_percent = -1 }, "jitter: -1" },
		{ { .base = S, .cap = S, .factor = 1, .max_attempts = -1 }, "max_attempts: -1" },
		{ { .base = S, .cap = S, .factor = 1, .budget = -1 }, "budget: -1" },
		{ { .base = S, .cap = S, .factor = 1, .retain_failed = -1 }, "retain_failed: -1" },
		{ { .n_schedule = 33 }, "schedule: 33 delays, at most 32" },
		{ { .n_schedule = 2, .schedule = { S, -S } }, "schedule: delay 2 is -1000000 us" },
		{ { .n_schedule = 1, .schedule = { S }, .base = S }, "schedule and base" },
	};
	size_t i;

	(void)state;
	assert_ok(retry_check(&good, err));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(retry_check(&bad[i].policy, err), OUTBOX_ECONFIG, bad[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_have_the_documented_delays),
		cmocka_unit_test(presets_fix_what_their_systems_fix),
		cmocka_unit_test(jitter_keeps_its_bounds_and_uses_them),
		cmocka_unit_test(growth_stops_at_the_cap_whatever_the_numbers),
		cmocka_unit_test(the_budget_counts_from_the_first_failure),
		cmocka_unit_test(attempts_count_tries_in_all),
		cmocka_unit_test(wrong_policies_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
