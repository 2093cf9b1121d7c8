/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing in the application's own transaction, and what it must leave alone. */
#include "client/postgres_place_test.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static void outside_a_transaction_it_refuses(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_EINVAL);
	assert_string_equal(p->err.message,
			    "not in a transaction: your rows could be committed without the message, "
			    "or it without them; BEGIN first, or set OUTBOX_ALLOW_AUTOCOMMIT");
	assert_int_equal(outbox_cancel_pg(p->conn, "m1", NULL, NULL, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "not in a transaction"));
	assert_int_equal(outbox_cancel_pg(p->conn, "", NULL, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publish_pg_batch(p->conn, &m, 1, OUTBOX_ALLOW_AUTOCOMMIT, NULL,
						 &p->err),
			 OUTBOX_OK);
	assert_int_equal(PQtransactionStatus(p->conn), PQTRANS_IDLE);
	assert_int_equal(place_messages(p), 1);
}

static void what_makes_no_sense_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	assert_int_equal(outbox_publish_pg(NULL, &m, &p->err), OUTBOX_EINVAL);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publish_pg_batch(p->conn, &m, 1, 64, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publish_pg_batch(p->conn, NULL, 0, 0, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(PQtransactionStatus(p->conn), PQTRANS_INTRANS);
	assert_true(PQsendQuery(p->conn, "SELECT 1"));
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "still running"));
	PQclear(PQgetResult(p->conn));
	assert_null(PQgetResult(p->conn));
	PQclear(PQexec(p->conn, "SELECT 1/0"));
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "roll it back"));
	place_run(p->conn, "ROLLBACK");
	assert_true(PQenterPipelineMode(p->conn));
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "pipeline"));
	assert_true(PQexitPipelineMode(p->conn));
}

/* Text is UTF-8, whatever the connection speaks. */
static void another_encoding_is_refused(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	assert_int_equal(PQsetClientEncoding(p->conn, "LATIN1"), 0);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "LATIN1"));
	assert_int_equal(PQtransactionStatus(p->conn), PQTRANS_INTRANS);
	place_run(p->conn, "ROLLBACK");
}

static void it_commits_and_rolls_back_with_the_rows(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
	assert_int_equal(place_messages(p), 0);
	place_run(p->conn, "ROLLBACK");
	assert_int_equal(place_messages(p), 0);
	place_run(p->conn, "BEGIN; SAVEPOINT a");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
	place_run(p->conn, "ROLLBACK TO a");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
}

static void a_batch_is_all_or_none(void **state)
{
	struct place *p = *state;
	struct outbox_message m[3] = { place_message("one"), place_message(NULL),
				       place_message("three") };
	struct outbox_published published[3];

	memset(published, 0x55, sizeof(published));
	place_run(p->conn,
		  "ALTER TABLE outbox_message ADD CONSTRAINT \"not this one\" CHECK (id <> 'three')");
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 3, 0, published, &p->err),
			 OUTBOX_EINVAL);
	assert_string_equal(p->err.message, "message 2: the log refuses the message: not this one");
	assert_int_equal(published[0].seq, 0x5555555555555555);
	place_run(p->conn,
		  "ROLLBACK; ALTER TABLE outbox_message DROP CONSTRAINT \"not this one\"; BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 3, 0, published, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 3);
	assert_true(published[0].seq < published[1].seq && published[1].seq < published[2].seq);
	assert_string_equal(published[2].id, "three");
	assert_int_equal(strlen(published[1].id), 36);
	assert_false(published[1].repeated);
	assert_int_equal(place_number(p->other, "SELECT seq FROM outbox_message WHERE id = 'three'"),
			 published[2].seq);
}

/* Nothing is sent when one of them is wrong: the transaction goes on. */
static void all_are_validated_first(void **state)
{
	struct place *p = *state;
	struct outbox_message m[2] = { place_message(NULL), place_message(NULL) };

	m[1].type = "";
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 2, 0, NULL, &p->err), OUTBOX_EINVAL);
	assert_memory_equal(p->err.message, "message 1: ", 11);
	assert_int_equal(PQtransactionStatus(p->conn), PQTRANS_INTRANS);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 0);
}

static void large_batches_keep_their_order(void **state)
{
	enum { N = 3000 };
	static struct outbox_message m[N];
	static struct outbox_published published[N];
	static char ids[N][16];
	struct place *p = *state;

	for (int i = 0; i < N; i++) {
		snprintf(ids[i], sizeof(ids[i]), "m%04d", (i * 7) % N);
		m[i] = place_message(ids[i]);
	}
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, N, 0, published, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	for (int i = 0; i < N; i++) {
		assert_string_equal(published[i].id, ids[i]);
		assert_true(i == 0 || published[i].seq > published[i - 1].seq);
	}
	/* and that is where they are */
	assert_int_equal(
		place_number(p->other,
			     "SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY seq) - 1"
			     " AS i FROM outbox_message) o WHERE id = 'm' || lpad((i * 7 % 3000)::text,"
			     " 4, '0')"),
		N);
	assert_int_equal(place_number(p->other, "SELECT min(seq) FROM outbox_message"),
			 published[0].seq);
}

static size_t count(FILE *file, const char *word)
{
	char line[4096];
	size_t n = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, word) != NULL;
	return n;
}

static void it_is_one_round_trip(void **state)
{
	struct place *p = *state;
	struct outbox_message m[2] = { place_message(NULL), place_message(NULL) };
	FILE *trace = tmpfile();

	assert_non_null(trace);
	place_run(p->conn, "BEGIN");
	PQtrace(p->conn, trace);
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 2, OUTBOX_LOCK_KEYS, NULL, &p->err),
			 OUTBOX_OK);
	PQuntrace(p->conn);
	assert_int_equal(count(trace, "\tSync"), 1);
	assert_int_equal(count(trace, "\tQuery"), 0);
	place_run(p->conn, "COMMIT");
	fclose(trace);
}

static void the_session_is_left_as_it_was(void **state)
{
	static const char settings[] =
		"SELECT hashtextextended(string_agg(name || setting, ',' ORDER BY"
		" name), 0) FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'";
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);
	int64_t before = place_number(p->conn, settings);

	m.key = "k";
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, &m, 1, OUTBOX_LOCK_KEYS, NULL, &p->err),
			 OUTBOX_OK);
	assert_int_equal(place_number(p->conn, settings), before);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_number(p->conn, settings), before);
	assert_int_equal(place_number(p->conn, "SELECT count(*) FROM pg_prepared_statements"), 0);
	assert_int_equal(place_number(p->conn,
				      "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
				      " AND pid = pg_backend_pid()"),
			 0);
}

static void a_search_path_without_outbox_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	place_run(p->conn, "SET search_path = public");
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "search_path"));
	assert_non_null(strstr(p->err.message, "outbox init"));
	place_run(p->conn, "ROLLBACK");
}

/* Nothing that the caller's path finds first may stand in for what the function uses. */
static void a_table_in_the_way_is_not_used(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);

	place_run(p->conn, "CREATE TEMP TABLE outbox_message (LIKE outbox_message)");
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
}

static void a_lost_connection_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_message m = place_message(NULL);
	char sql[80];

	place_run(p->conn, "BEGIN");
	snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", PQbackendPID(p->conn));
	place_run(p->other, sql);
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_ECONN);
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_ECONN);
	assert_int_equal(place_messages(p), 0);
}

/* An application that was built against a longer struct has a longer stride. */
static void a_newer_header_works(void **state)
{
	struct place *p = *state;
	struct {
		struct outbox_message m;
		char later[32];
	} array[2] = { { .m = place_message("one") }, { .m = place_message("two") } };

	array[0].m.struct_size = array[1].m.struct_size = sizeof(array[0]);
	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, &array[0].m, 2, 0, NULL, &p->err),
			 OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_number(p->other, "SELECT count(*) FROM outbox_message WHERE id IN"
						" ('one', 'two')"),
			 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(outside_a_transaction_it_refuses),
		CASE(what_makes_no_sense_is_told),
		CASE(another_encoding_is_refused),
		CASE(it_commits_and_rolls_back_with_the_rows),
		CASE(a_batch_is_all_or_none),
		CASE(all_are_validated_first),
		CASE(large_batches_keep_their_order),
		CASE(it_is_one_round_trip),
		CASE(the_session_is_left_as_it_was),
		CASE(a_search_path_without_outbox_is_told),
		CASE(a_table_in_the_way_is_not_used),
		CASE(a_lost_connection_is_told),
		CASE(a_newer_header_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
