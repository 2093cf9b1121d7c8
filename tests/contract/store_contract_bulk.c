/* SPDX-License-Identifier: Apache-2.0 */

/* Actions on more deliveries than one call takes: counted whole, done in steps, resumed. */

#include "store_world.h"

#define FAILED ((size_t)1205) /* more than a page, not a multiple of a step */

static void fail_many(struct store_world *w, const char *target)
{
	struct worker *k = worker_start(w, "k", target, 0);

	while (worker_advance(k, MANY) > 0)
		for (size_t i = 0; i < k->claim.count; i++)
			settle_fail(k, i);
}

static struct outbox_acted step(struct store_world *w, const struct outbox_filter *filter,
				bool dry_run)
{
	struct outbox_act act = {
		.action = OUTBOX_REQUEUE, .actor = "anna", .dry_run = dry_run, .filter = filter
	};

	return world_act_filter(w, &act);
}

static void a_dry_run_counts_all(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_acted acted;

	world_target(w, "a");
	world_target(w, "b");
	world_publish_many(w, FAILED);
	world_publish_type(w, "other");
	fail_many(w, "a");
	fail_many(w, "b");
	filter.state = OUTBOX_FAILED;
	filter.limit = 10;
	acted = step(w, &filter, true);
	assert_int_equal(acted.done, FAILED + 1);
	assert_false(acted.more);
	assert_true(acted.oldest > 0);
	filter.target = NULL;
	assert_int_equal(step(w, &filter, true).done, 2 * (FAILED + 1));
	filter.type = "o*r";
	assert_int_equal(step(w, &filter, true).done, 2);
	filter.type = NULL;
	filter.changed_before = world_now(w) - SEC;
	assert_int_equal(step(w, &filter, true).done, 0);
	assert_int_equal(world_stats(w, "a")->failed, (int64_t)FAILED + 1);
}

/* New messages have no row of their own, and are counted all the same. */
static void a_dry_run_counts_new_ones(struct store_world *w)
{
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_act act = { .action = OUTBOX_DISCARD,
				  .actor = "anna",
				  .reason = "x",
				  .dry_run = true,
				  .filter = &filter };
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, FAILED);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 10), 10);
	for (size_t i = 0; i < 5; i++)
		settle_fail(k, i);
	worker_advance(k, 0);
	assert_int_equal(world_act_filter(w, &act).done, FAILED - 5);
	filter.why = OUTBOX_NEW;
	assert_int_equal(world_act_filter(w, &act).done, FAILED - 10);
	filter.why = 0;
	filter.state = OUTBOX_FAILED;
	assert_int_equal(world_act_filter(w, &act).done, 5);
}

static void steps_go_on_where_they_ended(struct store_world *w)
{
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_acted acted;
	char cursor[sizeof(acted.cursor)];
	size_t done = 0;
	int steps = 0;

	world_target(w, "a");
	world_target(w, "b");
	world_publish_many(w, FAILED);
	fail_many(w, "a");
	fail_many(w, "b");
	filter.state = OUTBOX_FAILED;
	filter.limit = 500;
	do {
		acted = step(w, &filter, false);
		done += acted.done;
		steps++;
		assert_true(acted.done <= 500);
		assert_int_equal(acted.more, acted.cursor[0] != '\0');
		memcpy(cursor, acted.cursor, sizeof(cursor));
		/* interrupted once: without the cursor nothing is done twice */
		filter.cursor = steps == 2 ? NULL : cursor;
	} while (acted.more);
	assert_int_equal(done, 2 * FAILED);
	assert_int_equal(steps, 5);
	filter.cursor = NULL;
	assert_int_equal(step(w, &filter, true).done, 0);
	assert_int_equal(world_stats(w, "a")->waiting, (int64_t)FAILED);
	assert_int_equal(world_stats(w, "b")->waiting, (int64_t)FAILED);
}

#define CASE(name)                \
	{                         \
#name, name, 1, 0 \
	}
const struct store_case bulk_cases[] = {
	CASE(a_dry_run_counts_all),
	CASE(a_dry_run_counts_new_ones),
	CASE(steps_go_on_where_they_ended),
	{ NULL, NULL, 0, 0 },
};
