/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens while somebody waits for a lock. The busy handler of the connection that waits plays
 * the rest of the world: it lets time pass and gives the lock back, or looks whether others could write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/sqlite/place_test.h"

#include <string.h>

#define WAITED (7 * OUTBOX_SECONDS)

struct waiting {
	struct place *place;
	sqlite3 *other; /* has the write lock */
	int calls;
	bool blocked; /* a publisher could not write meanwhile */
};

/* ---- the time is that of the moment when the lock was got ------------------------------------ */

static int give_back(void *context, int n)
{
	struct waiting *w = context;

	(void)n;
	w->calls++;
	frozen_clock_step(&w->place->clock, WAITED);
	assert_int_equal(sqlite3_exec(w->other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	return 1;
}

static void lock_others_out(struct waiting *w)
{
	sqlite3_busy_handler(sqlite_of(w->place->store)->db, give_back, w);
	assert_int_equal(sqlite3_exec(w->other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void assert_settled_at(struct place *p, outbox_time time)
{
	assert_int_equal(place_number(p, "SELECT settled_at FROM outbox_receipt"
					 " ORDER BY number DESC LIMIT 1"),
			 time);
}

static void a_lane_is_taken_when_the_lock_is_got(void **state)
{
	struct place *p = *state;
	struct waiting w = { .place = p, .other = place_connect(p) };

	lock_others_out(&w);
	place_take(p, "events");
	assert_int_equal(w.calls, 1);
	assert_settled_at(p, TEST_START + WAITED);
	sqlite3_close(w.other);
}

static void a_claim_is_made_when_the_lock_is_got(void **state)
{
	struct place *p = *state;
	struct waiting w = { .place = p, .other = place_connect(p) };
	struct outbox_claim claim;
	struct outbox_head head;

	place_publish(p, "a", "k", "m-1");
	head = place_take(p, "events");
	claim = (struct outbox_claim){ .n = head.n, .fence_token = head.fence_token };
	lock_others_out(&w);
	assert_int_equal(place_advance(p, "events", &claim, 0, 10), OUTBOX_OK);
	assert_int_equal(claim.count, 1);
	assert_int_equal(w.calls, 1);
	assert_int_equal(claim.store_now, TEST_START + WAITED);
	assert_settled_at(p, TEST_START + WAITED);

	/* The pause before the next try begins when it is written down. */
	lock_others_out(&w);
	assert_int_equal(place_advance(p, "events", &claim, OUTBOX_OUT_WAITING, 0), OUTBOX_OK);
	assert_int_equal(w.calls, 2);
	assert_settled_at(p, TEST_START + 2 * WAITED);
	assert_int_equal(place_number(p, "SELECT min(last_status_at) FROM outbox_detour"),
			 TEST_START + 2 * WAITED);
	sqlite3_close(w.other);
}

/* ---- cutting the WAL keeps nobody waiting ---------------------------------------------------- */

static int try_to_publish(void *context, int n)
{
	struct waiting *w = context;

	(void)n;
	w->calls++;
	sqlite3_busy_timeout(w->other, 0);
	if (sqlite3_exec(w->other, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		w->blocked = true;
	return 0;
}

static void grow_wal(struct place *p)
{
	sqlite3 *db = place_connect(p);

	sqlite3_wal_autocheckpoint(db, 0);
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO outbox_message (type, payload_bin)"
				      " VALUES ('a', zeroblob(70000000))",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_true(sqlite_wal_size(sqlite_of(p->store)) >= (int64_t)64 << 20);
}

static sqlite3 *begin_reading(struct place *p)
{
	sqlite3 *db = place_connect(p);

	assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM outbox_meta", NULL, NULL,
				      NULL),
			 SQLITE_OK);
	return db;
}

static int busy_timeout_of(struct place *p)
{
	sqlite3 *db = sqlite_of(p->store)->db;
	sqlite3_stmt *q;
	int value;

	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA busy_timeout", -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	value = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return value;
}

/* Tend with somebody reading who is in the way of cutting: nobody waits, nothing is cut. */
static void tend_beside(struct place *p, sqlite3 *reader)
{
	struct waiting w = { .place = p, .other = place_connect(p) };

	sqlite3_busy_handler(sqlite_of(p->store)->db, try_to_publish, &w);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_false(w.blocked);
	assert_int_equal(w.calls, 0);
	assert_true(sqlite_wal_size(sqlite_of(p->store)) >= (int64_t)64 << 20);
	sqlite3_close(reader);

	/* Once they are gone it is cut, and the store waits for locks as it did. */
	sqlite3_busy_timeout(sqlite_of(p->store)->db, 1);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite_wal_size(sqlite_of(p->store)), 0);
	assert_int_equal(busy_timeout_of(p), sqlite_of(p->store)->busy_ms);
	sqlite3_close(w.other);
}

/* All of the WAL can be copied, but a reader needs it where it is. */
static void a_reader_of_the_newest_keeps_nobody_waiting(void **state)
{
	struct place *p = *state;

	grow_wal(p);
	tend_beside(p, begin_reading(p));
}

/* Only a part can be copied. */
static void a_reader_of_the_old_keeps_nobody_waiting(void **state)
{
	struct place *p = *state;
	sqlite3 *reader = begin_reading(p);

	grow_wal(p);
	tend_beside(p, reader);
}

/* A publisher in its transaction is not waited for, either. */
static void a_writer_is_left_alone(void **state)
{
	struct place *p = *state;
	struct waiting w = { .place = p, .other = place_connect(p) };

	grow_wal(p);
	sqlite3_busy_handler(sqlite_of(p->store)->db, try_to_publish, &w);
	assert_int_equal(sqlite3_exec(w.other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(w.calls, 0);
	assert_true(sqlite_wal_size(sqlite_of(p->store)) >= (int64_t)64 << 20);
	assert_int_equal(sqlite3_exec(w.other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(w.other);
}

/* A small WAL is left as it is: cutting it would only make it grow again. */
static void a_small_wal_is_kept(void **state)
{
	struct place *p = *state;
	int64_t size;

	assert_int_equal(place_sql(p, "PRAGMA wal_autocheckpoint = 0;"
				      " INSERT INTO outbox_message (type, payload_bin)"
				      " VALUES ('a', zeroblob(2000000))"),
			 SQLITE_OK);
	size = sqlite_wal_size(sqlite_of(p->store));
	assert_true(size >= 2000000);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(sqlite_wal_size(sqlite_of(p->store)), size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lane_is_taken_when_the_lock_is_got,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_claim_is_made_when_the_lock_is_got,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_reader_of_the_newest_keeps_nobody_waiting,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_reader_of_the_old_keeps_nobody_waiting,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_writer_is_left_alone, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_small_wal_is_kept, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
