/* SPDX-License-Identifier: Apache-2.0 */
/* Retention beside targets that do not get every message: row by row, by partitions, and under late commits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>

static int64_t messages(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_message");
}

static void a_target_without_an_interest_keeps_nothing(void **state)
{
	struct place *p = *state;

	place_target_of(p, "part", "zzz");
	place_publish_now(p, "t", 3);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 3);
}

static void start_now(struct place *p, const char *name)
{
	struct outbox_target_def def = { .name = name, .start = OUTBOX_START_NOW };

	place_sql(p, "SELECT outbox_target_drop('events', 'anna', NULL, NULL)");
	if (pg_target_put(p->store, &def, NULL, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
}

/* What lies before its start nobody has delivered: it has its own age. */
static void a_start_removes_nothing_before_its_time(void **state)
{
	struct place *p = *state;

	place_publish_now(p, "t", 3);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish_now(p, "t", 2);
	start_now(p, "late");
	place_publish_now(p, "t", 1);
	assert_int_equal(place_drain(p, "late"), 1);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 3);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 3);
}

static void *put_wider(void *argument)
{
	place_target_of(&(struct place){ .store = argument }, "part", "*");
	return NULL;
}

static void wait_for_waiting(struct place *p)
{
	for (int i = 0; i < 200; i++) {
		if (place_number(p, "SELECT count(*) FROM pg_locks"
				    " WHERE NOT granted AND locktype IN ('tuple', 'transactionid')"))
			return;
		place_sql(p, "SELECT pg_sleep(0.05)");
	}
	fail_msg("nobody waits for the janitor");
}

/* A purge goes by the routing that it has read: a new one comes when it is over. */
static void a_new_routing_waits_for_a_purge(void **state)
{
	struct place *p = *state;
	const char *type = "zzz";
	struct outbox_target_def same = { .name = "part",
					  .start = OUTBOX_START_OLDEST,
					  .route = { .types = &type, .n_types = 1 } };
	struct outbox_store *other = place_open(p, p->url), *hasty;
	pthread_t thread;
	int r;

	setenv("PGOPTIONS", "-c lock_timeout=100ms", 1);
	hasty = place_open(p, p->url);
	unsetenv("PGOPTIONS");
	place_target_of(p, "part", type);
	place_sql(p, "BEGIN");
	place_sql(p, "SELECT outbox_janitor_lock(true)");
	assert_int_equal(pthread_create(&thread, NULL, put_wider, other), 0);
	wait_for_waiting(p);
	r = pg_target_put(hasty, &same, NULL, &p->err);
	place_sql(p, "COMMIT");
	pthread_join(thread, NULL);
	store_close(hasty);
	store_close(other);
	assert_int_equal(r, OUTBOX_OK); /* the same as before waits for nobody */
	assert_int_equal(place_number(p, "SELECT version FROM outbox_target WHERE name = 'part'"), 2);
}

/* A low place in the log, committed late: the position of an idle lane says nothing about it. */
static void what_comes_late_is_judged_when_it_is_there(void **state)
{
	struct place *p = *state;
	PGconn *late = place_connect(p);

	place_target_of(p, "part", "late");
	PQclear(PQexec(late, "BEGIN; INSERT INTO outbox_message (type, payload, created_at)"
			     " VALUES ('late', '{}', to_timestamp(1700000000))"));
	place_publish_now(p, "t", 3);
	place_publish_now(p, "late", 1);
	place_drain(p, "events");
	assert_int_equal(place_drain(p, "part"), 1); /* it has moved past the open one */
	PQclear(PQexec(late, "COMMIT"));
	PQfinish(late);
	assert_int_equal(place_drain(p, "events"), 1);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 4);
	assert_int_equal(place_drain(p, "part"), 1);
}

/* ---- partitions ---------------------------------------------------------------------------- */

/* One that does not get them keeps none, whether anybody works for it or not. */
static void a_target_without_an_interest_keeps_none(void **state)
{
	struct place *p = *state;

	place_target_of(p, "part", "zzz");
	place_publish_now(p, "t", 25);
	place_drain(p, "events");
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 25); /* too young */
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 5);
	assert_int_equal(place_drain(p, "part"), 0);
}

/* What it was to get by an earlier routing and has not got, it does not get any more. */
static void a_target_that_lost_its_interest_keeps_none(void **state)
{
	struct place *p = *state;

	place_target_of(p, "part", "t");
	place_publish_now(p, "t", 25);
	place_drain(p, "events");
	place_target_of(p, "part", "zzz");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 5);
}

/* A partition has a million: what is not meant for a target is told by its routing, not by receipts. */
static void what_is_not_meant_for_it_costs_little(void **state)
{
	struct place *p = *state;

	place_target_of(p, "part", "zzz");
	place_publish_now(p, "t", 25);
	place_drain(p, "events");
	place_sql(p, "SET track_functions = 'all'");
	place_sql(p, "BEGIN");
	assert_int_equal(place_number(p, "SELECT outbox_is_settled_whole(1, 11, outbox_cuts('infinity'),"
					 " 'infinity')::integer"),
			 1);
	assert_int_equal(
		place_number(p, "SELECT coalesce(sum(calls), 0)::bigint FROM"
				" pg_stat_xact_user_functions WHERE funcname = 'outbox_concerns'"),
		0);
	place_sql(p, "COMMIT");
}

static void a_target_keeps_the_one_it_wants(void **state)
{
	struct place *p = *state;

	place_target_of(p, "part", "zzz");
	place_publish_now(p, "t", 14);
	place_publish_now(p, "zzz", 1);
	place_publish_now(p, "t", 10);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 15); /* the partition of the fifteenth, and what follows it */
	assert_int_equal(place_drain(p, "part"), 1);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 5);
}

/* Nobody's messages have their own age. */
static void nobodys_partition_goes_by_its_age(void **state)
{
	struct place *p = *state;

	place_sql(p, "SELECT outbox_target_drop('events', 'anna', NULL, NULL)");
	place_target_of(p, "part", "zzz");
	place_publish_now(p, "t", 5);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish_now(p, "t", 6);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 11);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 1);
}

static void a_start_drops_no_partition_before_its_time(void **state)
{
	struct place *p = *state;

	place_publish_now(p, "t", 25);
	start_now(p, "late");
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 25);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
#define PARTITIONED(name) \
	cmocka_unit_test_setup_teardown(name, place_setup_partitioned, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_target_without_an_interest_keeps_nothing),
		CASE(a_start_removes_nothing_before_its_time),
		CASE(a_new_routing_waits_for_a_purge),
		CASE(what_comes_late_is_judged_when_it_is_there),
		PARTITIONED(a_target_without_an_interest_keeps_none),
		PARTITIONED(a_target_that_lost_its_interest_keeps_none),
		PARTITIONED(what_is_not_meant_for_it_costs_little),
		PARTITIONED(a_target_keeps_the_one_it_wants),
		PARTITIONED(nobodys_partition_goes_by_its_age),
		PARTITIONED(a_start_drops_no_partition_before_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
