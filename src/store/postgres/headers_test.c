/* SPDX-License-Identifier: Apache-2.0 */
/* Routes by headers: rows that no library wrote, views, late commits, partitions, corrections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

#include <string.h>

/* more NULL: one header is all it asks for */
static void put_both(struct place *p, const char *name, const char *header, const char *more)
{
	const char *headers[] = { header, more };
	struct outbox_target_def def = { .name = name,
					 .start = OUTBOX_START_OLDEST,
					 .route = { .headers = headers, .n_headers = more ? 2 : 1 } };

	if (pg_target_put(p->store, &def, NULL, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
}

static void put(struct place *p, const char *name, const char *header)
{
	put_both(p, name, header, NULL);
}

static void publish(struct place *p, const char *headers)
{
	place_sql(p,
		  "INSERT INTO outbox_message (type, payload, headers, created_at)"
		  " VALUES ('t', '{}', '%s', to_timestamp(%lld))",
		  headers, (long long)(TEST_START / OUTBOX_SECONDS));
}

#define ACME "{\"tenant\":\"acme\"}"
#define OTHER "{\"tenant\":\"other\"}"

static int64_t listed(struct place *p, const char *target, const char *state)
{
	return place_number(p,
			    "SELECT count(*) FROM outbox_delivery WHERE target = '%s' AND state = '%s'",
			    target, state);
}

/* A row that is an error to read must not stop the lane, or the views. */
static void headers_that_cannot_be_read_fit_nothing(void **state)
{
	static const char *const odd[] = {
		"{\"tenant\":\"acme\",\"x\":\"\\u0000\"}",
		"{\"tenant\":\"acme\",\"x\":\"\\ud800\"}",
		"{\"tenant\":[\"acme\"]}",
		"{\"tenant\":null}",
		"{}",
		"{\"x\":1e999999999,\"tenants\":\"acme\"}",
		"{\"tenant\":\"Acme\"}",
		"{\"tenant\":\"\"}",
	};
	struct place *p = *state;

	put(p, "part", "tenant=acme");
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		publish(p, odd[i]);
	publish(p, "{\"x\":1e999999999,\"Tenant\":\"acm\\u0065\"}");
	assert_int_equal(listed(p, "part", "pending"), 1);
	assert_int_equal(place_drain(p, "part"), 1);
	assert_int_equal(listed(p, "part", "delivered"), 1);
	put(p, "numbers", "tenant=7*");
	publish(p, "{\"tenant\":70}");
	assert_int_equal(place_drain(p, "numbers"), 1);
	put(p, "any", "tenant=*");
	assert_int_equal(place_drain(p, "any"), 5); /* among them the list, which no library takes */
}

static void views_go_by_them(void **state)
{
	struct place *p = *state;

	put(p, "part", "tenant=acme");
	put_both(p, "both", "tenant=acme", "region=*");
	publish(p, ACME);
	publish(p, OTHER);
	publish(p, ACME);
	assert_int_equal(listed(p, "part", "pending"), 2);
	assert_int_equal(place_number(p, "SELECT pending FROM outbox_backlog WHERE target = 'part'"),
			 2);
	assert_int_equal(place_settle(p, "part", OUTBOX_OUT_DELIVERED, NULL, 1), 1);
	assert_int_equal(listed(p, "part", "delivered"), 1);
	assert_int_equal(listed(p, "part", "pending"), 1);
	publish(p, "{\"region\":\"eu\",\"tenant\":\"acme\"}");
	assert_int_equal(listed(p, "both", "pending"), 1);
}

/* Low places in the log that were committed late, beside a detour and without one. */
static void late_commits_are_routed(void **state)
{
	struct place *p = *state;
	PGconn *late = place_connect(p);

	put(p, "part", "tenant=acme");
	PQclear(PQexec(late, "BEGIN; INSERT INTO outbox_message (type, payload, headers)"
			     " VALUES ('t', '{}', '" OTHER "'), ('t', '{}', '" ACME "')"));
	publish(p, ACME);
	assert_int_equal(place_drain(p, "part"), 1);
	PQclear(PQexec(late, "COMMIT"));
	assert_int_equal(listed(p, "part", "pending"), 1);
	assert_int_equal(place_drain(p, "part"), 1);
	PQclear(PQexec(late, "BEGIN; INSERT INTO outbox_message (type, payload, headers)"
			     " VALUES ('t', '{}', '" OTHER "'), ('t', '{}', '" ACME "')"));
	publish(p, ACME);
	assert_int_equal(place_settle(p, "part", OUTBOX_OUT_FAILED, NULL, 1), 1);
	PQclear(PQexec(late, "COMMIT"));
	PQfinish(late);
	assert_int_equal(place_drain(p, "part"), 1);
	assert_int_equal(listed(p, "part", "delivered"), 3);
}

static void partitions_go_by_them(void **state)
{
	struct place *p = *state;

	put(p, "part", "tenant=acme");
	for (int i = 0; i < 25; i++)
		publish(p, i == 12 ? ACME : OTHER);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_true(place_number(p, "SELECT count(*) FROM outbox_message WHERE headers = '" ACME
				    "'") == 1);
	assert_true(place_number(p, "SELECT count(*) FROM outbox_message") < 25);
	assert_int_equal(place_drain(p, "part"), 1);
}

/* The newest routing may ask for something else than the one by which a lane has passed it. */
static void corrections_go_by_every_routing(void **state)
{
	struct outbox_header header = { "tenant", "acme" };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_amend amend = {
		.struct_size = sizeof(amend), .id = "m", .reason = "test", .message = &m
	};
	struct place *p = *state;

	put(p, "part", "tenant=acme");
	place_sql(p,
		  "INSERT INTO outbox_message (id, type, payload, headers) VALUES ('m', 't', '{}', '" OTHER
		  "')");
	assert_int_equal(place_drain(p, "part"), 0);
	put(p, "part", "region=eu");
	m.type = "t";
	m.headers = &header;
	m.n_headers = 1;
	assert_int_equal(store_amend(p->store, &amend, NULL, &p->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(p->err.message, "whether part gets it goes by its headers"));
	header.value = "third";
	assert_int_equal(store_amend(p->store, &amend, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(listed(p, "part", "delivered"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(headers_that_cannot_be_read_fit_nothing),
		CASE(views_go_by_them),
		CASE(late_commits_are_routed),
		CASE(corrections_go_by_every_routing),
		cmocka_unit_test_setup_teardown(partitions_go_by_them, place_setup_partitioned,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
