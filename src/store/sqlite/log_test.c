/* SPDX-License-Identifier: Apache-2.0 */
/* What only this driver has: locks, the file, plans, and views that must agree with list(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "store/sqlite/place_test.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

static void an_idle_lane_writes_nothing(void **state)
{
	struct place *p = *state;
	struct outbox_head head = place_take(p, "events");
	struct outbox_claim claim = { .n = head.n, .fence_token = head.fence_token };
	sqlite3 *writer = place_connect(p);
	int64_t version = place_number(p, "PRAGMA data_version");

	/* Somebody else has the write lock: a poll must not want it. */
	assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_OK);
		assert_int_equal(claim.count, 0);
		assert_int_equal(claim.n, head.n);
	}
	sqlite3_exec(writer, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(writer);
	assert_int_equal(place_number(p, "PRAGMA data_version"), version);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_receipt"), head.n);
}

static void a_lock_is_ebusy_and_nothing_happened(void **state)
{
	struct place *p = *state;
	struct outbox_store *other = place_open(p, "?busy=0");
	struct outbox_message m = { .type = "a", .data = "1", .size = 1 };
	sqlite3 *writer = place_connect(p);

	assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite_append(other, &m, 1, NULL, NULL, &p->err), OUTBOX_EBUSY);
	sqlite3_exec(writer, "ROLLBACK", NULL, NULL, NULL);
	assert_int_equal(sqlite_append(other, &m, 1, NULL, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 1);
	sqlite3_close(writer);
	sqlite_close(other);
}

static void a_position_ahead_of_the_log_refuses(void **state)
{
	struct place *p = *state;
	struct outbox_head head;
	struct outbox_claim claim;

	place_publish(p, "a", NULL, NULL);
	place_drain(p, "events");
	head = place_take(p, "events");
	place_sql(p, "INSERT INTO outbox_meta VALUES ('janitor', 1); DELETE FROM outbox_message;"
		     " DELETE FROM outbox_meta WHERE name = 'janitor';"
		     " UPDATE sqlite_sequence SET seq = 0 WHERE name = 'outbox_message'");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_EPROTO);
	assert_int_equal(sqlite_take_over(p->store, "events", 0, "me", 99, &head, &p->err),
			 OUTBOX_EPROTO);
	assert_non_null(strstr(p->err.message, "the log ends at 0"));
	/* and when the log has come past it */
	place_publish(p, "b", NULL, NULL);
	place_publish(p, "c", NULL, NULL);
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_EPROTO);
	assert_int_equal(sqlite_take_over(p->store, "events", 0, "me", 99, &head, &p->err),
			 OUTBOX_EPROTO);
}

/* For every connection, in every language: nothing has to be loaded or set. */
static void replace_is_refused(void **state)
{
	static const char *const wrong[] = {
		"REPLACE INTO outbox_message (id, type, payload) VALUES ('one', 'b', '2')",
		"INSERT OR REPLACE INTO outbox_message (id, type, payload) VALUES ('two', 'b', '2'), ('one', 'b', '2')",
		"INSERT OR REPLACE INTO outbox_message (seq, type, payload) VALUES (1, 'b', '2')",
		"UPDATE OR REPLACE outbox_message SET id = 'one'",
		"INSERT INTO outbox_message (id, type, payload) VALUES ('one', 'b', '2') ON CONFLICT (id) DO UPDATE SET type = 'c'",
	};
	static const char *const harmless[] = {
		"INSERT INTO outbox_message (id, type, payload) VALUES ('one', 'b', '2') ON CONFLICT (id) DO NOTHING",
		"INSERT OR IGNORE INTO outbox_message (id, type, payload) VALUES ('one', 'b', '2')",
		"INSERT OR REPLACE INTO outbox_message (id, type, payload) VALUES ('three', 'b', '2')",
		"INSERT OR REPLACE INTO outbox_message (type, payload) VALUES ('b', '2')",
	};
	struct place *p = *state;

	place_publish(p, "a", NULL, "one");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (place_sql(p, wrong[i]) != SQLITE_CONSTRAINT)
			fail_msg("%s: is not refused", wrong[i]);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 1);
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (place_sql(p, harmless[i]) != SQLITE_OK)
			fail_msg("%s: is refused", harmless[i]);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 3);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE seq = 1 AND id = 'one'"
					 " AND type = 'a'"),
			 1);
	assert_int_equal(place_number(p, "SELECT value FROM outbox_meta WHERE name = 'schema'"), 6);
}

static void not_a_database_is_told(void **state)
{
	static const char text[] =
		"this is a text file, long enough to be looked at as a database, "
		"which has a header of one hundred bytes that begins differently";
	struct place *p = *state;
	struct outbox_store *store;
	char url[256];
	FILE *f = fopen(p->file, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, sizeof(text), f), sizeof(text));
	fclose(f);
	struct outbox_store_config config = { sizeof(config), p->url, &p->clock.base,
					      &p->random.base, NULL };
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_EPROTO);
	snprintf(url, sizeof(url), "sqlite:%s", p->folder);
	config.url = url;
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_ECONFIG);
	snprintf(url, sizeof(url), "sqlite:%s/no/such.db", p->folder);
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_ENOTFOUND);
	config.url = "sqlite://host/app.db";
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_ECONFIG);
	config.url = "sqlite::memory:";
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_ECONFIG);
	config.url = "sqlite:app.db?bsy=1s";
	assert_int_equal(sqlite_open(&config, false, &store, &p->err), OUTBOX_ECONFIG);
}

/* Statements that must never walk through the log or through all detours. */
static void plans_use_their_index(void **state)
{
	static const struct {
		enum sqlite_statement id;
		const char *plan;
	} wanted[] = {
		{ SQL_DETOUR_DUE, "outbox_detour_due" },
		{ SQL_DETOUR_DUE_ANY, "outbox_detour_due" },
		{ SQL_DETOUR_NEXT_DUE, "outbox_detour_due" },
		{ SQL_DETOUR_BLOCKS, "outbox_detour_key" },
		{ SQL_DETOUR_RUN, "outbox_detour_key" },
		{ SQL_DETOUR_PROMOTE, "outbox_detour_key" },
		{ SQL_DETOUR_SENDING, "outbox_detour_sending" },
		{ SQL_LOOK_DETOURS_IN, "outbox_detour_state" },
		{ SQL_LOOK_COVER, "outbox_receipt_pos" },
		{ SQL_TAIL_DETOURS, "outbox_detour_settled" },
		{ SQL_RECEIPT_LAST, "sqlite_autoindex_outbox_receipt_1" },
		{ SQL_STATS_MESSAGES, "COVERING INDEX" },
	};
	struct place *p = *state;
	sqlite3 *db = place_connect(p);

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		char sql[4096], plan[2048] = "";
		sqlite3_stmt *q;

		snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s",
			 sqlite_statement_text(wanted[i].id));
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
		while (sqlite3_step(q) == SQLITE_ROW) {
			strncat(plan, (const char *)sqlite3_column_text(q, 3),
				sizeof(plan) - strlen(plan) - 1);
			strncat(plan, "\n", sizeof(plan) - strlen(plan) - 1);
		}
		sqlite3_finalize(q);
		if (!strstr(plan, wanted[i].plan) || strstr(plan, "USE TEMP B-TREE"))
			fail_msg("%s\n%s", sql, plan);
	}
	sqlite3_close(db);
}

static const char *text_at(sqlite3_stmt *q, int column)
{
	const char *text = (const char *)sqlite3_column_text(q, column);

	return text ? text : "";
}

/* All ways in which a delivery can be told: one page of list() against one look at the view. */
static void compare_with_view(struct place *p)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter), .limit = 1000 };
	struct outbox_page page;
	sqlite3 *db = place_connect(p);
	sqlite3_stmt *q;
	size_t i = 0;

	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT seq, target, id, state, why, attempts, lane,"
					    " last_status_at, next_attempt_at, owner, key"
					    " FROM outbox_delivery ORDER BY seq, target",
					    -1, &q, NULL),
			 SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW) {
		const struct outbox_delivery *d = &page.rows[i];

		assert_true(i < page.count);
		assert_int_equal(sqlite3_column_int64(q, 0), d->seq);
		assert_string_equal((const char *)sqlite3_column_text(q, 1), d->target);
		assert_string_equal((const char *)sqlite3_column_text(q, 2), d->id);
		assert_string_equal((const char *)sqlite3_column_text(q, 3),
				    outbox_state_name(d->state));
		assert_int_equal(outbox_why_parse(text_at(q, 4)), d->why);
		assert_int_equal(sqlite3_column_int(q, 5), d->attempts);
		assert_int_equal(sqlite3_column_int(q, 6), d->lane);
		assert_int_equal(sqlite3_column_int64(q, 7), d->last_status_at);
		assert_int_equal(sqlite3_column_int64(q, 8), d->next_attempt_at);
		assert_string_equal(text_at(q, 9), d->owner ? d->owner : "");
		assert_string_equal(text_at(q, 10), d->key ? d->key : "");
		i++;
	}
	assert_int_equal(i, page.count);
	sqlite3_finalize(q);
	sqlite3_close(db);
}

static void the_view_agrees_with_list(void **state)
{
	static const char *const globs[] = { "order.*", "*.paid" };
	struct outbox_target_def def = { .name = "some",
					 .route = { globs, 2, OUTBOX_KIND_EVENT, false } };
	struct place *p = *state;
	struct outbox_claim claim;
	struct outbox_head head;

	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	for (int i = 0; i < 40; i++) {
		static const char *const types[] = { "order.placed", "user.made", "bill.paid" };
		char key[16];

		snprintf(key, sizeof(key), "k%d", i % 5);
		place_publish(p, types[i % 3], i % 7 ? key : NULL, NULL);
	}
	compare_with_view(p);
	for (int outcome = OUTBOX_OUT_DELIVERED; outcome <= OUTBOX_OUT_FAILED; outcome++) {
		const char *target = outcome % 2 ? "events" : "some";

		frozen_clock_step(&p->clock, OUTBOX_SECONDS);
		head = place_take(p, target);
		claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
		assert_int_equal(place_advance(p, target, &claim, 0, 4), OUTBOX_OK);
		compare_with_view(p);
		assert_int_equal(place_advance(p, target, &claim, outcome, 3), OUTBOX_OK);
		compare_with_view(p);
	}
	/* Another routing changes what is not settled yet, and only that. */
	def.route.n_types = 1;
	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite_target_pause(p->store, "some", true, "me", "why", &p->err),
			 OUTBOX_OK);
	compare_with_view(p);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_failed"),
			 place_number(p,
				      "SELECT count(*) FROM outbox_delivery WHERE state = 'failed'"));
	assert_int_equal(place_number(p, "SELECT sum(pending) FROM outbox_backlog"),
			 place_number(p, "SELECT count(*) FROM outbox_delivery WHERE why IN"
					 " ('new', 'paused')"));
}

/* What a library writes, what only people write, and what nobody can read. */
static void the_view_agrees_with_list_on_headers(void **state)
{
	static const char *const wanted[] = { "Tenant=acme*", "tenant=7", "REGION=*" };
	static const char *const written[] = {
		"{\"tenant\":\"acme\",\"region\":\"eu\"}",
		"{\"TENANT\":\"acme-2\",\"region\":\"\"}",
		"{\"tenant\":\"other\",\"region\":\"eu\"}",
		"{\"tenant\":\"acm\\u0065\",\"region\":\"a\\\"b\"}",
		"{\"tenant\":\"acme\"}",
		"{\"tenant\":7,\"region\":\"eu\"}",
		"{\"tenant\":[\"acme\"],\"region\":\"eu\"}",
		"{tenant}",
		"{}",
	};
	struct outbox_target_def def = { .name = "some",
					 .route = { .headers = wanted, .n_headers = 3 } };
	struct place *p = *state;
	struct outbox_claim claim;
	struct outbox_head head;

	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
		char sql[200];

		snprintf(sql, sizeof(sql),
			 "INSERT INTO outbox_message (type, payload, headers) VALUES ('t', '{}', '%s')",
			 written[i]);
		assert_int_equal(place_sql(p, sql), SQLITE_OK);
	}
	place_sql(p, "INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')");
	compare_with_view(p);
	assert_int_equal(place_number(p, "SELECT pending FROM outbox_backlog WHERE target = 'some'"),
			 4);
	head = place_take(p, "some");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	assert_int_equal(place_advance(p, "some", &claim, 0, 2), OUTBOX_OK);
	assert_int_equal(claim.count, 2);
	compare_with_view(p);
	assert_int_equal(place_advance(p, "some", &claim, OUTBOX_OUT_DELIVERED, 2), OUTBOX_OK);
	assert_int_equal(claim.count, 2);
	assert_int_equal(place_advance(p, "some", &claim, OUTBOX_OUT_FAILED, 2), OUTBOX_OK);
	compare_with_view(p);
}

/* The newest routing may ask for something else than the one by which a lane has passed it. */
static void corrections_go_by_every_routing(void **state)
{
	const char *wanted = "tenant=acme";
	struct outbox_target_def def = { .name = "some",
					 .route = { .headers = &wanted, .n_headers = 1 } };
	struct outbox_header header = { "tenant", "acme" };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_amend amend = {
		.struct_size = sizeof(amend), .id = "m", .reason = "test", .message = &m
	};
	struct place *p = *state;

	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	place_sql(p, "INSERT INTO outbox_message (id, type, payload) VALUES ('m', 't', '{}')");
	wanted = "region=eu";
	assert_int_equal(sqlite_target_put(p->store, &def, NULL, &p->err), OUTBOX_OK);
	m.type = "t";
	m.headers = &header;
	m.n_headers = 1;
	assert_int_equal(store_amend(p->store, &amend, NULL, &p->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(p->err.message, "whether some gets it goes by its headers"));
	header.value = "third";
	assert_int_equal(store_amend(p->store, &amend, NULL, &p->err), OUTBOX_OK);
}

static void tend_cuts_the_wal(void **state)
{
	struct place *p = *state;
	char *payload = test_malloc((size_t)1 << 20);

	memset(payload, 'x', (size_t)1 << 20);
	for (int i = 0; i < 70; i++) {
		struct outbox_message m = { .type = "a",
					    .content_type = "text/plain",
					    .data = payload,
					    .size = (size_t)1 << 20 };

		assert_int_equal(sqlite_append(p->store, &m, 1, NULL, NULL, &p->err), OUTBOX_OK);
	}
	test_free(payload);
	assert_true(sqlite_wal_size(sqlite_of(p->store)) > (int64_t)64 << 20);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite_wal_size(sqlite_of(p->store)), 0);
}

/* A message larger than the relay's memory fails and stops nobody. */
static void a_giant_stops_nobody(void **state)
{
	struct place *p = *state;
	struct outbox_head head;
	struct outbox_claim claim;

	place_sql(p,
		  "INSERT INTO outbox_message (type, payload_bin) VALUES ('a', zeroblob(80000000))");
	place_publish(p, "a", NULL, NULL);
	head = place_take(p, "events");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_OK);
	assert_true(claim.count >= 1);
	assert_non_null(claim.items[0].malformed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_idle_lane_writes_nothing, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_lock_is_ebusy_and_nothing_happened,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_position_ahead_of_the_log_refuses,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(replace_is_refused, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(not_a_database_is_told, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(plans_use_their_index, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(the_view_agrees_with_list, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(the_view_agrees_with_list_on_headers,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(corrections_go_by_every_routing, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(tend_cuts_the_wal, place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_giant_stops_nobody, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
