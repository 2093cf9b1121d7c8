/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing in the application's own transaction, and what it must leave alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <outbox/sqlite.h>

#include "base/cleanup.h"
#include "store/sqlite/place_test.h"
#include "store/store.h"

#include <string.h>

static struct outbox_message message(const char *id)
{
	return (struct outbox_message){ .type = "order.placed", .id = id, .data = "{}", .size = 2 };
}

static void run(sqlite3 *db, const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
}

static int64_t messages(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_message");
}

static void make_inbox(struct place *p)
{
	bool made;

	assert_int_equal(store_inbox_init(p->store, &made, &p->err), OUTBOX_OK);
	assert_true(made);
}

static void outside_a_transaction_it_refuses(void **state)
{
	struct place *p = *state;
	struct outbox_message m = message(NULL);
	sqlite3 *db = place_connect(p);

	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_EINVAL);
	assert_string_equal(p->err.message,
			    "not in a transaction: your rows could be committed without the message, "
			    "or it without them; BEGIN first, or set OUTBOX_ALLOW_AUTOCOMMIT");
	assert_int_equal(messages(p), 0);
	assert_int_equal(outbox_cancel_sqlite(db, "m1", NULL, NULL, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "not in a transaction"));
	assert_int_equal(outbox_cancel_sqlite(db, "", NULL, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publish_sqlite_batch(db, &m, 1, OUTBOX_ALLOW_AUTOCOMMIT, NULL,
						     &p->err),
			 OUTBOX_OK);
	assert_int_equal(messages(p), 1);
	assert_true(sqlite3_get_autocommit(db));
	assert_int_equal(outbox_publish_sqlite_batch(db, &m, 1, 8, NULL, &p->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_publish_sqlite(NULL, &m, &p->err), OUTBOX_EINVAL);
	/* What is wrong with the message is told first. */
	m.type = NULL;
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_EINVAL);
	assert_null(strstr(p->err.message, "transaction"));
	sqlite3_close(db);
}

static void it_commits_and_rolls_back_with_the_rows(void **state)
{
	struct place *p = *state;
	struct outbox_message m = message(NULL);
	sqlite3 *db = place_connect(p);

	run(db, "CREATE TABLE orders (x); BEGIN; INSERT INTO orders VALUES (1)");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_OK);
	run(db, "ROLLBACK");
	assert_int_equal(messages(p), 0);
	run(db, "BEGIN; SAVEPOINT a");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_OK);
	run(db, "ROLLBACK TO a");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(messages(p), 1);
	sqlite3_close(db);
}

static void a_batch_is_all_or_none(void **state)
{
	struct place *p = *state;
	struct outbox_message m[3] = { message("one"), message(NULL), message("three") };
	struct outbox_published published[3];
	sqlite3 *db = place_connect(p);

	memset(published, 0x55, sizeof(published));
	run(db, "CREATE TABLE orders (x);"
		"CREATE TEMP TRIGGER no BEFORE INSERT ON outbox_message WHEN NEW.id = 'three'"
		" BEGIN SELECT RAISE(ABORT, 'not this one'); END;"
		"BEGIN; INSERT INTO orders VALUES (1)");
	assert_int_equal(outbox_publish_sqlite_batch(db, m, 3, 0, published, &p->err), OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "message 2"));
	assert_int_equal(published[0].seq, 0x5555555555555555);
	run(db, "DROP TRIGGER no; INSERT INTO orders VALUES (2)");
	assert_int_equal(outbox_publish_sqlite_batch(db, m, 3, 0, published, &p->err), OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(messages(p), 3);
	assert_int_equal(place_number(p, "SELECT count(*) FROM orders"), 2);
	assert_int_equal(published[2].seq, 3);
	assert_string_equal(published[2].id, "three");
	assert_int_equal(strlen(published[1].id), 36);
	assert_false(published[1].repeated);
	sqlite3_close(db);
}

static void a_repeat_is_harmless(void **state)
{
	struct place *p = *state;
	struct outbox_message m[2] = { message("one"), message("one") };
	struct outbox_published published[2];
	sqlite3 *db = place_connect(p);

	run(db, "BEGIN");
	assert_int_equal(outbox_publish_sqlite_batch(db, m, 2, 0, published, &p->err), OUTBOX_OK);
	run(db, "COMMIT; BEGIN");
	assert_int_equal(published[0].repeated, 0);
	assert_int_equal(published[1].repeated, 1);
	assert_int_equal(published[1].seq, published[0].seq);
	assert_int_equal(outbox_publish_sqlite_batch(db, m, 1, 0, published, &p->err), OUTBOX_OK);
	assert_int_equal(published[0].repeated, 1);
	run(db, "COMMIT");
	assert_int_equal(messages(p), 1);
	sqlite3_close(db);
}

static void the_connection_is_left_as_it_was(void **state)
{
	struct place *p = *state;
	struct outbox_message m = message(NULL);
	sqlite3 *db = place_connect(p);

	run(db,
	    "PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON; PRAGMA trusted_schema = OFF;"
	    "CREATE TABLE orders (id INTEGER PRIMARY KEY); BEGIN; INSERT INTO orders VALUES (4711)");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite3_last_insert_rowid(db), 4711);
	assert_null(sqlite3_next_stmt(db, NULL));
	assert_false(sqlite3_get_autocommit(db));
	m.type = "";
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_EINVAL);
	assert_null(sqlite3_next_stmt(db, NULL));
	assert_false(sqlite3_get_autocommit(db));
	run(db, "COMMIT");
	assert_int_equal(messages(p), 1);
	sqlite3_close(db);
}

static void a_database_without_outbox_is_told(void **state)
{
	struct place *p = *state;
	struct outbox_message m = message(NULL);
	sqlite3 *db = place_connect(p);

	run(db, "BEGIN");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "outbox init"));
	assert_false(sqlite3_get_autocommit(db));
	run(db, "COMMIT");
	run(db, "CREATE TABLE outbox_message (mine)");
	run(db, "BEGIN");
	assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_ESCHEMA);
	run(db, "COMMIT");
	sqlite3_close(db);
}

/* Bytes go where they belong, and come back as they were. */
static void payloads_come_back(void **state)
{
	static const struct outbox_header headers[] = { { "X", "\"\xc3\xa9\\" }, { "Empty", "" } };
	static const struct {
		const char *type, *data;
		size_t size;
		bool text;
	} cases[] = {
		{ NULL, "{\"a\":\"\xc3\xa9\"}", 10, true },
		{ "text/plain", "", 0, true },
		{ "application/octet-stream", "a\0b", 3, false },
		{ "application/octet-stream", "", 0, false },
		{ "text/plain", "\xff", 1, false },
	};
	struct place *p = *state;
	sqlite3 *db = place_connect(p);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char id[] = { (char)('a' + i), '\0' };
		struct outbox_message m = message(id);
		struct outbox_claimed back;

		m.content_type = cases[i].type;
		m.data = cases[i].size ? cases[i].data : NULL;
		m.size = cases[i].size;
		m.headers = headers;
		m.n_headers = ARRAY_SIZE(headers);
		run(db, "BEGIN");
		assert_int_equal(outbox_publish_sqlite(db, &m, &p->err), OUTBOX_OK);
		run(db, "COMMIT");
		assert_int_equal(sqlite_get(p->store, id, p->arena, &back, &p->err), OUTBOX_OK);
		assert_int_equal(back.message.size, cases[i].size);
		assert_memory_equal(back.message.data, cases[i].data, cases[i].size);
		assert_int_equal(back.message.n_headers, 2);
		assert_string_equal(back.message.headers[0].value, "\"\xc3\xa9\\");
		assert_null(back.malformed);
	}
	assert_int_equal(
		place_number(p, "SELECT count(*) FROM outbox_message WHERE payload IS NOT NULL"), 2);
	sqlite3_close(db);
}

/* An application that was built against a longer struct has a longer stride. */
static void a_newer_header_works(void **state)
{
	struct place *p = *state;
	struct {
		struct outbox_message m;
		char later[32];
	} array[2] = { { .m = message("one") }, { .m = message("two") } };
	sqlite3 *db = place_connect(p);

	array[0].m.struct_size = array[1].m.struct_size = sizeof(array[0]);
	run(db, "BEGIN");
	assert_int_equal(outbox_publish_sqlite_batch(db, &array[0].m, 2, 0, NULL, &p->err),
			 OUTBOX_OK);
	run(db, "COMMIT");
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE id IN"
					 " ('one', 'two')"),
			 2);
	sqlite3_close(db);
}

/* ---- the inbox ----------------------------------------------------------------------------- */

static bool accept(struct place *p, sqlite3 *db, const char *consumer, const char *id)
{
	bool first = false;

	if (outbox_inbox_accept_sqlite(db, consumer, id, &first, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return first;
}

static void an_id_is_accepted_once(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	bool first = true;

	run(db, "BEGIN");
	assert_int_equal(outbox_inbox_accept_sqlite(db, "billing", "1", &first, &p->err),
			 OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "run: outbox init --inbox"));
	run(db, "ROLLBACK");
	make_inbox(p);
	assert_int_equal(outbox_inbox_accept_sqlite(db, "billing", "1", &first, &p->err),
			 OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "BEGIN first"));
	run(db, "BEGIN");
	assert_true(accept(p, db, "billing", "1"));
	assert_false(accept(p, db, "billing", "1"));
	assert_true(accept(p, db, "mail", "1"));
	run(db, "ROLLBACK; BEGIN");
	assert_true(accept(p, db, "billing", "1"));
	run(db, "COMMIT; BEGIN");
	assert_false(accept(p, db, "billing", "1"));
	assert_true(accept(p, db, "mail", "1"));
	run(db, "COMMIT");
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_inbox"), 2);
	sqlite3_close(db);
}

static void what_the_inbox_cannot_take_is_refused(void **state)
{
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	char longest[257];
	bool first = false;

	memset(longest, 'x', 256);
	longest[256] = '\0';
	make_inbox(p);
	run(db, "BEGIN");
	assert_true(accept(p, db, longest + 1, longest + 1));
	assert_int_equal(outbox_inbox_accept_sqlite(db, longest, "1", &first, &p->err),
			 OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "consumer: "));
	assert_int_equal(outbox_inbox_accept_sqlite(db, "billing", longest, &first, &p->err),
			 OUTBOX_EINVAL);
	assert_non_null(strstr(p->err.message, "has 256 characters, at most 255"));
	assert_int_equal(outbox_inbox_accept_sqlite(db, "billing", "", &first, &p->err),
			 OUTBOX_EINVAL);
	assert_string_equal(p->err.message, "id: is empty; give it a value or leave it unset");
	assert_int_equal(outbox_inbox_accept_sqlite(db, NULL, "1", &first, &p->err), OUTBOX_EINVAL);
	assert_string_equal(p->err.message, "consumer: is missing");
	assert_int_equal(outbox_inbox_accept_sqlite(db, "billing", "1", NULL, &p->err),
			 OUTBOX_EINVAL);
	assert_int_equal(outbox_inbox_accept_sqlite(NULL, "billing", "1", &first, &p->err),
			 OUTBOX_EINVAL);
	assert_false(first);
	/* plain SQL */
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO outbox_inbox (consumer, id) VALUES ('a', '')"
				      " ON CONFLICT DO NOTHING",
				      NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	assert_non_null(strstr(sqlite3_errmsg(db), "id is text of 1 to 255 characters"));
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO outbox_inbox (consumer, id) VALUES ('a', NULL)"
				      " ON CONFLICT DO NOTHING",
				      NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	run(db, "COMMIT");
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(outside_a_transaction_it_refuses, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(it_commits_and_rolls_back_with_the_rows,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_batch_is_all_or_none, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_repeat_is_harmless, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(the_connection_is_left_as_it_was, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_database_without_outbox_is_told, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(payloads_come_back, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_newer_header_works, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(an_id_is_accepted_once, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_the_inbox_cannot_take_is_refused, place_setup,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
