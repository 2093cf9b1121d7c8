/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/key_hash.h"
#include "store/sqlite/place_test.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

extern const char sqlite_schema_sql[];

static const struct sqlite_migration three[] = {
	{ 1, 1, sqlite_schema_sql },
	{ 2, 1, "CREATE TABLE outbox_second (x)" },
	{ 3, 2, "ALTER TABLE outbox_second ADD COLUMN y; INSERT INTO outbox_second VALUES (1, 2)" },
};
static const struct sqlite_migrations first_only = { three, 1,
						     "CREATE VIEW outbox_log AS SELECT 1 AS made" };
static const struct sqlite_migrations all_three = {
	three, 3, "CREATE VIEW outbox_log AS SELECT y AS made FROM outbox_second"
};

static int64_t version(struct place *p)
{
	return place_number(p, "SELECT value FROM outbox_meta WHERE name = 'schema'");
}

static void upgrade_runs_what_is_missing(void **state)
{
	struct place *p = *state;
	struct sqlite_store *s = sqlite_of(p->store);
	int from = 0;

	assert_int_equal(sqlite_schema_init(s, &first_only, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(place_sql(p, "INSERT INTO outbox_message (type, payload) VALUES ('a', '1')"),
			 SQLITE_OK);
	assert_int_equal(sqlite_schema_upgrade(s, &all_three,
					       &(struct outbox_init_options){ .dry_run = true },
					       &from, &p->err),
			 OUTBOX_OK);
	assert_int_equal(version(p), 1);
	assert_int_equal(place_number(p, "SELECT made FROM outbox_log"), 1);
	assert_int_equal(sqlite_schema_upgrade(s, &all_three, NULL, &from, &p->err), OUTBOX_OK);
	assert_int_equal(from, 1);
	assert_int_equal(version(p), 3);
	assert_int_equal(place_number(p, "SELECT value FROM outbox_meta WHERE name = 'min_reader'"),
			 2);
	assert_int_equal(place_number(p, "SELECT made FROM outbox_log"), 2);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 1);
	assert_int_equal(sqlite_schema_upgrade(s, &all_three, NULL, &from, &p->err), OUTBOX_OK);
	assert_int_equal(from, 3);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_second"), 1);
}

static void a_failed_upgrade_changes_nothing(void **state)
{
	static const struct sqlite_migration broken[] = {
		{ 1, 1, sqlite_schema_sql },
		{ 2, 1, "CREATE TABLE outbox_second (x)" },
		{ 3, 1, "CREATE TABLE outbox_second (x)" },
	};
	/* in a migration, and in the code behind the last one */
	static const struct sqlite_migrations fail[] = { { broken, 3, "" },
							 { broken, 2, "CREATE VIEW" } };
	struct place *p = *state;
	struct sqlite_store *s = sqlite_of(p->store);

	assert_int_equal(sqlite_schema_init(s, &first_only, NULL, &p->err), OUTBOX_OK);
	for (size_t i = 0; i < ARRAY_SIZE(fail); i++) {
		assert_int_not_equal(sqlite_schema_upgrade(s, &fail[i], NULL, NULL, &p->err),
				     OUTBOX_OK);
		assert_int_equal(version(p), 1);
		assert_int_equal(place_number(p, "SELECT count(*) FROM sqlite_master"
						 " WHERE name = 'outbox_second'"),
				 0);
		assert_int_equal(place_number(p, "SELECT made FROM outbox_log"), 1);
	}
}

/* Whatever became of them: drop_code_sql knows all of code.sql's names, or the second one would be in its way. */
static void upgrade_makes_the_code_anew(void **state)
{
	static const char text[] =
		"SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')"
		" AND sql NOT LIKE '%SELECT 0%'";
	struct place *p = *state;
	int64_t count = place_number(p, text);
	int from = 0;

	place_sql(p, "DROP TRIGGER outbox_message_keep; DROP VIEW outbox_backlog;"
		     "DROP VIEW outbox_log; CREATE VIEW outbox_log AS SELECT 0");
	assert_int_equal(place_number(p, text), count - 3);
	assert_int_equal(sqlite_upgrade(p->store, NULL, &from, &p->err), OUTBOX_OK);
	assert_int_equal(from, version(p));
	assert_int_equal(place_number(p, text), count);
}

static void a_newer_schema_is_refused_unless_it_lets_us_read(void **state)
{
	struct place *p = *state;
	struct sqlite_store *s = sqlite_of(p->store);
	struct outbox_store *other;
	int64_t seq;
	struct outbox_message m = { .type = "a", .data = "1", .size = 1 };

	assert_int_equal(sqlite_schema_init(s, &sqlite_migrations, NULL, &p->err), OUTBOX_OK);
	place_sql(p, "UPDATE outbox_meta SET value = 7 WHERE name IN ('schema', 'min_reader')");
	other = place_open(p, "");
	assert_int_equal(sqlite_append(other, &m, 1, &seq, NULL, &p->err), OUTBOX_ESCHEMA);
	assert_string_equal(p->err.message,
			    "this database has outbox schema 7, this program knows 6; "
			    "use a newer outbox");
	place_sql(p, "UPDATE outbox_meta SET value = 1 WHERE name = 'min_reader'");
	assert_int_equal(sqlite_append(other, &m, 1, &seq, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(store_init(other, NULL, &p->err), OUTBOX_ESCHEMA);
	sqlite_close(other);
}

static void foreign_tables_are_in_the_way(void **state)
{
	struct place *p = *state;

	place_sql(p, "CREATE TABLE outbox_message (mine)");
	assert_int_equal(store_init(p->store, NULL, &p->err), OUTBOX_ESCHEMA);
	assert_non_null(strstr(p->err.message, "outbox_message"));
	place_sql(p, "DROP TABLE outbox_message; CREATE TABLE outbox_meta (mine)");
	assert_int_equal(store_init(p->store, NULL, &p->err), OUTBOX_ESCHEMA);
	place_sql(p, "DROP TABLE outbox_meta");
	assert_int_equal(store_init(p->store, NULL, &p->err), OUTBOX_OK);
}

/* Names that a later version is the first to have. */
static void a_foreign_view_is_in_the_way_of_an_upgrade(void **state)
{
	struct place *p = *state;

	assert_int_equal(sqlite_schema_init(sqlite_of(p->store), &first_only, NULL, &p->err),
			 OUTBOX_OK);
	place_sql(p, "CREATE VIEW outbox_dead_letter AS SELECT 5 AS mine");
	assert_int_equal(sqlite_upgrade(p->store, NULL, NULL, &p->err), OUTBOX_ESCHEMA);
	assert_string_equal(p->err.message,
			    "a view outbox_dead_letter that is not ours is in the way; "
			    "rename it and run outbox upgrade again");
	assert_int_equal(place_number(p, "SELECT mine FROM outbox_dead_letter"), 5);
	place_sql(p, "DROP VIEW outbox_dead_letter");
	assert_int_equal(sqlite_upgrade(p->store, NULL, NULL, &p->err), OUTBOX_OK);
}

static void utf16_is_refused(void **state)
{
	struct place *p = *state;

	place_sql(p, "PRAGMA encoding = 'UTF-16'; CREATE TABLE mine (x)");
	sqlite_close(p->store);
	p->store = place_open(p, "");
	assert_int_equal(store_init(p->store, NULL, &p->err), OUTBOX_ENOTSUP);
}

static void drop_leaves_what_is_not_ours(void **state)
{
	struct place *p = *state;

	place_sql(p, "CREATE TABLE outbox_mine (x)");
	assert_int_equal(sqlite_drop(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(
		place_number(p, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'outbox%'"), 1);
	assert_int_equal(store_init(p->store, NULL, &p->err), OUTBOX_OK);
}

/* Every kind of text: the view's formula and key_hash() must never part. */
static void the_key_hash_is_the_same_in_sql(void **state)
{
	static const char *const letters[] = {
		"a",    "Z", "0", "9", "-", " ", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\x7f", "'"
	};
	struct place *p = *state;
	sqlite3 *db = place_connect(p);
	sqlite3_stmt *add, *get;

	assert_int_equal(sqlite3_prepare_v2(db,
					    "INSERT INTO outbox_message (type, key, payload)"
					    " VALUES ('a', ?1, '1')",
					    -1, &add, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT slot FROM outbox_log WHERE seq = ?1", -1,
					    &get, NULL),
			 SQLITE_OK);
	/* empty keys are refused by now, but older logs have them */
	sqlite3_exec(db, "BEGIN; DROP TRIGGER outbox_message_insert", NULL, NULL, NULL);
	for (int i = 0; i < 3000; i++) {
		char key[160] = "";
		int length = (int)random_between(&p->random.base, 0, 30);

		for (int j = 0; j < length; j++)
			strcat(key, letters[random_between(&p->random.base, 0,
							   (int64_t)ARRAY_SIZE(letters) - 1)]);
		sqlite3_bind_text(add, 1, key, -1, SQLITE_TRANSIENT);
		assert_int_equal(sqlite3_step(add), SQLITE_DONE);
		sqlite3_reset(add);
		sqlite3_bind_int64(get, 1, sqlite3_last_insert_rowid(db));
		assert_int_equal(sqlite3_step(get), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int(get, 0), key_hash(key));
		sqlite3_reset(get);
	}
	sqlite3_finalize(add);
	sqlite3_finalize(get);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void nulls_mean_the_default(void **state)
{
	struct place *p = *state;

	assert_int_equal(
		place_sql(p, "INSERT INTO outbox_message (id, type, key, kind, published,"
			     " priority, created_at, event_time, due_at, expires_at,"
			     " content_type, source, subject, topic, correlation_id,"
			     " causation_id, traceparent, headers, payload, payload_bin)"
			     " VALUES (NULL, 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
			     " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1', NULL)"),
		SQLITE_OK);
	assert_int_equal(place_sql(p, "INSERT INTO outbox_message (type, payload) VALUES ('a', '1')"),
			 SQLITE_OK);
	assert_int_equal(place_number(p,
				      "SELECT count(*) FROM outbox_message WHERE length(id) = 36"
				      " AND substr(id, 15, 1) = '7' AND created_at > 1600000000000000"
				      " AND event_time = created_at AND substr(id, 20, 1) GLOB '[89ab]'"
				      " AND id = lower(id)"),
			 2);
	assert_int_equal(place_drain(p, "events"), 2);
}

static void the_log_is_immutable(void **state)
{
	struct place *p = *state;

	place_publish(p, "a", NULL, "one");
	place_publish(p, "a", NULL, "two");
	assert_int_equal(place_sql(p, "UPDATE outbox_message SET type = 'b'"), SQLITE_CONSTRAINT);
	assert_int_equal(place_sql(p, "DELETE FROM outbox_message"), SQLITE_CONSTRAINT);
	assert_int_equal(place_sql(p, "UPDATE sqlite_sequence SET seq = 9 WHERE name = 'outbox_message';"
				      "INSERT INTO outbox_message (seq, type, payload)"
				      " VALUES (5, 'a', '1')"),
			 SQLITE_CONSTRAINT);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE type = 'a'"), 2);
}

static void bad_rows_are_refused(void **state)
{
	static const char *const bad[] = {
		"(type) VALUES ('a')",
		"(type, payload, payload_bin) VALUES ('a', '1', x'00')",
		"(type, payload) VALUES ('a', x'31')",
		"(type, payload_bin) VALUES ('a', 'text')",
		"(type, payload) VALUES ('', '1')",
		"(type, payload) VALUES (NULL, '1')",
		"(type, payload, key) VALUES ('a', '1', 'a' || char(0) || 'b')",
		"(type, payload, key) VALUES ('a', '1', x'41')",
		"(type, payload, kind) VALUES ('a', '1', 'rumour')",
		"(type, payload, headers) VALUES ('a', '1', '[]')",
		"(type, payload, due_at) VALUES ('a', '1', '2026-01-01')",
		"(type, payload, priority) VALUES ('a', '1', 101)",
		"(type, payload, published) VALUES ('a', '1', 2)",
		"(type, payload, id) VALUES ('a', '1', '')",
		"(type, payload, key) VALUES ('a', '1', '')",
		"(type, payload, due_at) VALUES ('a', '1', 1794821576)",
		"(type, payload, due_at) VALUES ('a', '1', 1794821576000)",
	};
	struct place *p = *state;
	char sql[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(sql, sizeof(sql), "INSERT INTO outbox_message %s", bad[i]);
		if (place_sql(p, sql) != SQLITE_CONSTRAINT)
			fail_msg("taken: %s", bad[i]);
	}
	/* A connection that trusts no schema can publish all the same. */
	assert_int_equal(place_sql(p, "PRAGMA trusted_schema = OFF; PRAGMA recursive_triggers = ON;"
				      "INSERT INTO outbox_message (type, payload, headers)"
				      " VALUES ('a', '1', ' {\"x\":\"y\"}\n')"),
			 SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(upgrade_runs_what_is_missing, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_failed_upgrade_changes_nothing, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(upgrade_makes_the_code_anew, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_foreign_view_is_in_the_way_of_an_upgrade,
						place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(a_newer_schema_is_refused_unless_it_lets_us_read,
						place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(foreign_tables_are_in_the_way, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(utf16_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(drop_leaves_what_is_not_ours, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(the_key_hash_is_the_same_in_sql, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(nulls_mean_the_default, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(the_log_is_immutable, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(bad_rows_are_refused, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
