/* SPDX-License-Identifier: Apache-2.0 */
/* A look costs no transaction number; and lanes of one transaction share what was read before it had one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

static struct outbox_head take_lane(struct place *p, const char *target)
{
	struct outbox_head head;

	if (pg_take_over(p->store, target, 0, "me", ++p->token, &head, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return head;
}

static bool has_work(struct place *p, const struct outbox_head *head)
{
	int lane = 0;
	struct outbox_look look = { .target = "events",
				    .route_version = 1,
				    .count = 1,
				    .lanes = &lane,
				    .n = &head->n,
				    .fence_tokens = &head->fence_token };
	struct outbox_looked looked;

	if (pg_look(p->store, &look, &looked, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return looked.work[0];
}

/* Message `settled` was delivered (0: none is in flight); claim the next one. Its seq, 0 when there is none. */
static int64_t next_one(struct place *p, struct outbox_head *head, int64_t settled)
{
	struct outbox_settlement delivered = { .seq = settled, .outcome = OUTBOX_OUT_DELIVERED };
	struct outbox_settle_and_claim request = { .target = "events",
						   .owner = "me",
						   .n = head->n,
						   .fence_token = head->fence_token,
						   .new_token = ++p->token,
						   .route_version = 1,
						   .settled = &delivered,
						   .n_settled = settled > 0,
						   .max_messages = 1,
						   .max_bytes = 1 << 20 };
	struct outbox_claim claim;

	if (pg_settle_and_claim(p->store, &request, p->arena, &claim, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	head->n = claim.n;
	head->fence_token = claim.fence_token;
	return claim.count ? claim.items[0].seq : 0;
}

/* Claims nothing; what the lane stands at then. */
static void pass(struct place *p, struct outbox_head *head)
{
	assert_int_equal(next_one(p, head, 0), 0);
}

static int64_t next_xid(struct place *p)
{
	return place_number(p, "SELECT pg_snapshot_xmax(pg_current_snapshot())");
}

static void a_look_takes_no_transaction_number(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	int64_t before = next_xid(p);

	for (int i = 0; i < 10; i++)
		assert_false(has_work(p, &head));
	assert_int_equal(next_xid(p), before);
	place_publish(p, 1);
	before = next_xid(p);
	for (int i = 0; i < 10; i++)
		assert_true(has_work(p, &head));
	assert_int_equal(next_xid(p), before);
}

/* Its relay asks at each poll for messages that it does not get. */
static void a_paused_target_takes_no_transaction_number(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	int64_t settled, next;

	place_publish(p, 3);
	settled = next_one(p, &head, 0);
	assert_int_equal(pg_target_pause(p->store, "events", true, "me", "why", &p->err), OUTBOX_OK);
	assert_int_equal(next_one(p, &head, settled), 0); /* what was in flight is settled */
	next = next_xid(p);
	for (int i = 0; i < 5; i++) {
		assert_true(has_work(p, &head));
		pass(p, &head);
	}
	assert_int_equal(next_xid(p), next);
	assert_int_equal(pg_target_pause(p->store, "events", false, "me", "why", &p->err), OUTBOX_OK);
	assert_true(next_one(p, &head, 0) > settled);
}

static void a_retry_is_work_when_it_is_due(void **state)
{
	struct place *p = *state;
	struct outbox_head head;

	place_publish(p, 1);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 1);
	place_sql(p,
		  "UPDATE outbox_detour SET state = 'pending', why = 'retry',"
		  " next_attempt_at = to_timestamp(%lld)",
		  (long long)(TEST_START / OUTBOX_SECONDS + 10));
	head = take_lane(p, "events");
	pass(p, &head);
	assert_false(has_work(p, &head));
	frozen_clock_step(&p->clock, 10 * OUTBOX_SECONDS);
	assert_true(has_work(p, &head));
}

/* Other programs use the database, too: their transactions come and go, and are nobody's messages. */
static void who_publishes_nothing_makes_no_work(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	PGconn *other = place_connect(p);
	int64_t receipts = 0;

	for (int i = 0; i < 5; i++) {
		PQclear(PQexec(other, "BEGIN"));
		PQclear(PQexec(other, "SELECT pg_current_xact_id()"));
		place_sql(p, "SELECT pg_current_xact_id()"); /* so that it is in the middle of a snapshot */
		if (i == 0) { /* a position whose snapshot has it in progress */
			place_publish(p, 1);
			place_drain(p, "events");
			head = take_lane(p, "events");
			receipts = place_number(p, "SELECT count(*) FROM outbox_receipt");
		}
		PQclear(PQexec(other, "COMMIT"));
		assert_false(has_work(p, &head));
		pass(p, &head);
	}
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_receipt"), receipts);
	PQfinish(other);
}

/* What nobody varies here: the routing, the limits, nothing read ahead, nothing to settle. */
#define REST                                                                              \
	", 1, 10, 100000, NULL, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}'," \
	" '{}', '{}', '{}', '{}')"

/* One lane's call in a transaction of the test's own. */
static void claim_in_transaction(struct place *p, const char *target, const struct outbox_head *head)
{
	place_sql(p, "SELECT * FROM outbox_next_batch('%s', 0, 'me', %lld, %lld, %lld" REST, target,
		  (long long)head->n, (long long)head->fence_token, (long long)++p->token);
}

/* Receipts whose window has a message of a transaction that is younger than their own. */
static int64_t broken_windows(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_receipt r JOIN outbox_message m"
			       " ON m.seq <= r.cur_seq AND m.xid >= r.cur_xid");
}

static void publish_beside(PGconn *other)
{
	PGresult *result =
		PQexec(other, "INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')");

	assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
}

static void lanes_of_one_transaction_share_its_moment(void **state)
{
	struct place *p = *state;
	PGconn *other = place_connect(p), *late = place_connect(p);
	struct outbox_head first = take_lane(p, "events"), second;

	place_target(p, "others");
	second = take_lane(p, "others");
	PQclear(PQexec(late, "BEGIN"));
	publish_beside(other);
	publish_beside(late);
	place_sql(p, "BEGIN");
	place_sql(p, "SELECT outbox_share_moment(false)");
	publish_beside(other); /* between: not theirs yet, or it has an older transaction than they */
	claim_in_transaction(p, "events", &first);
	publish_beside(other); /* younger, and before the second lane reads anything */
	PQclear(PQexec(late, "COMMIT"));
	claim_in_transaction(p, "others", &second);
	publish_beside(other);
	place_sql(p, "COMMIT");
	assert_int_equal(broken_windows(p), 0);
	/* and nothing is lost */
	assert_int_equal(place_drain(p, "events"), 5);
	assert_int_equal(place_drain(p, "others"), 5);
	PQfinish(other);
	PQfinish(late);
}

/* What one of them settles is on disk before anybody hears of it, though the other only claims. */
static void a_settlement_among_claims_is_durable(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");

	for (int i = 0; i < 20; i++) {
		PGresult *result;

		place_publish(p, 1); /* and everything that was written is on disk, usually */
		place_sql(p, "BEGIN");
		place_sql(p, "SELECT outbox_share_moment(true)");
		claim_in_transaction(p, "events", &head);
		result = PQexec(p->db, "SHOW synchronous_commit");
		assert_string_equal(PQgetvalue(result, 0, 0), "on");
		PQclear(result);
		place_sql(p, "ROLLBACK");
	}
}

static int count_waiters(PGconn *db)
{
	PGresult *result = PQexec(db, "SELECT FROM pg_locks WHERE NOT granted"
				      " AND relation = 'outbox_receipt'::regclass");
	int n = PQntuples(result);

	PQclear(result);
	return n;
}

/* The log is empty, and its end is still read before the transaction has a number. */
static void the_end_of_an_empty_log_is_read_first(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	PGconn *other = place_connect(p), *gate = place_connect(p);
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "SELECT * FROM outbox_next_batch('events', 0, 'me', %lld, %lld, 99" REST,
		 (long long)head.n, (long long)head.fence_token);
	PQclear(PQexec(gate, "BEGIN"));
	PQclear(PQexec(gate,
		       "LOCK TABLE outbox_receipt IN ACCESS EXCLUSIVE MODE")); /* it waits there, with its lock */
	assert_int_equal(PQsendQuery(p->db, sql), 1);
	while (count_waiters(other) == 0)
		usleep(1000);
	for (int i = 0; i < 3; i++)
		PQclear(PQexec(
			other,
			"INSERT INTO outbox_message (type, payload) SELECT 't', '{}' FROM generate_series(1, 500)"));
	PQclear(PQexec(gate, "ROLLBACK"));
	for (PGresult *result; (result = PQgetResult(p->db)); PQclear(result))
		assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	assert_int_equal(broken_windows(p), 0);
	assert_int_equal(place_drain(p, "events"), 1500);
	PQfinish(other);
	PQfinish(gate);
}

/* With a number of its own already, a transaction must not read the end of the log. */
static void nobody_claims_after_writing(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	PGresult *result;
	char sql[512];

	place_publish(p, 1);
	snprintf(sql, sizeof(sql),
		 "SELECT * FROM outbox_next_batch('events', 0, 'me', %lld, %lld, 99" REST,
		 (long long)head.n, (long long)head.fence_token);
	place_sql(p, "BEGIN");
	place_sql(p, "SELECT pg_current_xact_id()");
	result = PQexec(p->db, sql);
	assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "OB003");
	PQclear(result);
	place_sql(p, "ROLLBACK");
	assert_int_equal(place_drain(p, "events"), 1);
}

/* Nobody was there when the snapshot was taken; somebody came before the end of the log was read. */
static void who_began_behind_the_snapshot_is_late(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	PGconn *other = place_connect(p), *late = place_connect(p);
	int64_t seq;

	pass(p, &head); /* the first call of a session goes the long way */
	publish_beside(other);
	place_sql(p, "BEGIN");
	place_sql(p,
		  "SELECT set_config('outbox.moment', pg_current_snapshot()::text || ' ' || outbox_log_end() + 1, true)");
	PQclear(PQexec(late, "BEGIN"));
	publish_beside(late);
	seq = place_number(p, "SELECT max(seq) FROM outbox_message");
	place_sql(p, "SELECT pg_current_xact_id()");
	claim_in_transaction(p, "events", &head);
	place_sql(p, "COMMIT");
	PQclear(PQexec(late, "COMMIT"));

	head.n++;
	head.fence_token = p->token;
	assert_int_equal(next_one(p, &head, seq), seq + 1);
	PQfinish(other);
	PQfinish(late);
}

/* Somebody was there when the snapshot was taken, and nobody has come since. */
static void who_was_there_before_the_snapshot_is_late(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	PGconn *late = place_connect(p);
	int64_t seq;

	pass(p, &head); /* the first call of a session goes the long way */
	PQclear(PQexec(late, "BEGIN"));
	publish_beside(late);
	place_publish(p, 1);
	seq = place_number(p, "SELECT max(seq) FROM outbox_message");
	claim_in_transaction(p, "events", &head);
	PQclear(PQexec(late, "COMMIT"));
	head.n++;
	head.fence_token = p->token;
	place_publish(p, 1); /* else the way would be the long one */
	assert_int_equal(next_one(p, &head, seq), seq - 1);
	PQfinish(late);
}

/* An empty claim means that there is nothing: where a window ends without a row, the next one opens in the same call. */
static void an_empty_end_of_a_window_is_passed(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");

	pass(p, &head);
	place_publish(p, 2);
	place_sql(p, "SELECT nextval('outbox_message_seq_seq')"); /* as one that was rolled back */
	assert_int_equal(next_one(p, &head, 0), 1);
	assert_int_equal(next_one(p, &head, 1), 2);
	place_publish(p, 1);
	assert_int_equal(next_one(p, &head, 2), 4);
}

static void the_short_way_has_a_fence(void **state)
{
	struct place *p = *state;
	struct outbox_head head = take_lane(p, "events");
	struct outbox_settle_and_claim request = { .target = "events",
						   .owner = "me",
						   .new_token = 99,
						   .route_version = 1,
						   .max_messages = 10,
						   .max_bytes = 1 << 20 };
	struct outbox_claim claim;

	pass(p, &head);
	request.n = head.n;
	request.fence_token = head.fence_token + 1;
	place_publish(p, 1);
	assert_int_equal(pg_settle_and_claim(p->store, &request, p->arena, &claim, &p->err),
			 OUTBOX_EFENCED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_look_takes_no_transaction_number),
		CASE(a_paused_target_takes_no_transaction_number),
		CASE(a_retry_is_work_when_it_is_due),
		CASE(who_publishes_nothing_makes_no_work),
		CASE(lanes_of_one_transaction_share_its_moment),
		CASE(a_settlement_among_claims_is_durable),
		CASE(the_end_of_an_empty_log_is_read_first),
		CASE(nobody_claims_after_writing),
		CASE(who_began_behind_the_snapshot_is_late),
		CASE(who_was_there_before_the_snapshot_is_late),
		CASE(an_empty_end_of_a_window_is_passed),
		CASE(the_short_way_has_a_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
