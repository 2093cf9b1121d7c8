/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work on PostgreSQL: the common cases, and what is told where nothing can be prevented. */
#include "client/events_cases_test.h"
#include "client/postgres_place_test.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct postgres_fixture {
	struct events_fixture base;
	struct place *place;
};

static bool try_sql(struct events_fixture *f, const char *sql)
{
	PGresult *result = PQexec(((struct postgres_fixture *)f)->place->conn, sql);
	bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return ok;
}

static const char *rows(struct events_fixture *f, const char *sql)
{
	PGresult *result = PQexec(((struct postgres_fixture *)f)->place->other, sql);
	size_t length = 0;

	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	f->text[0] = '\0';
	for (int i = 0; i < PQntuples(result); i++)
		length += (size_t)snprintf(f->text + length, sizeof(f->text) - length, "%s%s",
					   length ? " " : "", PQgetvalue(result, i, 0));
	PQclear(result);
	return f->text;
}

static void reopen(struct events_fixture *f, const struct outbox_events_config *config)
{
	struct postgres_fixture *fixture = (struct postgres_fixture *)f;

	if (outbox_events_free(f->events, &f->err) != OUTBOX_OK ||
	    outbox_events_new_pg(&f->events, fixture->place->conn, config, &f->err) != OUTBOX_OK)
		fail_msg("%s", f->err.message);
}

static int setup(void **state)
{
	struct postgres_fixture *f = calloc(1, sizeof(*f));
	void *place;

	assert_non_null(f);
	assert_int_equal(place_setup(&place), 0);
	f->place = place;
	f->base.try_sql = try_sql;
	f->base.rows = rows;
	f->base.reopen = reopen;
	place_run(f->place->other,
		  "ALTER TABLE outbox_message ADD CONSTRAINT \"not this one\" CHECK (id <> 'bad')");
	reopen(&f->base, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct postgres_fixture *f = *state;
	void *place = f->place;

	try_sql(&f->base, "ROLLBACK");
	if (outbox_events_free(f->base.events, &f->base.err) != OUTBOX_OK)
		fail_msg("%s", f->base.err.message);
	free(f);
	return place_teardown(&place);
}

static void a_commit_that_forgets_is_told(void **state)
{
	struct postgres_fixture *f = *state;
	struct outbox_message m = place_message("more");

	for (int again = 0; again < 2; again++) {
		events_run(&f->base, "BEGIN");
		events_begin(&f->base);
		events_add(&f->base, "forgotten");
		events_run(&f->base, again ? "COMMIT; BEGIN" : "COMMIT");
		assert_int_equal(outbox_events_add(f->base.events, &m, &f->base.err),
				 OUTBOX_ECONFLICT);
		assert_int_equal(outbox_events_free(f->base.events, &f->base.err), OUTBOX_ECONFLICT);
		assert_non_null(strstr(f->base.err.message, "committed without 1 events"));
		if (!again)
			events_run(&f->base, "BEGIN");
		assert_int_equal(outbox_events_begin(f->base.events, NULL, &f->base.err),
				 OUTBOX_ECONFLICT);
		outbox_events_drop(f->base.events);
		events_begin(&f->base);
		events_run(&f->base, "COMMIT");
	}
}

/* A transaction that has failed is rolled back by its COMMIT, too. */
static void a_commit_of_a_failed_transaction_drops_them(void **state)
{
	struct postgres_fixture *f = *state;

	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	assert_false(try_sql(&f->base, "SELECT 1/0"));
	events_add(&f->base, "two");
	assert_int_equal(outbox_events_flush(f->base.events, &f->base.err), OUTBOX_EINVAL);
	assert_non_null(strstr(f->base.err.message, "roll it back"));
	events_run(&f->base, "COMMIT");
	assert_int_equal(outbox_events_unwritten(f->base.events), 0);
}

/* Also where nobody is asked before the next BEGIN: they belong to no other transaction. */
static void what_ends_without_a_rollback_drops_them(void **state)
{
	struct postgres_fixture *f = *state;
	char path[100];

	snprintf(path, sizeof(path), "SET search_path = %s", f->place->schema);
	events_run(&f->base, "CREATE TABLE once (x int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "of a commit that fails");
	events_run(&f->base, "INSERT INTO once VALUES (1), (1)");
	assert_false(try_sql(&f->base, "COMMIT"));
	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "of a session that is lost");
	PQreset(f->place->conn);
	events_run(&f->base, path);
	events_run(&f->base, "BEGIN");
	assert_int_equal(outbox_events_unwritten(f->base.events), 0);
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_flush(&f->base);
	events_run(&f->base, "COMMIT");
	assert_string_equal(events_ids(&f->base), "one");
}

/* ROLLBACK TO has the name of ROLLBACK, and is none. */
static void a_rollback_to_a_savepoint_is_no_end(void **state)
{
	struct postgres_fixture *f = *state;

	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_run(&f->base, "SAVEPOINT a");
	events_run(&f->base, "ROLLBACK TO a");
	assert_int_equal(outbox_events_unwritten(f->base.events), 1);
	events_flush(&f->base);
	events_run(&f->base, "COMMIT");
	assert_string_equal(events_ids(&f->base), "one");
}

static void a_flush_is_one_round_trip(void **state)
{
	struct outbox_events_config config = OUTBOX_EVENTS_CONFIG_INIT;
	struct postgres_fixture *f = *state;
	char trace[100000];
	FILE *out = tmpfile();
	size_t size;
	int queries = 0;

	config.flags = OUTBOX_PREPARE | OUTBOX_LOCK_KEYS;
	reopen(&f->base, &config);
	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_add(&f->base, "two");
	PQtrace(f->place->conn, out);
	events_flush(&f->base);
	PQuntrace(f->place->conn);
	rewind(out);
	size = fread(trace, 1, sizeof(trace) - 1, out);
	trace[size] = '\0';
	fclose(out);
	for (const char *at = trace; (at = strstr(at, "ReadyForQuery")); at++)
		queries++;
	assert_int_equal(queries, 1);
	events_run(&f->base, "COMMIT");
	assert_string_equal(events_ids(&f->base), "one two");
}

static void a_closed_connection_is_told(void **state)
{
	struct postgres_fixture *f = *state;
	struct outbox_message m = place_message("x");

	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	PQfinish(f->place->conn);
	f->place->conn = place_connect(f->place);
	assert_int_equal(outbox_events_add(f->base.events, &m, &f->base.err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_begin(f->base.events, NULL, &f->base.err), OUTBOX_EINVAL);
	assert_non_null(strstr(f->base.err.message, "connection was closed"));
	assert_int_equal(outbox_events_free(f->base.events, &f->base.err), OUTBOX_OK);
	f->base.events = NULL;
	assert_string_equal(events_ids(&f->base), "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest mine[] = {
		TEST(a_commit_that_forgets_is_told),
		TEST(a_commit_of_a_failed_transaction_drops_them),
		TEST(what_ends_without_a_rollback_drops_them),
		TEST(a_rollback_to_a_savepoint_is_no_end),
		TEST(a_flush_is_one_round_trip),
		TEST(a_closed_connection_is_told),
	};
	struct CMUnitTest tests[EVENTS_CASES + ARRAY_SIZE(mine)];

	memcpy(tests, events_cases(setup, teardown), EVENTS_CASES * sizeof(tests[0]));
	memcpy(tests + EVENTS_CASES, mine, sizeof(mine));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
