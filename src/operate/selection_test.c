/* SPDX-License-Identifier: Apache-2.0 */
/* Which deliveries are meant, in whatever way the caller names its fields. */
#include "base/cleanup.h"
#include "base/unit_test.h"
#include "operate/selection.h"

static void words_become_a_filter(void **state)
{
	struct outbox_filter filter = { 0 };

	(void)state;
	assert_ok(selection_filter(&(struct selection){ .state = "failed", .type = "order.*" },
				   NAMED_AS_FIELD, &filter, err));
	assert_int_equal(filter.state, OUTBOX_FAILED);
	assert_int_equal(filter.why, 0);
	assert_string_equal(filter.type, "order.*");
	/* as a table shows a pending delivery's state */
	assert_ok(selection_filter(&(struct selection){ .state = "parked" }, NAMED_AS_FIELD,
				   &filter, err));
	assert_int_equal(filter.state, OUTBOX_PENDING);
	assert_int_equal(filter.why, OUTBOX_PARKED);
	assert_ok(selection_filter(&(struct selection){ .why = "retry" }, NAMED_AS_FIELD, &filter,
				   err));
	assert_int_equal(filter.state, OUTBOX_PENDING);
	assert_int_equal(filter.why, OUTBOX_WAITING);
}

static void wrong_words_are_named_as_the_caller_writes_them(void **state)
{
	static const struct {
		struct selection given;
		enum naming naming;
		const char *text;
	} cases[] = {
		{ { .state = "fialed" },
		  NAMED_AS_OPTION,
		  "--state: \"fialed\" is not valid; did you mean failed?" },
		{ { .state = "fialed" },
		  NAMED_AS_FIELD,
		  "state: \"fialed\" is not valid; did you mean failed?" },
		{ { .state = "xyzzy" },
		  NAMED_AS_FIELD,
		  "use pending, sending, delivered, failed or discarded, or a reason why it is pending: new, retry, deferred, "
		  "parked or paused" },
		{ { .why = "xyzzy" },
		  NAMED_AS_OPTION,
		  "--why: \"xyzzy\" is not valid; use new, retry, deferred, parked or paused" },
		{ { .state = "failed", .why = "retry" },
		  NAMED_AS_OPTION,
		  "--why applies only to pending deliveries; it cannot be combined with --state failed" },
	};
	struct outbox_filter filter;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_fails(selection_filter(&cases[i].given, cases[i].naming, &filter, err),
			     OUTBOX_EINVAL, cases[i].text);
}

static void an_action_fits_what_is_selected(void **state)
{
	const char *id = "a";
	struct outbox_filter none = { 0 }, target = { .target = "x" },
			     ids = { .ids = &id, .n_ids = 1 },
			     both = { .ids = &id, .n_ids = 1, .type = "t" },
			     delivered = { .state = OUTBOX_DELIVERED },
			     why = { .why = OUTBOX_PARKED }, many = { .ids = &id, .n_ids = 1001 };

	(void)state;
	assert_ok(selection_check(OUTBOX_DISCARD, NAMED_AS_FIELD, &ids, err));
	assert_ok(selection_check(OUTBOX_REQUEUE, NAMED_AS_FIELD, &target, err));
	assert_int_equal(target.state, OUTBOX_FAILED);
	target.state = 0;
	assert_ok(selection_check(OUTBOX_DEFER, NAMED_AS_FIELD, &target, err));
	assert_int_equal(target.state, OUTBOX_PENDING);
	target.state = 0;
	assert_fails(selection_check(OUTBOX_DISCARD, NAMED_AS_OPTION, &target, err), OUTBOX_EINVAL,
		     "--state is missing: say which deliveries to discard: pending or failed");
	assert_ok(selection_check(OUTBOX_DISCARD, NAMED_AS_FIELD, &why, err));
	assert_int_equal(why.state, OUTBOX_PENDING);
	assert_fails(selection_check(OUTBOX_REQUEUE, NAMED_AS_FIELD, &why, err), OUTBOX_EINVAL,
		     "state: only failed deliveries can be requeued");
	assert_fails(selection_check(OUTBOX_DISCARD, NAMED_AS_FIELD, &delivered, err),
		     OUTBOX_EINVAL, "state: only pending or failed deliveries can be discarded");
	assert_fails(selection_check(OUTBOX_DEFER, NAMED_AS_OPTION, &none, err), OUTBOX_EINVAL,
		     "nothing is selected: give ids, or filter by --state, --target, --type, --key");
	assert_fails(selection_check(OUTBOX_DEFER, NAMED_AS_FIELD, &both, err), OUTBOX_EINVAL,
		     "not both (only target can be combined with ids)");
	assert_fails(selection_check(OUTBOX_DEFER, NAMED_AS_FIELD, &many, err), OUTBOX_EINVAL,
		     "1001 are too many");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_become_a_filter),
		cmocka_unit_test(wrong_words_are_named_as_the_caller_writes_them),
		cmocka_unit_test(an_action_fits_what_is_selected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
