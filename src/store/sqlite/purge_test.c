/* SPDX-License-Identifier: Apache-2.0 */
/* Retention in a log where something always stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "store/sqlite/place_test.h"
#include "store/store.h"

static struct outbox_purged purge(struct place *p, struct outbox_purge what)
{
	struct outbox_purged purged, total = { 0 };

	do {
		assert_int_equal(sqlite_purge(p->store, &what, &purged, &p->err), OUTBOX_OK);
		total.messages += purged.messages;
		total.failed += purged.failed;
		total.receipts += purged.receipts;
		total.detours += purged.detours;
	} while (purged.more);
	return total;
}

static void fail_next(struct place *p, const char *target)
{
	struct outbox_head head = place_take(p, target);
	struct outbox_claim claim = { .n = head.n, .fence_token = head.fence_token };

	assert_int_equal(place_advance(p, target, &claim, 0, 1), OUTBOX_OK);
	assert_int_equal(claim.count, 1);
	assert_int_equal(place_advance(p, target, &claim, OUTBOX_OUT_FAILED, 0), OUTBOX_OK);
}

static int64_t receipts(struct place *p, const char *target)
{
	char sql[128];

	sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM outbox_receipt WHERE target = %Q",
			 target);
	return place_number(p, sql);
}

/* A failed message that is kept for ever must not keep all receipts after it. */
static void a_kept_failure_does_not_keep_receipts(void **state)
{
	struct place *p = *state;
	struct outbox_filter filter = { .struct_size = sizeof(filter) };
	struct outbox_page page;

	place_target(p, "other", false);
	place_publish(p, "a", "k", "poison");
	fail_next(p, "events");
	place_drain(p, "other");
	for (int i = 0; i < 20; i++) {
		frozen_clock_step(&p->clock, OUTBOX_MINUTES);
		place_publish(p, "a", NULL, NULL);
		place_drain(p, "events");
		place_drain(p, "other");
	}
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	purge(p, (struct outbox_purge){ .delivered_before = sqlite_now(sqlite_of(p->store)) });
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 1);
	assert_int_equal(receipts(p, "events"), 1);
	assert_int_equal(receipts(p, "other"), 1);
	/* It is still told what became of it on both. */
	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.rows[0].state, OUTBOX_FAILED);
	assert_int_equal(page.rows[1].state, OUTBOX_DELIVERED);
	assert_int_equal(page.rows[1].last_status_at, TEST_START);
	assert_string_equal(page.rows[1].owner, "me");
}

/* Behind another target, a message must not lose the receipt that tells of its delivery. */
static void a_message_that_waits_keeps_its_receipts(void **state)
{
	struct place *p = *state;
	struct outbox_filter filter = { .struct_size = sizeof(filter) };
	struct outbox_page page;

	place_target(p, "other", false);
	place_publish(p, "a", NULL, NULL);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_drain(p, "events");
	purge(p, (struct outbox_purge){ .delivered_before = sqlite_now(sqlite_of(p->store)) });
	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.rows[0].state, OUTBOX_DELIVERED);
	assert_int_equal(page.rows[0].last_status_at, TEST_START);
	assert_int_equal(page.rows[1].state, OUTBOX_PENDING);
}

/* What a target never got does not become its delivery when its receipts are gone. */
static void what_was_not_routed_stays_so(void **state)
{
	static const char *const globs[] = { "order.*" };
	struct place *p = *state;
	struct outbox_target_def def = { .name = "some", .route = { .types = globs, .n_types = 1 } };
	struct outbox_filter filter = { .struct_size = sizeof(filter), .target = "some" };
	struct outbox_page page;

	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	place_publish(p, "user.made", NULL, NULL);
	place_publish(p, "order.placed", NULL, NULL);
	fail_next(p, "events");
	place_drain(p, "events");
	place_drain(p, "some");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish(p, "order.placed", NULL, NULL);
	place_drain(p, "some");
	purge(p, (struct outbox_purge){ .delivered_before = sqlite_now(sqlite_of(p->store)) });
	def.route.n_types = 0;
	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	place_sql(p, "UPDATE outbox_receipt SET route_version = 2 WHERE target = 'some'");
	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(page.count, 1);
	assert_string_equal(page.rows[0].type, "order.placed");
	assert_int_equal(place_number(p,
				      "SELECT count(*) FROM outbox_delivery WHERE target = 'some'"),
			 1);
}

/* A claim that is never settled went past it; the next one, by another routing, does not. */
static void what_an_open_claim_went_past_stays(void **state)
{
	static const char *const globs[] = { "order.*", "user.*" };
	struct place *p = *state;
	struct outbox_target_def def = { .name = "some", .route = { .types = globs, .n_types = 1 } };
	struct outbox_claim claim = { 0 };
	struct outbox_head head;

	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	place_publish(p, "user.made", NULL, "passed");
	place_publish(p, "order.placed", NULL, NULL);
	place_drain(p, "events");
	head = place_take(p, "some");
	claim.n = head.n;
	claim.fence_token = head.fence_token;
	assert_int_equal(place_advance(p, "some", &claim, 0, 1), OUTBOX_OK);
	assert_int_equal(claim.count, 1);
	def.route.types = &globs[1];
	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	purge(p, (struct outbox_purge){ .delivered_before = sqlite_now(sqlite_of(p->store)) });
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE id = 'passed'"),
			 1);
}

static void failures_have_their_own_time(void **state)
{
	struct place *p = *state;
	outbox_time now;
	struct outbox_purged purged;

	place_publish(p, "a", "k", "one");
	fail_next(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish(p, "a", "k", "two");
	fail_next(p, "events");
	now = sqlite_now(sqlite_of(p->store));
	purged = purge(p, (struct outbox_purge){ .delivered_before = now + 1 });
	assert_int_equal(purged.messages, 0);
	purged = purge(p, (struct outbox_purge){ .failed_before = now });
	assert_int_equal(purged.messages, 1);
	assert_int_equal(purged.failed, 1);
	assert_int_equal(purged.detours, 1);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE id = 'two'"), 1);
}

/* With hold, what is parked behind a failure that retention removes goes on. */
static void purging_a_held_failure_lets_its_key_go_on(void **state)
{
	struct place *p = *state;
	struct outbox_head head;
	struct outbox_claim claim;

	place_target(p, "events", true);
	place_publish(p, "a", "k", "one");
	place_publish(p, "a", "k", "two");
	fail_next(p, "events");
	head = place_take(p, "events");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_OK);
	assert_int_equal(claim.count, 1);
	assert_true(claim.items[0].blocked);
	assert_int_equal(place_advance(p, "events", &claim, OUTBOX_OUT_PARKED, 10), OUTBOX_OK);
	assert_int_equal(claim.count, 0);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	purge(p, (struct outbox_purge){ .failed_before = sqlite_now(sqlite_of(p->store)) });
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_OK);
	assert_int_equal(claim.count, 1);
	assert_false(claim.items[0].blocked);
}

static void the_batches_of_a_purge_end(void **state)
{
	struct place *p = *state;
	struct outbox_purge what = { .limit = 7 };
	struct outbox_purged purged;
	int64_t total = 0;
	int calls = 0;

	for (int i = 0; i < 30; i++)
		place_publish(p, "a", NULL, NULL);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_SECONDS);
	what.delivered_before = sqlite_now(sqlite_of(p->store));
	do {
		assert_int_equal(sqlite_purge(p->store, &what, &purged, &p->err), OUTBOX_OK);
		assert_true(purged.messages <= 7);
		total += purged.messages;
		calls++;
	} while (purged.more && calls < 10);
	assert_int_equal(total, 30);
	assert_int_equal(calls, 5);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_meta WHERE name = 'janitor'"),
			 0);
	/* The log continues after what is gone. */
	assert_int_equal(place_publish(p, "a", NULL, NULL), 31);
	assert_int_equal(place_drain(p, "events"), 1);
}

static void truncate_starts_anew(void **state)
{
	struct place *p = *state;
	struct outbox_head head;
	struct outbox_claim claim;

	for (int i = 0; i < 5; i++)
		place_publish(p, "a", NULL, NULL);
	head = place_take(p, "events");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	assert_int_equal(place_advance(p, "events", &claim, 0, 3), OUTBOX_OK);
	assert_int_equal(sqlite_truncate(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(place_advance(p, "events", &claim, OUTBOX_OUT_DELIVERED, 3), OUTBOX_EFENCED);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 0);
	assert_int_equal(place_publish(p, "a", NULL, NULL), 6);
	assert_int_equal(place_drain(p, "events"), 1);
	assert_int_equal(place_number(p, "SELECT delivered FROM outbox_backlog"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kept_failure_does_not_keep_receipts,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_message_that_waits_keeps_its_receipts,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(what_was_not_routed_stays_so, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(what_an_open_claim_went_past_stays,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(failures_have_their_own_time, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(purging_a_held_failure_lets_its_key_go_on,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(the_batches_of_a_purge_end, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(truncate_starts_anew, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
