/* SPDX-License-Identifier: Apache-2.0 */
/* Acting page by page, on a store that says what it was asked. */
#include "base/unit_test.h"
#include "operate/act.h"

#include <stdio.h>

struct scripted_store {
	struct outbox_store base;
	size_t calls, fails_at, busy; /* busy: so often before it does anything */
	char cursors[4][40];          /* as they came */
};

/* Three pages of two each. */
static int act_scripted(struct outbox_store *store, const struct outbox_act *act,
			struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct scripted_store *s = (struct scripted_store *)store;
	size_t call = s->calls;

	if (s->busy > 0) {
		s->busy--;
		return outbox_fail(err, OUTBOX_EBUSY, "the database is locked");
	}
	s->calls++;
	snprintf(s->cursors[call], sizeof(s->cursors[call]), "%s",
		 act->filter->cursor ? act->filter->cursor : "");
	if (s->calls == s->fails_at)
		return outbox_fail(err, OUTBOX_ECONN, "the server is away");
	*ret_acted = (struct outbox_acted){ .done = 2, .more = call < 2, .oldest = 10 - (int)call };
	if (ret_acted->more)
		snprintf(ret_acted->cursor, sizeof(ret_acted->cursor), "page %zu", call);
	return OUTBOX_OK;
}

static const struct outbox_store_ops ops = { .contract = OUTBOX_STORE_CONTRACT,
					     .name = "scripted",
					     .operate = { .act = act_scripted } };

static int requeue_all(struct scripted_store *store, const struct bulk *bulk,
		       struct outbox_acted *acted, struct outbox_error *err)
{
	const struct outbox_filter filter = { .struct_size = sizeof(filter),
					      .state = OUTBOX_FAILED,
					      .limit = 2 };
	const struct outbox_act act = { .action = OUTBOX_REQUEUE, .actor = "ada", .filter = &filter };

	store->base.ops = &ops;
	return act_all(&store->base, &act, bulk, acted, err);
}

static void pages_follow_each_other(void **state)
{
	struct scripted_store store = { 0 };
	struct outbox_acted acted;

	(void)state;
	assert_ok(requeue_all(&store, NULL, &acted, err));
	assert_int_equal(store.calls, 3);
	assert_string_equal(store.cursors[0], "");
	assert_string_equal(store.cursors[1], "page 0");
	assert_string_equal(store.cursors[2], "page 1");
	assert_int_equal(acted.done, 6);
	assert_int_equal(acted.oldest, 8);
	assert_false(acted.more);
}

static bool end_here(void *context, int64_t done, outbox_time least)
{
	(void)least;
	*(int64_t *)context = done;
	return done >= 4;
}

static void it_ends_between_two_pages(void **state)
{
	struct scripted_store store = { 0 };
	struct outbox_acted acted;
	int64_t told = 0;

	(void)state;
	assert_ok(requeue_all(&store, &(struct bulk){ .rest = end_here, .context = &told }, &acted,
			      err));
	assert_int_equal(told, 4);
	assert_int_equal(store.calls, 2);
	assert_true(acted.more);
}

static void a_failure_keeps_what_was_done(void **state)
{
	struct scripted_store store = { .fails_at = 2 };
	struct outbox_acted acted;

	(void)state;
	assert_fails(
		requeue_all(&store, NULL, &acted, err), OUTBOX_ECONN,
		"after 2 deliveries, which are done; repeat the command for the rest: the server is away");
	assert_int_equal(acted.done, 2);
	/* the status is the store's for those, too, who do not want to know more */
	store.calls = 0;
	assert_int_equal(requeue_all(&store, NULL, &acted, NULL), OUTBOX_ECONN);
}

static void an_error_that_passed_is_none(void **state)
{
	struct scripted_store store = { .busy = 1 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_acted acted;

	(void)state;
	assert_int_equal(requeue_all(&store, NULL, &acted, &err), OUTBOX_OK);
	assert_int_equal(err.status, OUTBOX_OK);
	assert_string_equal(err.message, "");
	store = (struct scripted_store){ .busy = 1000 };
	assert_int_equal(requeue_all(&store, NULL, &acted, &err), OUTBOX_EBUSY);
	assert_string_equal(err.message, "the database is locked");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_follow_each_other),
		cmocka_unit_test(it_ends_between_two_pages),
		cmocka_unit_test(a_failure_keeps_what_was_done),
		cmocka_unit_test(an_error_that_passed_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
