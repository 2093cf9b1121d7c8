/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox: each id once for each consumer, whoever comes at the same time. */
#include "client/postgres_place_test.h"

#include "base/cleanup.h"
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_store_ops postgres_store_ops;

static void make_inbox(struct place *p)
{
	char *sql = NULL;

	assert_int_equal(store_inbox_script(&postgres_store_ops, p->schema, false, &sql, &p->err),
			 OUTBOX_OK);
	place_run(p->other, sql);
	free(sql);
}

static int inbox_setup(void **state)
{
	place_setup(state);
	make_inbox(*state);
	return 0;
}

static bool accept(struct place *p, const char *consumer, const char *id)
{
	bool first = false;

	if (outbox_inbox_accept_pg(p->conn, consumer, id, &first, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return first;
}

static void an_id_is_accepted_once(void **state)
{
	struct place *p = *state;

	place_run(p->conn, "BEGIN");
	assert_true(accept(p, "billing", "1"));
	assert_false(accept(p, "billing", "1"));
	assert_true(accept(p, "mail", "1"));
	place_run(p->conn, "ROLLBACK; BEGIN");
	assert_true(accept(p, "billing", "1"));
	place_run(p->conn, "COMMIT; BEGIN");
	assert_false(accept(p, "billing", "1"));
	assert_true(accept(p, "mail", "1"));
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_number(p->other, "SELECT count(*) FROM outbox_inbox"), 2);
}

static void where_there_is_no_inbox_it_says_so(void **state)
{
	struct place *p = *state;
	bool first = true;

	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_inbox_accept_pg(p->conn, "billing", "1", &first, &p->err),
			 OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "run: outbox init --inbox"));
	assert_true(first);
	place_run(p->conn, "ROLLBACK");
}

static int try_accept(struct place *p, const char *consumer, const char *id)
{
	bool first = false;
	int r = outbox_inbox_accept_pg(p->conn, consumer, id, &first, &p->err);

	assert_false(first);
	return r;
}

static void what_it_cannot_take_is_refused(void **state)
{
	struct place *p = *state;
	char longest[257];

	memset(longest, 'x', 256);
	longest[256] = '\0';
	assert_int_equal(try_accept(p, "billing", "1"), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "BEGIN first"));
	place_run(p->conn, "BEGIN");
	assert_int_equal(try_accept(p, longest, "1"), OUTBOX_EINVAL);
	assert_int_equal(try_accept(p, "billing", longest), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "has 256 characters, at most 255"));
	assert_int_equal(try_accept(p, "billing", ""), OUTBOX_EINVAL);
	assert_int_equal(try_accept(p, NULL, "1"), OUTBOX_EINVAL);
	assert_string_equal(p->err.message, "consumer: is missing");
	assert_int_equal(outbox_inbox_accept_pg(NULL, "billing", "1", &(bool){ false }, &p->err),
			 OUTBOX_EINVAL);
	assert_int_equal(outbox_inbox_accept_pg(p->conn, "billing", "1", NULL, &p->err),
			 OUTBOX_EINVAL);
	/* the transaction has not noticed */
	assert_true(accept(p, longest + 1, longest + 1));
	place_run(p->conn, "COMMIT");
	/* plain SQL */
	PQclear(PQexec(p->conn, "SELECT outbox_inbox_accept('billing', '')"));
	assert_non_null(strstr(PQerrorMessage(p->conn), "id is text of 1 to 255 characters"));
	PQclear(PQexec(p->conn, "SELECT outbox_inbox_accept(NULL, '1')"));
	assert_non_null(strstr(PQerrorMessage(p->conn), "\"consumer\""));
}

struct later {
	PGconn *conn;
	struct outbox_error err;
	int status;
	bool first;
};

static void *accept_later(void *context)
{
	struct later *l = context;

	l->status = outbox_inbox_accept_pg(l->conn, "billing", "1", &l->first, &l->err);
	return NULL;
}

/* Two transactions accept one id: the second one waits for the first one's end. */
static struct later accept_beside(struct place *p, const char *isolation, const char *end)
{
	struct later l = { .conn = place_connect(p) };
	pthread_t thread;

	place_run(l.conn, isolation);
	place_run(l.conn, "SELECT 1"); /* its snapshot, where it keeps one */
	place_run(p->conn, "BEGIN");
	assert_true(accept(p, "billing", "1"));
	assert_int_equal(pthread_create(&thread, NULL, accept_later, &l), 0);
	place_wait_for_waiter(p->other);
	place_run(p->conn, end);
	pthread_join(thread, NULL);
	PQclear(PQexec(l.conn, "COMMIT"));
	PQfinish(l.conn);
	assert_int_equal(place_number(p->other, "SELECT count(*) FROM outbox_inbox"), 1);
	return l;
}

static void the_second_one_is_a_repeat_when_the_first_commits(void **state)
{
	struct later l = accept_beside(*state, "BEGIN", "COMMIT");

	assert_int_equal(l.status, OUTBOX_OK);
	assert_false(l.first);
}

static void the_second_one_is_the_first_when_the_first_rolls_back(void **state)
{
	struct later l = accept_beside(*state, "BEGIN", "ROLLBACK");

	assert_int_equal(l.status, OUTBOX_OK);
	assert_true(l.first);
}

/* It cannot see the row that is in its way: it must begin again. */
static void a_transaction_that_keeps_its_snapshot_repeats(void **state)
{
	struct later l = accept_beside(*state, "BEGIN ISOLATION LEVEL REPEATABLE READ", "COMMIT");

	assert_int_equal(l.status, OUTBOX_EBUSY);
}

static void only_who_was_granted_it_may_accept(void **state)
{
	struct place *p = *state;

	assert_int_equal(place_number(p->other,
				      "SELECT has_function_privilege('pg_monitor',"
				      " 'outbox_inbox_accept(text, text)', 'EXECUTE')::int"),
			 0);
	place_run(p->other, "GRANT EXECUTE ON FUNCTION outbox_inbox_accept(text, text) TO PUBLIC");
	make_inbox(p); /* again: what was granted stays */
	assert_int_equal(place_number(p->other,
				      "SELECT has_function_privilege('pg_monitor',"
				      " 'outbox_inbox_accept(text, text)', 'EXECUTE')::int"),
			 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, inbox_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_id_is_accepted_once),
		cmocka_unit_test_setup_teardown(where_there_is_no_inbox_it_says_so, place_setup,
						place_teardown),
		CASE(what_it_cannot_take_is_refused),
		CASE(the_second_one_is_a_repeat_when_the_first_commits),
		CASE(the_second_one_is_the_first_when_the_first_rolls_back),
		CASE(a_transaction_that_keeps_its_snapshot_repeats),
		CASE(only_who_was_granted_it_may_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
