/* SPDX-License-Identifier: Apache-2.0 */
/* Retention in a log where something always stays, and who waits for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

#include <pthread.h>

static int64_t receipts(struct place *p, const char *target)
{
	return place_number(p, "SELECT count(*) FROM outbox_receipt WHERE target = '%s'", target);
}

/* A failed message that is kept for ever must not keep all receipts after it. */
static void a_kept_failure_does_not_keep_receipts(void **state)
{
	struct place *p = *state;
	struct outbox_filter filter = { .struct_size = sizeof(filter) };
	struct outbox_page page;

	place_target(p, "other");
	place_publish(p, 1);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 1);
	place_drain(p, "other");
	for (int i = 0; i < 20; i++) {
		frozen_clock_step(&p->clock, OUTBOX_MINUTES);
		place_publish(p, 1);
		place_drain(p, "events");
		place_drain(p, "other");
	}
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 20);
	place_purge(p, OUTBOX_HOURS);
	assert_true(receipts(p, "events") <= 2);
	assert_true(receipts(p, "other") <= 2);
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
	struct outbox_filter filter = { .struct_size = sizeof(filter), .target = "events" };
	struct outbox_page page;

	place_target(p, "other");
	place_publish(p, 1);
	place_drain(p, "events");
	for (int i = 0; i < 10; i++) {
		frozen_clock_step(&p->clock, OUTBOX_DAYS);
		place_drain(p, "events");
	}
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 0);
	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].state, OUTBOX_DELIVERED);
	assert_int_equal(page.rows[0].last_status_at, TEST_START);
}

/* Messages that stay are passed once in a purge, not by each of its calls. */
static void a_purge_comes_to_an_end(void **state)
{
	struct place *p = *state;
	struct outbox_purge what = { .limit = 10 };
	struct outbox_purged purged;
	int64_t total = 0;
	int calls = 0;

	place_sql(p,
		  "CREATE OR REPLACE FUNCTION outbox_purge_scan() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 20::bigint'");
	place_publish(p, 95);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 70);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	what.delivered_before = p->clock.wall;
	do {
		assert_int_equal(pg_purge(p->store, &what, &purged, &p->err), OUTBOX_OK);
		total += purged.messages;
	} while (purged.more && ++calls < 20);
	assert_int_equal(total, 25);
	assert_true(calls <= 7);
}

/* ---- who waits for whom -------------------------------------------------------------------- */

struct helper {
	struct place *p;
	struct outbox_store *store;
	pthread_t thread;
	struct outbox_acted acted;
	struct outbox_purged purged;
	int status;
};

static void *requeue(void *argument)
{
	struct helper *h = argument;
	struct outbox_filter filter = { .struct_size = sizeof(filter), .target = "events" };
	struct outbox_act act = { .action = OUTBOX_REQUEUE, .filter = &filter };

	h->status = store_act(h->store, &act, &h->acted, NULL);
	return NULL;
}

static void *purge_failed(void *argument)
{
	struct helper *h = argument;
	struct outbox_purge what = { .failed_before = h->p->clock.wall };

	h->status = pg_purge(h->store, &what, &h->purged, NULL);
	return NULL;
}

static void helper_start(struct helper *h, struct place *p, void *(*run)(void *))
{
	h->p = p;
	h->store = place_open(p, p->url);
	assert_int_equal(pthread_create(&h->thread, NULL, run, h), 0);
}

static void helper_end(struct helper *h)
{
	pthread_join(h->thread, NULL);
	store_close(h->store);
	assert_int_equal(h->status, OUTBOX_OK);
}

static void lock_lane(struct place *p)
{
	place_sql(p, "BEGIN");
	place_sql(p, "SELECT outbox_lock_lane('events', 0)");
}

static void wait_for_waiting(struct place *p, int64_t n)
{
	for (int i = 0; i < 600; i++) {
		if (place_number(
			    p,
			    "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('tuple', 'transactionid')") >=
		    n)
			return;
		place_sql(p, "SELECT pg_sleep(0.05)");
	}
	fail_msg("nobody waits for the lane");
}

/* Both have chosen it, and wait for the lane: the second finds it done. */
static void of_two_that_chose_the_same_one_wins(void **state)
{
	struct helper one = { 0 }, two = { 0 };
	struct place *p = *state;

	place_publish(p, 1);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 1);
	lock_lane(p);
	helper_start(&one, p, requeue);
	helper_start(&two, p, requeue);
	wait_for_waiting(p, 2);
	place_sql(p, "COMMIT");
	helper_end(&one);
	helper_end(&two);
	assert_int_equal(one.acted.done + two.acted.done, 1);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_audit"), 1);
}

/* Retention has chosen a failed one, and an operator requeues it meanwhile: it stays. */
static void a_requeue_saves_from_retention(void **state)
{
	struct helper janitor = { 0 };
	struct place *p = *state;

	place_publish(p, 1);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 1);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	lock_lane(p);
	helper_start(&janitor, p, purge_failed);
	wait_for_waiting(p, 1);
	place_sql(p,
		  "UPDATE outbox_detour SET state = 'pending', why = 'retry', next_attempt_at = now(), last_status_at = now()");
	place_sql(p, "COMMIT");
	helper_end(&janitor);
	assert_int_equal(janitor.purged.messages, 0);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 1);
}

/* Of two janitors one works; an operator waits for it. */
static void a_second_janitor_gives_way(void **state)
{
	struct place *p = *state;

	place_publish(p, 5);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_sql(p, "BEGIN");
	place_sql(p, "SELECT outbox_janitor_lock(true)");
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 0);
	place_sql(p, "COMMIT");
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_kept_failure_does_not_keep_receipts),
		CASE(a_message_that_waits_keeps_its_receipts),
		CASE(a_purge_comes_to_an_end),
		CASE(of_two_that_chose_the_same_one_wins),
		CASE(a_requeue_saves_from_retention),
		CASE(a_second_janitor_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
