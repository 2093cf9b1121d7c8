/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the cases to a fixture and runs them, each with a new place. */

#include "transport_case.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES_MAX 64
#define SKIPPED 77

struct binding {
	const struct transport_fixture *fixture;
	const struct contract_case *contract_case;
};

static void run_case(void **state)
{
	const struct binding *binding = *state;
	const struct transport_fixture *fixture = binding->fixture;
	struct transport_case c = { .fixture = fixture };

	c.arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(c.arena);
	c.place = fixture->setup();
	case_new_batch(&c);
	binding->contract_case->run(&c);
	fixture->teardown(c.place);
	outbox_arena_free(c.arena);
}

static size_t bind(const struct transport_fixture *fixture, const struct contract_case *cases,
		   struct CMUnitTest *tests, struct binding *bindings, size_t n)
{
	for (; cases->name; cases++) {
		/* Not a skip: a skip is a test that could run on a better equipped machine. */
		if (cases->needs & fixture->flags) {
			printf("%s: does not apply: %s\n", fixture->name, cases->name);
			continue;
		}
		if (n == CASES_MAX)
			abort();
		bindings[n] = (struct binding){ fixture, cases };
		tests[n] = (struct CMUnitTest){ .name = cases->name, .test_func = run_case };
		tests[n].initial_state = &bindings[n];
		n++;
	}
	return n;
}

int transport_contract_run(const struct transport_fixture *fixture)
{
	struct CMUnitTest tests[CASES_MAX] = { { 0 } };
	struct binding bindings[CASES_MAX];
	const char *unavailable = fixture->unavailable ? fixture->unavailable() : NULL;
	size_t n = 0;

	if (unavailable) {
		printf("%s: skipped: %s\n", fixture->name, unavailable);
		return SKIPPED;
	}
	n = bind(fixture, open_cases, tests, bindings, n);
	n = bind(fixture, publish_cases, tests, bindings, n);
	n = bind(fixture, outage_cases, tests, bindings, n);
	return _cmocka_run_group_tests(fixture->name, tests, n, NULL, NULL);
}
