/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher with a prepared statement and a pipeline: what happens to its connection must not happen to it. */
#include "client/postgres_place_test.h"

#include "base/cleanup.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const unsigned all_flags[] = { 0, OUTBOX_PREPARE, OUTBOX_PIPELINE,
				      OUTBOX_PREPARE | OUTBOX_PIPELINE };

static struct outbox_publisher *open_publisher(struct place *p, unsigned flags)
{
	struct outbox_publisher *publisher = NULL;

	if (outbox_publisher_new_pg(&publisher, p->conn, flags, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return publisher;
}

/* Published and answered. */
static int publish(struct place *p, struct outbox_publisher *publisher, const char *id)
{
	struct outbox_message m = place_message(id);
	int r = outbox_publisher_publish(publisher, &m, NULL, &p->err);

	return r ? r : outbox_publisher_flush(publisher, &p->err);
}

static int64_t prepared(struct place *p)
{
	return place_number(p->conn, "SELECT count(*) FROM pg_prepared_statements");
}

static void it_goes_on_after_rollbacks(void **state)
{
	struct place *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(all_flags); i++) {
		struct outbox_publisher *publisher = open_publisher(p, all_flags[i]);
		struct outbox_message two[2] = { place_message(NULL), place_message(NULL) };
		struct outbox_published published[2];
		int64_t before = place_messages(p);

		assert_int_equal(publish(p, publisher, NULL), OUTBOX_EINVAL);
		assert_non_null(strstr(p->err.message, "not in a transaction"));
		place_run(p->conn, "BEGIN");
		assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
		place_run(p->conn, "ROLLBACK; BEGIN");
		assert_int_equal(publish(p, publisher, ""), OUTBOX_EINVAL);
		place_run(p->conn, "SAVEPOINT a");
		assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
		place_run(p->conn, "ROLLBACK TO a");
		assert_int_equal(outbox_publisher_publish_batch(publisher, two, 2, published,
								&p->err),
				 OUTBOX_OK);
		assert_int_equal(strlen(published[0].id), 36);
		assert_string_not_equal(published[0].id, published[1].id);
		assert_int_equal(outbox_publisher_flush(publisher, &p->err), OUTBOX_OK);
		place_run(p->conn, "COMMIT");
		assert_int_equal(place_messages(p), before + 2);
		outbox_publisher_free(publisher);
		assert_int_equal(prepared(p), 0);
	}
}

static void what_makes_no_sense_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = NULL;

	assert_int_equal(outbox_publisher_new_pg(&publisher, NULL, 0, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publisher_new_pg(&publisher, p->conn, 64, &p->err), OUTBOX_EINVAL);
	assert_true(PQenterPipelineMode(p->conn));
	assert_int_equal(outbox_publisher_new_pg(&publisher, p->conn, OUTBOX_PIPELINE, &p->err),
			 OUTBOX_EINVAL);
	assert_true(PQexitPipelineMode(p->conn));
	place_run(p->conn, "SET search_path = pg_catalog");
	assert_int_equal(outbox_publisher_new_pg(&publisher, p->conn, OUTBOX_PREPARE, &p->err),
			 OUTBOX_ESCHEMA);
	assert_null(publisher);
}

/* The statement is of the session. When that has lost it, one call fails, and the next one prepares it again. */
static void a_session_that_forgets_is_taught_again(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PREPARE);

	assert_int_equal(prepared(p), 1);
	place_run(p->conn, "DEALLOCATE ALL; BEGIN");
	assert_int_not_equal(publish(p, publisher, NULL), OUTBOX_OK);
	place_run(p->conn, "ROLLBACK; BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	PQreset(p->conn);
	place_run(p->conn, "BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "search_path"));
	place_run(p->conn, "ROLLBACK");
	PQfinish(p->conn);
	p->conn = place_connect(p);
	outbox_publisher_free(publisher);
}

static void it_follows_the_schema(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PREPARE);
	char sql[200];

	place_run(p->conn, "BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	place_run(p->other, "ALTER TABLE outbox_message ADD COLUMN of_another_program text");
	place_run(p->conn, "BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	snprintf(sql, sizeof(sql), "ALTER SCHEMA %s RENAME TO %s_x", p->schema, p->schema);
	place_run(p->other, sql);
	place_run(p->conn, "BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_ESCHEMA);
	place_run(p->conn, "ROLLBACK");
	snprintf(sql, sizeof(sql), "ALTER SCHEMA %s_x RENAME TO %s", p->schema, p->schema);
	place_run(p->other, sql);
	place_run(p->conn, "BEGIN");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 3);
	outbox_publisher_free(publisher);
}

static void a_closed_connection_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publishers[ARRAY_SIZE(all_flags)];
	struct outbox_message m = place_message(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(all_flags); i++)
		publishers[i] = open_publisher(p, all_flags[i]);
	outbox_publisher_free(publishers[1]);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publisher_publish(publishers[2], &m, NULL, &p->err), OUTBOX_OK);
	PQfinish(p->conn);
	p->conn = place_connect(p);
	for (size_t i = 0; i < ARRAY_SIZE(all_flags); i++) {
		if (i == 1)
			continue;
		assert_int_equal(publish(p, publishers[i], NULL), OUTBOX_EINVAL);
		assert_non_null(strstr(p->err.message, "connection was closed"));
		outbox_publisher_free(publishers[i]);
	}
	assert_int_equal(place_messages(p), 0);
}

/* Nobody waits for an answer, and nothing can be done before the answers were read. */
static void a_pipeline_waits_for_its_flush(void **state)
{
	enum { N = 250 };
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PIPELINE);
	struct outbox_published published;
	PGresult *result;
	char id[16];

	place_run(p->conn, "BEGIN");
	for (int i = 0; i < N; i++) {
		struct outbox_message m = place_message(id);

		snprintf(id, sizeof(id), "m%04d", i);
		assert_int_equal(outbox_publisher_publish(publisher, &m, &published, &p->err),
				 OUTBOX_OK);
		assert_string_equal(published.id, id);
		assert_int_equal(published.seq, 0);
	}
	result = PQexec(p->conn, "COMMIT");
	assert_int_not_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	assert_int_equal(outbox_publisher_flush(publisher, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), N);
	assert_int_equal(place_number(p->other,
				      "SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY seq)"
				      " AS before FROM outbox_message) o WHERE id < before"),
			 0);
	outbox_publisher_free(publisher);
}

static void a_refused_message_is_told_at_the_flush(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PIPELINE | OUTBOX_PREPARE);
	struct outbox_message good = place_message("good"), bad = place_message("bad");

	place_run(p->conn,
		  "ALTER TABLE outbox_message ADD CONSTRAINT \"not this one\" CHECK (id <> 'bad');"
		  "BEGIN");
	assert_int_equal(outbox_publisher_publish(publisher, &good, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(outbox_publisher_publish(publisher, &bad, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(outbox_publisher_publish(publisher, &good, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(outbox_publisher_flush(publisher, &p->err), OUTBOX_EINVAL);
	assert_string_equal(p->err.message,
			    "message 1 since the last flush: the log refuses the message: "
			    "not this one");
	assert_int_equal(publish(p, publisher, NULL), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "roll it back"));
	place_run(p->conn, "ROLLBACK; BEGIN");
	assert_int_equal(publish(p, publisher, "good"), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
	outbox_publisher_free(publisher);
}

/* What was sent before belongs to a session that is gone; what comes now waits for nothing of it. */
static void a_pipeline_that_is_reset_is_told_at_once(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PIPELINE);
	struct outbox_message m = place_message("lost");
	char path[100];

	snprintf(path, sizeof(path), "SET search_path = %s", p->schema);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publisher_publish(publisher, &m, NULL, &p->err), OUTBOX_OK);
	PQreset(p->conn);
	place_run(p->conn, path);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publisher_publish(publisher, &m, NULL, &p->err), OUTBOX_ECONN);
	assert_int_equal(PQtransactionStatus(p->conn), PQTRANS_INTRANS);
	place_run(p->conn, "ROLLBACK; BEGIN");
	assert_int_equal(publish(p, publisher, "good"), OUTBOX_OK);
	assert_int_equal(outbox_publisher_flush(publisher, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
	outbox_publisher_free(publisher);
}

static void *publish_elsewhere(void *arg)
{
	struct outbox_message m = place_message(NULL);
	struct outbox_error err;

	return outbox_publisher_publish(arg, &m, NULL, &err) == OUTBOX_OK ? NULL : arg;
}

static void one_thread_after_another_may_use_it(void **state)
{
	struct place *p = *state;
	struct outbox_publisher *publisher = open_publisher(p, OUTBOX_PREPARE);
	pthread_t thread;
	void *failed;

	place_run(p->conn, "BEGIN");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, publish_elsewhere, publisher), 0);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
	}
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 3);
	outbox_publisher_free(publisher);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_goes_on_after_rollbacks),
		TEST(what_makes_no_sense_is_told),
		TEST(a_session_that_forgets_is_taught_again),
		TEST(it_follows_the_schema),
		TEST(a_closed_connection_is_told),
		TEST(a_pipeline_waits_for_its_flush),
		TEST(a_refused_message_is_told_at_the_flush),
		TEST(a_pipeline_that_is_reset_is_told_at_once),
		TEST(one_thread_after_another_may_use_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
