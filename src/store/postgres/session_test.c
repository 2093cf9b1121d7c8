/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a relay's session is like on the server. A peer that is gone in the middle of a transaction keeps its
 * lane locked until the server notices, which takes hours unless it is told to look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

#include <stdlib.h>

#define NOTICED 60 /* seconds */

/* As the session's own socket has it, 0 where there is no socket to ask. */
static long setting(struct outbox_store *store, const char *name)
{
	const char *const values[] = { name };
	PGresult *result =
		PQexecParams(pg_of(store)->conn, "SELECT setting FROM pg_settings WHERE name = $1",
			     1, NULL, values, NULL, NULL, 0);
	long value;

	assert_int_equal(PQntuples(result), 1);
	value = strtol(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return value;
}

static void expect_notice(struct outbox_store *store)
{
	long idle = setting(store, "tcp_keepalives_idle");
	long interval = setting(store, "tcp_keepalives_interval");
	long count = setting(store, "tcp_keepalives_count");
	long unsent =
		setting(store,
			"tcp_user_timeout"); /* ms; keepalives wait while an answer is on its way */

	assert_true(idle > 0 && interval > 0 && count > 0 && unsent > 0);
	assert_in_range(idle + interval * count, 1, NOTICED);
	assert_in_range(unsent / 1000, 1, NOTICED);
}

/* Whatever a relay does first: the server was told before a lock was taken. */
static void the_server_notices_a_dead_peer(void **state)
{
	struct place *p = *state;
	struct outbox_store *taker = place_open(p, p->url), *keeper = place_open(p, p->url);
	struct outbox_lease_request request = {
		.target = "events", .owner = "me", .duration = OUTBOX_SECONDS, .route_version = 1
	};
	struct outbox_lease lease;
	struct outbox_head head;

	assert_int_equal(pg_take_over(taker, "events", 0, "me", 1, &head, &p->err), OUTBOX_OK);
	expect_notice(taker);
	assert_int_equal(pg_lease(keeper, &request, &lease, &p->err), OUTBOX_OK);
	expect_notice(keeper);
	store_close(taker);
	store_close(keeper);
}

static void and_a_dead_sleeper(void **state)
{
	struct place *p = *state;
	bool again;
	int fd;

	place_sql(p, "SELECT outbox_doorbell(true)");
	assert_int_equal(pg_listen(p->store, &fd, &again, &p->err), OUTBOX_OK);
	assert_false(again);
	expect_notice(p->store);
}

/* It gives up before its client does, who would leave it waiting and come back with another. */
static void nobody_waits_for_a_lane_for_ever(void **state)
{
	struct place *p = *state;

	assert_int_equal(
		place_number(p,
			     "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
			     " AND proname IN ('outbox_take', 'outbox_settle_and_claim', 'outbox_lease')"
			     " AND 'lock_timeout=10s' = ANY (proconfig)"),
		3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_server_notices_a_dead_peer),
		CASE(and_a_dead_sleeper),
		CASE(nobody_waits_for_a_lane_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
