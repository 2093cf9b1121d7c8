/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher with a prepared statement: what happens to its connection must not happen to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <outbox/sqlite.h>

#include "store/sqlite/place_test.h"

#include <pthread.h>
#include <string.h>

static const struct outbox_message one = { .type = "order.placed", .data = "{}", .size = 2 };

static void run(sqlite3 *db, const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
}

static struct outbox_publisher *open_publisher(struct place *p, sqlite3 *db)
{
	struct outbox_publisher *publisher = NULL;

	if (outbox_publisher_new_sqlite(&publisher, db, 0, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return publisher;
}

static int publish(struct place *p, struct outbox_publisher *publisher)
{
	return outbox_publisher_publish(publisher, &one, NULL, &p->err);
}

static int64_t messages(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_message");
}

static void it_goes_on_after_rollbacks(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = open_publisher(p, db);
	struct outbox_published published[2];
	struct outbox_message two[2] = { one, one };

	assert_int_equal(publish(p, publisher), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "not in a transaction"));
	run(db, "BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "ROLLBACK; BEGIN; SAVEPOINT a");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "ROLLBACK TO a");
	assert_int_equal(outbox_publisher_publish_batch(publisher, two, 2, published, &p->err),
			 OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(messages(p), 2);
	assert_int_equal(strlen(published[0].id), 36);
	assert_string_not_equal(published[0].id, published[1].id);
	assert_int_equal(published[1].seq, published[0].seq + 1);
	assert_int_equal(outbox_publisher_flush(publisher, &p->err), OUTBOX_OK);
	outbox_publisher_free(publisher);
	assert_null(sqlite3_next_stmt(db, NULL));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void what_makes_no_sense_is_told(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = NULL;
	struct outbox_message wrong[2] = { one, { .type = "" } };

	assert_int_equal(outbox_publisher_new_sqlite(&publisher, NULL, 0, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publisher_new_sqlite(&publisher, db, 8, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publisher_publish(NULL, &one, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publisher_flush(NULL, &p->err), OUTBOX_EINVAL);
	assert_null(publisher);
	outbox_publisher_free(NULL);
	assert_int_equal(outbox_publisher_new_sqlite(&publisher, db, OUTBOX_ALLOW_AUTOCOMMIT,
						     &p->err),
			 OUTBOX_OK);
	assert_int_equal(outbox_publisher_publish(publisher, NULL, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publisher_publish_batch(publisher, wrong, 2, NULL, &p->err),
			 OUTBOX_EINVAL);
	assert_memory_equal(p->err.message, "message 1: ", 11);
	assert_int_equal(outbox_publisher_publish_batch(publisher, wrong, 0, NULL, &p->err),
			 OUTBOX_OK);
	assert_int_equal(messages(p), 0);
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	assert_int_equal(messages(p), 1);
	outbox_publisher_free(publisher);
	sqlite3_close(db);
}

static void a_database_without_outbox_is_told(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = NULL;

	assert_int_equal(outbox_publisher_new_sqlite(&publisher, db, 0, &p->err), OUTBOX_ESCHEMA);
	assert_null(publisher);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A statement that was prepared for another schema is prepared again. */
static void it_follows_the_schema(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = open_publisher(p, db);

	run(db, "BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "COMMIT; ALTER TABLE outbox_message ADD COLUMN of_another_program");
	run(db, "BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(place_sql(p, "ALTER TABLE outbox_message DROP COLUMN of_another_program"),
			 SQLITE_OK);
	run(db, "BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "COMMIT; ALTER TABLE outbox_message RENAME TO elsewhere; BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "outbox init"));
	run(db, "COMMIT; ALTER TABLE elsewhere RENAME TO outbox_message; BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(messages(p), 4);
	outbox_publisher_free(publisher);
	sqlite3_close(db);
}

/* sqlite3_close() refuses; after sqlite3_close_v2() the publisher refuses, and may still be freed. */
static void a_closed_connection_is_told(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = open_publisher(p, db);

	assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
	run(db, "BEGIN");
	assert_int_equal(publish(p, publisher), OUTBOX_OK);
	assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
	assert_int_equal(publish(p, publisher), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "connection was closed"));
	outbox_publisher_free(publisher);
	assert_int_equal(messages(p), 0);
	assert_int_equal(place_sql(p, "BEGIN IMMEDIATE; COMMIT"), SQLITE_OK);
}

enum { THREADS = 4, EACH = 100 };

static void *publish_many(void *arg)
{
	struct outbox_error err;

	for (int i = 0; i < EACH; i++)
		if (outbox_publisher_publish(arg, &one, NULL, &err) != OUTBOX_OK)
			return arg;
	return NULL;
}

static void threads_may_share_it(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	struct outbox_publisher *publisher = open_publisher(p, db);
	pthread_t threads[THREADS];
	void *failed;

	run(db, "BEGIN");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, publish_many, publisher), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	run(db, "COMMIT");
	assert_int_equal(messages(p), THREADS * EACH);
	assert_int_equal(place_number(p, "SELECT count(DISTINCT id) FROM outbox_message"),
			 THREADS * EACH);
	outbox_publisher_free(publisher);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_goes_on_after_rollbacks, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(what_makes_no_sense_is_told, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_database_without_outbox_is_told, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(it_follows_the_schema, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_closed_connection_is_told, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(threads_may_share_it, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
