/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work on SQLite: the common cases, and what the database itself sees to. */
#include "client/events_cases_test.h"

#include <outbox/sqlite.h>

#include "base/cleanup.h"
#include "store/sqlite/place_test.h"

#include <stdio.h>
#include <string.h>

struct sqlite_fixture {
	struct events_fixture base;
	struct place *place;
	sqlite3 *db;
	int commits, rollbacks; /* that the application's own hooks have seen */
};

static bool try_sql(struct events_fixture *f, const char *sql)
{
	return sqlite3_exec(((struct sqlite_fixture *)f)->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static const char *rows(struct events_fixture *f, const char *sql)
{
	sqlite3 *db = place_connect(((struct sqlite_fixture *)f)->place);
	sqlite3_stmt *q;
	size_t length = 0;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	f->text[0] = '\0';
	while (sqlite3_step(q) == SQLITE_ROW)
		length += (size_t)snprintf(f->text + length, sizeof(f->text) - length, "%s%s",
					   length ? " " : "",
					   (const char *)sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	sqlite3_close(db);
	return f->text;
}

static void reopen(struct events_fixture *f, const struct outbox_events_config *config)
{
	struct sqlite_fixture *fixture = (struct sqlite_fixture *)f;

	if (outbox_events_free(f->events, &f->err) != OUTBOX_OK ||
	    outbox_events_new_sqlite(&f->events, fixture->db, config, &f->err) != OUTBOX_OK)
		fail_msg("%s", f->err.message);
}

static int setup(void **state)
{
	struct sqlite_fixture *f = calloc(1, sizeof(*f));
	void *place;

	assert_non_null(f);
	assert_int_equal(place_setup_ready(&place), 0);
	f->place = place;
	f->db = place_connect(place);
	f->base.try_sql = try_sql;
	f->base.rows = rows;
	f->base.reopen = reopen;
	events_run(&f->base,
		   "CREATE TABLE orders (id INTEGER PRIMARY KEY);"
		   "CREATE TEMP TRIGGER no BEFORE INSERT ON outbox_message WHEN NEW.id = 'bad'"
		   " BEGIN SELECT RAISE(ABORT, 'not this one'); END");
	reopen(&f->base, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct sqlite_fixture *f = *state;
	void *place = f->place;

	try_sql(&f->base, "ROLLBACK");
	if (outbox_events_free(f->base.events, &f->base.err) != OUTBOX_OK)
		fail_msg("%s", f->base.err.message);
	assert_null(sqlite3_next_stmt(f->db, NULL));
	assert_int_equal(sqlite3_close(f->db), SQLITE_OK);
	free(f);
	return place_teardown(&place);
}

/* ---- the database sees to it --------------------------------------------------------------------- */

static void a_commit_that_forgets_is_refused(void **state)
{
	/* The transaction has written, reads only, or has done nothing. */
	static const char *const works[] = { "INSERT INTO orders VALUES (NULL)",
					     "SELECT * FROM orders", "" };
	struct sqlite_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(works); i++) {
		events_run(&f->base, "BEGIN");
		events_run(&f->base, works[i]);
		events_begin(&f->base);
		events_add(&f->base, "forgotten");
		assert_int_equal(sqlite3_exec(f->db, "COMMIT", NULL, NULL, NULL), SQLITE_CONSTRAINT);
		assert_int_equal(sqlite3_extended_errcode(f->db), SQLITE_CONSTRAINT_COMMITHOOK);
		assert_non_null(strstr(sqlite3_errmsg(f->db), "1 collected events are not written"));
		assert_true(sqlite3_get_autocommit(f->db));
		assert_int_equal(outbox_events_unwritten(f->base.events), 0);
	}
	assert_string_equal(rows(&f->base, "SELECT count(*) FROM orders"), "0");
	assert_string_equal(events_ids(&f->base), "");
	/* what follows is a transaction like any other */
	events_run(&f->base, "BEGIN; INSERT INTO orders VALUES (NULL)");
	events_begin(&f->base);
	events_add(&f->base, "written");
	events_flush(&f->base);
	events_run(&f->base, "COMMIT; INSERT INTO orders VALUES (NULL)");
	assert_string_equal(rows(&f->base, "SELECT count(*) FROM orders"), "2");
	assert_string_equal(events_ids(&f->base), "written");
}

/* A savepoint outside BEGIN is a transaction, and its release the commit. */
static void the_release_of_the_outermost_savepoint_is_a_commit(void **state)
{
	struct sqlite_fixture *f = *state;

	events_run(&f->base, "SAVEPOINT work");
	events_begin(&f->base);
	events_add(&f->base, "one");
	assert_int_equal(sqlite3_exec(f->db, "RELEASE work", NULL, NULL, NULL), SQLITE_CONSTRAINT);
	/* SQLite leaves the rest of it open */
	events_run(&f->base, "ROLLBACK; SAVEPOINT work");
	events_begin(&f->base);
	events_add(&f->base, "two");
	events_run(&f->base, "ROLLBACK TO work");
	assert_int_equal(outbox_events_unwritten(f->base.events), 0);
	events_add(&f->base, "three");
	events_flush(&f->base);
	events_run(&f->base, "RELEASE work");
	assert_string_equal(events_ids(&f->base), "three");
}

/* Without a mark: SQLite tells, also of savepoints that are older than the unit. */
static void savepoints_need_no_marks(void **state)
{
	struct sqlite_fixture *f = *state;
	struct outbox_events_mark mark;

	events_run(&f->base, "BEGIN; SAVEPOINT a; SAVEPOINT b");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_run(&f->base, "SAVEPOINT c");
	events_add(&f->base, "two");
	events_run(&f->base, "ROLLBACK TO c");
	assert_int_equal(outbox_events_unwritten(f->base.events), 1);
	events_flush(&f->base);
	events_run(&f->base, "ROLLBACK TO c");
	assert_int_equal(outbox_events_unwritten(f->base.events), 1);
	events_run(&f->base, "ROLLBACK TO b");
	assert_int_equal(outbox_events_unwritten(f->base.events), 0);
	events_add(&f->base, "three");
	events_run(&f->base, "ROLLBACK TO a");
	assert_int_equal(outbox_events_unwritten(f->base.events), 0);
	assert_int_equal(outbox_events_mark(f->base.events, &mark, &f->base.err), OUTBOX_OK);
	events_add(&f->base, "four");
	events_flush(&f->base);
	assert_int_equal(outbox_events_rewind(f->base.events, &mark, &f->base.err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(f->base.err.message, "ROLLBACK TO"));
	events_run(&f->base, "COMMIT");
	assert_string_equal(events_ids(&f->base), "four");
}

static int count_commit(void *arg)
{
	((struct sqlite_fixture *)arg)->commits++;
	return 0;
}

static void count_rollback(void *arg)
{
	((struct sqlite_fixture *)arg)->rollbacks++;
}

static void the_hooks_of_the_application_stay(void **state)
{
	struct sqlite_fixture *f = *state;

	sqlite3_commit_hook(f->db, count_commit, f);
	sqlite3_rollback_hook(f->db, count_rollback, f);
	reopen(&f->base, NULL);
	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_flush(&f->base);
	events_run(&f->base, "COMMIT; BEGIN");
	events_begin(&f->base);
	events_run(&f->base, "ROLLBACK");
	reopen(&f->base, NULL);
	events_run(&f->base, "INSERT INTO orders VALUES (NULL)");
	assert_int_equal(f->commits, 2);
	assert_int_equal(f->rollbacks, 1);
	assert_ptr_equal(sqlite3_commit_hook(f->db, NULL, NULL), f);
	assert_ptr_equal(sqlite3_rollback_hook(f->db, NULL, NULL), f);
}

static void the_connection_is_left_as_it_was(void **state)
{
	struct sqlite_fixture *f = *state;

	events_run(&f->base, "BEGIN; INSERT INTO orders VALUES (4711)");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_flush(&f->base);
	assert_int_equal(sqlite3_last_insert_rowid(f->db), 4711);
	/* freed in the middle of it */
	assert_int_equal(outbox_events_free(f->base.events, &f->base.err), OUTBOX_OK);
	f->base.events = NULL;
	assert_null(sqlite3_next_stmt(f->db, NULL));
	events_run(&f->base, "SAVEPOINT a; ROLLBACK TO a; RELEASE a; COMMIT");
	assert_string_equal(events_ids(&f->base), "one");
	assert_false(try_sql(&f->base, "DELETE FROM outbox_events_0"));
}

/* Two objects, two units, one transaction. */
static void one_connection_may_have_several(void **state)
{
	struct sqlite_fixture *f = *state;
	struct outbox_events *first = f->base.events, *second = NULL;

	assert_int_equal(outbox_events_new_sqlite(&second, f->db, NULL, &f->base.err), OUTBOX_OK);
	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	events_flush(&f->base);
	f->base.events = second;
	events_begin(&f->base);
	events_add(&f->base, "two");
	assert_false(try_sql(&f->base, "COMMIT"));
	assert_int_equal(outbox_events_free(second, &f->base.err), OUTBOX_OK);
	f->base.events = first;
	assert_string_equal(events_ids(&f->base), "");
}

static void a_closed_connection_is_told(void **state)
{
	struct sqlite_fixture *f = *state;
	struct outbox_message m = { .type = "x" };

	events_run(&f->base, "BEGIN");
	events_begin(&f->base);
	events_add(&f->base, "one");
	assert_int_equal(sqlite3_close_v2(f->db), SQLITE_OK);
	assert_int_not_equal(outbox_events_add(f->base.events, &m, &f->base.err), OUTBOX_OK);
	assert_int_equal(outbox_events_begin(f->base.events, NULL, &f->base.err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_free(f->base.events, &f->base.err), OUTBOX_OK);
	f->base.events = NULL;
	f->db = place_connect(f->place);
	assert_string_equal(events_ids(&f->base), "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest mine[] = {
		TEST(a_commit_that_forgets_is_refused),
		TEST(the_release_of_the_outermost_savepoint_is_a_commit),
		TEST(savepoints_need_no_marks),
		TEST(the_hooks_of_the_application_stay),
		TEST(the_connection_is_left_as_it_was),
		TEST(one_connection_may_have_several),
		TEST(a_closed_connection_is_told),
	};
	struct CMUnitTest tests[EVENTS_CASES + ARRAY_SIZE(mine)];

	memcpy(tests, events_cases(setup, teardown), EVENTS_CASES * sizeof(tests[0]));
	memcpy(tests + EVENTS_CASES, mine, sizeof(mine));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
