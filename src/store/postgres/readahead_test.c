/* SPDX-License-Identifier: Apache-2.0 */
/* What was read ahead is claimed when it is what the claim would be, and never otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/postgres/readahead.h"
#include "store/store.h"

#define BATCH 5

/* One owner of lane 0. */
struct owner {
	struct place *p;
	struct outbox_store *store;
	int64_t route_version;
	struct outbox_settlement settled[BATCH];
	struct outbox_claim claim;
};

static struct owner begin(struct place *p)
{
	struct owner o = { .p = p, .store = p->store, .route_version = 1 };
	struct outbox_head head;

	assert_int_equal(pg_take_over(o.store, "events", 0, "me", ++p->token, &head, &p->err),
			 OUTBOX_OK);
	o.claim.n = head.n;
	o.claim.fence_token = head.fence_token;
	return o;
}

static int advance(struct owner *o, size_t max, size_t bytes)
{
	struct outbox_settle_and_claim request = { .target = "events",
						   .owner = "me",
						   .n = o->claim.n,
						   .fence_token = o->claim.fence_token,
						   .new_token = ++o->p->token,
						   .route_version = o->route_version,
						   .settled = o->settled,
						   .n_settled = o->claim.count,
						   .max_messages = max,
						   .max_bytes = bytes };

	for (size_t i = 0; i < o->claim.count; i++) {
		o->settled[i].seq = o->claim.items[i].seq;
		if (!o->settled[i].outcome)
			o->settled[i].outcome = OUTBOX_OUT_DELIVERED;
	}
	return store_settle_and_claim(o->store, &request, o->p->arena, &o->claim, &o->p->err);
}

/* The next claim, everything before delivered. */
static void next(struct owner *o)
{
	if (advance(o, BATCH, 1 << 20) != OUTBOX_OK)
		fail_msg("%s", o->p->err.message);
	for (int i = 0; i < BATCH; i++)
		o->settled[i] = (struct outbox_settlement){ 0 };
}

/* Two claims in, the third is waiting in the connection. */
static struct owner read_ahead(struct place *p)
{
	struct owner o = begin(p);

	next(&o);
	next(&o);
	assert_int_equal(o.claim.count, BATCH);
	assert_non_null(pg_of(o.store)->prefetch);
	return o;
}

static void expect(const struct owner *o, int64_t first, size_t count)
{
	assert_int_equal(o->claim.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(o->claim.items[i].seq, first + (int64_t)i);
		assert_string_equal(o->claim.items[i].message.type, "t");
		assert_int_equal(o->claim.items[i].message.size, 2);
	}
}

/* A session makes its figures known when it ends, which is after the client has gone. */
static void reopen(struct owner *o)
{
	int pid = PQbackendPID(pg_of(o->store)->conn);

	store_close(o->p->store);
	while (place_number(o->p, "SELECT count(*) FROM pg_stat_activity WHERE pid = %d", pid))
		place_sql(o->p, "SELECT pg_sleep(0.01)");
	o->p->store = o->store = place_open(o->p, o->p->url);
}

/* How many rows of the log the database has read so far. */
static int64_t rows_read(struct place *p)
{
	place_sql(p, "SELECT pg_stat_force_next_flush()");
	return place_number(p,
			    "SELECT coalesce(sum(idx_tup_fetch), 0) FROM pg_stat_user_tables"
			    " WHERE schemaname = '%s' AND relname LIKE 'outbox_message%%'",
			    p->schema);
}

/* Each with a key of its own, but for two. */
static void place_publish_keyed(struct place *p, int count)
{
	place_sql(p,
		  "INSERT INTO outbox_message (type, key, payload)"
		  " SELECT 't', 'key ' || CASE i WHEN %d THEN 1 ELSE i END, '{}' FROM generate_series(1, %d) i",
		  3 * BATCH + 2, count);
}

static void every_message_comes_once_and_in_order(void **state)
{
	struct owner o = begin(*state);

	place_publish(o.p, 7 * BATCH + 3);
	for (int i = 0; i < 7; i++) {
		next(&o);
		expect(&o, 1 + i * BATCH, BATCH);
	}
	next(&o);
	expect(&o, 1 + 7 * BATCH, 3);
	next(&o);
	expect(&o, 0, 0);
	place_publish(o.p, 2);
	next(&o);
	expect(&o, 7 * BATCH + 4, 2);
}

/* Without it each row is looked at twice: counted, then returned. */
static void a_row_is_read_once(void **state)
{
	struct owner o = begin(*state);
	int64_t before;

	place_publish(o.p, 100 * BATCH);
	next(&o);
	next(&o);
	next(&o);
	reopen(&o);
	before = rows_read(o.p);
	for (int i = 0; i < 90; i++)
		next(&o);
	reopen(&o);
	assert_in_range(rows_read(o.p) - before, 90 * BATCH, 120 * BATCH);
}

/* The same in a lane with a detour: the first message waits for an hour. */
static void a_row_is_read_once_beside_a_detour(void **state)
{
	struct owner o = begin(*state);
	int64_t before;

	place_publish_keyed(o.p, 100 * BATCH);
	next(&o);
	o.settled[0].outcome = OUTBOX_OUT_WAITING;
	o.settled[0].delay = OUTBOX_HOURS;
	for (int i = 0; i < 5; i++)
		next(&o);
	reopen(&o);
	before = rows_read(o.p);
	for (int i = 0; i < 90; i++)
		next(&o);
	reopen(&o);
	assert_in_range(rows_read(o.p) - before, 90 * BATCH, 130 * BATCH);
}

/* Rows that were read ahead, one of them blocked, and a retry that is due: merged in the order of the log. */
static void rows_are_merged_with_detours(void **state)
{
	struct owner o = begin(*state);

	place_publish_keyed(o.p, 6 * BATCH);
	next(&o);
	/* the key of 1 is that of 3 * BATCH + 2 */
	o.settled[0].outcome = OUTBOX_OUT_WAITING;
	o.settled[0].delay = OUTBOX_HOURS;
	next(&o);
	next(&o);
	expect(&o, 2 * BATCH + 1, BATCH);
	o.settled[0].outcome = OUTBOX_OUT_WAITING; /* again at once */
	next(&o);
	assert_int_equal(o.claim.count, BATCH);
	assert_int_equal(o.claim.items[0].seq, 2 * BATCH + 1);
	assert_true(o.claim.items[0].detour);
	assert_int_equal(o.claim.items[0].message.size, 2);
	for (size_t i = 1; i < BATCH; i++) {
		bool blocked = i == 2;

		assert_int_equal(o.claim.items[i].seq, 3 * BATCH + i);
		assert_int_equal(o.claim.items[i].blocked, blocked);
		assert_false(o.claim.items[i].detour);
		assert_int_equal(o.claim.items[i].message.data != NULL, !blocked);
	}
	o.settled[2].outcome = OUTBOX_OUT_PARKED;
	next(&o);
	expect(&o, 4 * BATCH, BATCH);
	/* and what was told in time was used */
	assert_int_equal(pg_readahead_of(pg_of(o.store), 0)->rest, 0);
	assert_true(pg_readahead_of(pg_of(o.store), 0)->keyed);
}

/* What came back unsent is next, not what lies behind it. */
static void what_was_returned_goes_first(void **state)
{
	struct owner o;

	place_publish(*state, 4 * BATCH);
	o = read_ahead(*state);
	for (int i = 2; i < BATCH; i++)
		o.settled[i].outcome = OUTBOX_OUT_RETURNED;
	next(&o);
	expect(&o, BATCH + 3, BATCH);
}

/* The same after a call that claimed nothing. */
static void what_was_returned_waits_for_its_turn(void **state)
{
	struct place *p = *state;
	struct owner o;

	place_publish(p, 4 * BATCH);
	o = read_ahead(p);
	for (int i = 2; i < BATCH; i++)
		o.settled[i].outcome = OUTBOX_OUT_RETURNED;
	place_sql(p, "UPDATE outbox_target SET paused = true");
	next(&o);
	assert_int_equal(o.claim.count, 0);
	place_sql(p, "UPDATE outbox_target SET paused = false");
	next(&o);
	expect(&o, BATCH + 3, BATCH);
}

/* What was in flight goes out again, and first. */
static void a_lane_taken_anew_begins_where_it_stands(void **state)
{
	struct owner o;

	place_publish(*state, 4 * BATCH);
	read_ahead(*state);
	o = begin(*state);
	next(&o);
	expect(&o, BATCH + 1, BATCH);
}

static void what_an_operator_discards_stays(void **state)
{
	struct place *p = *state;
	const char *const ids[] = { "twelve" };
	struct outbox_filter filter = {
		.struct_size = sizeof(filter), .ids = ids, .n_ids = 1, .target = "events"
	};
	struct outbox_act act = { .action = OUTBOX_DISCARD, .filter = &filter, .reason = "test" };
	struct outbox_store *operators = place_open(p, p->url);
	struct outbox_acted acted;
	struct owner o;

	place_publish(p, 11);
	place_sql(p, "INSERT INTO outbox_message (id, type, payload) VALUES ('twelve', 't', '{}')");
	place_publish(p, 8);
	o = read_ahead(p);
	if (store_act(operators, &act, &acted, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	assert_int_equal(acted.done, 1);
	store_close(operators);
	next(&o);
	assert_int_equal(o.claim.count, BATCH);
	assert_int_equal(o.claim.items[0].seq, 11);
	for (size_t i = 1; i < BATCH; i++)
		assert_int_equal(o.claim.items[i].seq, 12 + i);
}

/* Somebody else had the lane in between. */
static void a_lost_lane_is_fenced(void **state)
{
	struct place *p = *state;
	struct outbox_store *rival = place_open(p, p->url);
	struct outbox_head head;
	struct owner o;

	place_publish(p, 4 * BATCH);
	o = read_ahead(p);
	assert_int_equal(pg_take_over(rival, "events", 0, "rival", ++p->token, &head, &p->err),
			 OUTBOX_OK);
	store_close(rival);
	assert_int_equal(advance(&o, BATCH, 1 << 20), OUTBOX_EFENCED);
	/* and the connection is as good as before */
	o = begin(p);
	next(&o);
	assert_int_equal(o.claim.items[0].seq, BATCH + 1);
}

static void no_more_than_asked_for(void **state)
{
	struct owner o;

	place_publish(*state, 5 * BATCH);
	o = read_ahead(*state);
	assert_int_equal(advance(&o, 2, 1 << 20), OUTBOX_OK);
	expect(&o, 2 * BATCH + 1, 2);
	next(&o);
	expect(&o, 2 * BATCH + 3, BATCH);
	next(&o);
	assert_int_equal(advance(&o, BATCH, 4), OUTBOX_OK); /* bytes: two messages */
	assert_int_equal(o.claim.count, 2);
	assert_int_equal(advance(&o, 0, 1 << 20), OUTBOX_OK);
	assert_int_equal(o.claim.count, 0);
	next(&o);
	assert_int_equal(o.claim.items[0].seq, 4 * BATCH + 5);
}

/* With a large message among them nothing is read ahead: the claim has it, whole, and its neighbours. */
static void a_large_message_is_read_by_its_claim(void **state)
{
	struct place *p = *state;
	struct owner o;

	place_publish(p, 2 * BATCH + 2);
	place_sql(p, "INSERT INTO outbox_message (type, payload) VALUES ('t', repeat('x', 500000))");
	place_sql(p, "INSERT INTO outbox_message (type, payload_bin) VALUES ('t', '\\x6162')");
	o = read_ahead(p);
	next(&o);
	assert_int_equal(o.claim.count, 4);
	assert_int_equal(o.claim.items[2].message.size, 500000);
	assert_memory_equal(o.claim.items[3].message.data, "ab", 2);
}

/* What was read by the old route is not claimed by the new one. */
static void a_new_route_reads_anew(void **state)
{
	struct place *p = *state;
	static const char *const types[] = { "wanted" };
	struct outbox_target_def def = { .name = "events",
					 .route = { .types = types, .n_types = 1 } };
	int64_t version;
	struct owner o;

	place_publish(p, 4 * BATCH);
	o = read_ahead(p);
	assert_int_equal(pg_target_put(p->store, &def, &version, &p->err), OUTBOX_OK);
	assert_int_not_equal(version, 1);
	o.route_version = version;
	next(&o);
	assert_int_equal(o.claim.count, 0);
}

/* Whatever the database says: a reader must not make publishers fail. */
static void publishers_are_not_aborted(void **state)
{
	struct place *p = *state;
	PGresult *shown;
	struct owner o;

	place_sql(p, "ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'");
	store_close(p->store);
	p->store = place_open(p, p->url);
	place_sql(p, "ALTER ROLE CURRENT_USER RESET default_transaction_isolation");
	place_publish(p, 4 * BATCH);
	o = read_ahead(p);
	next(&o);
	assert_int_equal(pg_prefetch_read(pg_of(p->store), &p->err), OUTBOX_OK);
	shown = PQexec(pg_of(p->store)->conn, "SHOW default_transaction_isolation");
	assert_string_equal(PQgetvalue(shown, 0, 0), "read committed");
	PQclear(shown);
}

/* Anything may be asked while rows are on their way, and the handle may be closed. */
static void other_calls_go_on(void **state)
{
	struct place *p = *state;
	struct outbox_stats stats;
	struct owner o;

	place_publish(p, 6 * BATCH);
	o = read_ahead(p);
	assert_int_equal(pg_stats(o.store, p->arena, &stats, &p->err), OUTBOX_OK);
	next(&o);
	expect(&o, 2 * BATCH + 1, BATCH);
	assert_non_null(pg_of(o.store)->prefetch);
}

static void a_paused_target_claims_nothing(void **state)
{
	struct place *p = *state;
	struct owner o;

	place_publish(p, 4 * BATCH);
	o = read_ahead(p);
	place_sql(p, "UPDATE outbox_target SET paused = true");
	next(&o);
	assert_int_equal(o.claim.count, 0);
	place_sql(p, "UPDATE outbox_target SET paused = false");
	next(&o);
	expect(&o, 2 * BATCH + 1, BATCH);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(every_message_comes_once_and_in_order),
		CASE(a_row_is_read_once),
		CASE(a_row_is_read_once_beside_a_detour),
		CASE(rows_are_merged_with_detours),
		CASE(what_was_returned_goes_first),
		CASE(what_was_returned_waits_for_its_turn),
		CASE(a_lane_taken_anew_begins_where_it_stands),
		CASE(what_an_operator_discards_stays),
		CASE(a_lost_lane_is_fenced),
		CASE(no_more_than_asked_for),
		CASE(a_large_message_is_read_by_its_claim),
		CASE(a_new_route_reads_anew),
		CASE(publishers_are_not_aborted),
		CASE(other_calls_go_on),
		CASE(a_paused_target_claims_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
