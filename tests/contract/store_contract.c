/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Binds the table of cases to a driver's fixture: each case becomes a test of its own, with a new
 * database and a clock at the same time, so the order of cases never matters.
 */

#include "store_world.h"

#include <stdio.h>
#include <stdlib.h>

#define TESTS_MAX 500

static const struct store_case *const groups[] = {
	schema_cases,   publish_cases,  fields_cases,  late_cases,   claim_cases,   lanes_cases,
	fence_cases,    caution_cases,  lease_cases,   detour_cases, order_cases,   parking_cases,
	act_cases,      operator_cases, list_cases,    look_cases,   stats_cases,   purge_cases,
	interest_cases, target_cases,   dead_cases,    start_cases,  bands_cases,   redact_cases,
	amend_cases,    keys_cases,     bulk_cases,    rules_cases,  waiting_cases, joined_cases,
	attempt_cases,  cancel_cases,   headers_cases, inbox_cases,
};

struct bound_case {
	const struct store_fixture *fixture;
	const struct store_case *c;
	struct store_world *world;
};

static void run_case(void **state)
{
	struct bound_case *bound = *state;

	bound->world = world_new(bound->fixture, bound->c->lanes);
	bound->c->run(bound->world);
}

/* Also after a failure, so that no file is left behind. */
static int end_case(void **state)
{
	struct bound_case *bound = *state;

	if (bound->world)
		world_free(bound->world);
	return 0;
}

static unsigned has_of(const struct store_fixture *fixture)
{
	const struct outbox_lane_ops *ops = &fixture->ops->lane;

	return fixture->has | (ops->look ? STORE_LOOKS : 0) |
	       (ops->settle_and_claim_lanes ? STORE_JOINS : 0) |
	       (fixture->cancel ? STORE_CANCELS : 0) | (fixture->accept ? STORE_INBOX : 0) |
	       (fixture->try_commit ? STORE_COMMIT_FAILS : 0);
}

int store_contract_run(const struct store_fixture *fixture, int argc, char **argv)
{
	static struct bound_case bound[TESTS_MAX];
	static struct CMUnitTest tests[TESTS_MAX];
	const char *why = fixture->unavailable ? fixture->unavailable() : NULL;
	unsigned has = has_of(fixture);
	size_t count = 0;

	if (why) {
		printf("skipped: %s\n", why);
		return 77;
	}
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (const struct store_case *c = groups[g]; c->name; c++) {
			/* What a driver has not got is no case of its contract. */
			if (c->needs & ~has || (argc > 1 && !strstr(c->name, argv[1])))
				continue;
			if (count == TESTS_MAX) {
				fputs("more cases than TESTS_MAX\n", stderr);
				return 1;
			}
			bound[count] = (struct bound_case){ fixture, c, NULL };
			tests[count] = (struct CMUnitTest){ .name = c->name,
							    .test_func = run_case,
							    .teardown_func = end_case,
							    .initial_state = &bound[count] };
			count++;
		}
	}
	if (!count) {
		printf("no case has \"%s\" in its name\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	return _cmocka_run_group_tests(fixture->name, tests, count, NULL, NULL);
}
