/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that were published before, keys that are locked, and fields that come back. */
#include "client/postgres_place_test.h"

#include "base/cleanup.h"

#include <pthread.h>
#include <string.h>

static void a_repeat_is_harmless(void **state)
{
	struct place *p = *state;
	struct outbox_message m[3] = { place_message("one"), place_message("two"),
				       place_message("one") };
	struct outbox_published first[3], again[3];

	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 3, 0, first, &p->err), OUTBOX_OK);
	assert_false(first[0].repeated);
	assert_false(first[1].repeated);
	assert_true(first[2].repeated);
	assert_int_equal(first[2].seq, first[0].seq);
	/* in the same transaction, beside a new one */
	m[2].id = "three";
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 3, 0, again, &p->err), OUTBOX_OK);
	assert_true(again[0].repeated);
	assert_true(again[1].repeated);
	assert_false(again[2].repeated);
	assert_int_equal(again[1].seq, first[1].seq);
	place_run(p->conn, "COMMIT; BEGIN");
	assert_int_equal(outbox_publish_pg_batch(p->conn, m, 3, 0, first, &p->err), OUTBOX_OK);
	assert_true(first[0].repeated && first[1].repeated && first[2].repeated);
	assert_int_equal(first[2].seq, again[2].seq);
	place_run(p->conn, "COMMIT");
	assert_int_equal(place_messages(p), 3);
}

struct later {
	PGconn *conn;
	struct outbox_published published;
	struct outbox_error err;
	int status;
};

static void *publish_later(void *context)
{
	struct outbox_message m = place_message("one");
	struct later *l = context;

	l->status = outbox_publish_pg_batch(l->conn, &m, 1, 0, &l->published, &l->err);
	return NULL;
}

/* Two transactions with one id at the same time: the second one waits for the first one's end. */
static struct later publish_beside(struct place *p, const char *isolation, const char *end,
				   struct outbox_published *ret_first)
{
	struct later l = { .conn = place_connect(p) };
	struct outbox_message m = place_message("one");
	pthread_t thread;

	place_run(p->conn, "BEGIN");
	place_run(l.conn, isolation);
	place_run(l.conn, "SELECT 1");
	assert_int_equal(outbox_publish_pg_batch(p->conn, &m, 1, 0, ret_first, &p->err), OUTBOX_OK);
	assert_int_equal(pthread_create(&thread, NULL, publish_later, &l), 0);
	place_wait_for_waiter(p->other);
	place_run(p->conn, end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return l;
}

static void a_concurrent_one_that_commits_wins(void **state)
{
	struct place *p = *state;
	struct outbox_published first;
	struct later l = publish_beside(p, "BEGIN", "COMMIT", &first);

	assert_int_equal(l.status, OUTBOX_OK);
	assert_true(l.published.repeated);
	assert_int_equal(l.published.seq, first.seq);
	place_run(l.conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
	PQfinish(l.conn);
}

static void a_concurrent_one_that_rolls_back_leaves_the_id(void **state)
{
	struct place *p = *state;
	struct outbox_published first;
	struct later l = publish_beside(p, "BEGIN", "ROLLBACK", &first);

	assert_int_equal(l.status, OUTBOX_OK);
	assert_false(l.published.repeated);
	assert_true(l.published.seq > first.seq);
	place_run(l.conn, "COMMIT");
	assert_int_equal(place_messages(p), 1);
	PQfinish(l.conn);
}

/* There, the message cannot be seen: to be tried again, as all such transactions are. */
static void a_serializable_caller_tries_again(void **state)
{
	struct place *p = *state;
	struct outbox_published first;
	struct later l = publish_beside(p, "BEGIN ISOLATION LEVEL SERIALIZABLE", "COMMIT", &first);

	assert_int_equal(l.status, OUTBOX_EBUSY);
	place_run(l.conn, "ROLLBACK; BEGIN ISOLATION LEVEL SERIALIZABLE");
	publish_later(&l);
	assert_int_equal(l.status, OUTBOX_OK);
	assert_int_equal(l.published.seq, first.seq);
	place_run(l.conn, "COMMIT");
	PQfinish(l.conn);
}

static int publish_to(PGconn *conn, const char *key, unsigned flags, struct outbox_error *err)
{
	struct outbox_message m = place_message(NULL);

	m.key = key;
	return outbox_publish_pg_batch(conn, &m, 1, flags, NULL, err);
}

static void a_locked_key_is_waited_for(void **state)
{
	struct place *p = *state;

	place_run(p->conn, "BEGIN");
	place_run(p->other, "BEGIN; SET LOCAL lock_timeout = '20ms'");
	assert_int_equal(publish_to(p->conn, "a", OUTBOX_LOCK_KEYS, &p->err), OUTBOX_OK);
	assert_int_equal(publish_to(p->other, "b", OUTBOX_LOCK_KEYS, &p->err), OUTBOX_OK);
	assert_int_equal(publish_to(p->other, "a", 0, &p->err), OUTBOX_OK);
	assert_int_equal(publish_to(p->other, NULL, OUTBOX_LOCK_KEYS, &p->err), OUTBOX_OK);
	assert_int_equal(publish_to(p->other, "a", OUTBOX_LOCK_KEYS, &p->err), OUTBOX_EBUSY);
	place_run(p->other, "ROLLBACK");
	place_run(p->conn, "COMMIT");
	place_run(p->other, "BEGIN; SET LOCAL lock_timeout = '20ms'");
	assert_int_equal(publish_to(p->other, "a", OUTBOX_LOCK_KEYS, &p->err), OUTBOX_OK);
	place_run(p->other, "ROLLBACK");
}

/* Bytes go where they belong, and come back as they were. */
static void payloads_come_back(void **state)
{
	static const struct {
		const char *type, *data, *where;
		size_t size;
	} cases[] = {
		{ NULL, "{\"a\":\"\xc3\xa9\\u00e9\"}", "payload = '{\"a\":\"\xc3\xa9\\u00e9\"}'", 16 },
		{ "text/plain", "", "payload = ''", 0 },
		{ "text/plain", "xyz", "payload = 'xy'", 2 }, /* no NUL behind it */
		{ "application/octet-stream", "a\0b", "payload_bin = '\\x610062'", 3 },
		{ "application/octet-stream", "", "payload_bin = ''", 0 },
		{ "text/plain", "\xff", "payload_bin = '\\xff'", 1 },
	};
	struct place *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char id[] = { (char)('a' + i), '\0' }, sql[200];
		struct outbox_message m = place_message(id);

		m.content_type = cases[i].type;
		m.data = cases[i].size ? cases[i].data : NULL;
		m.size = cases[i].size;
		place_run(p->conn, "BEGIN");
		assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
		place_run(p->conn, "COMMIT");
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM outbox_message WHERE id = '%s' AND %s", id,
			 cases[i].where);
		assert_int_equal(place_number(p->other, sql), 1);
	}
}

static void every_field_is_written(void **state)
{
	static const struct outbox_header headers[] = { { "X", "\"\xc3\xa9\\" }, { "Empty", "" } };
	struct place *p = *state;
	struct outbox_message m = {
		.struct_size = sizeof(m),
		.id = "mine",
		.type = "order.placed",
		.key = "k",
		.data = "{}",
		.size = 2,
		.content_type = "application/json",
		.kind = OUTBOX_KIND_COMMAND,
		.published = 1,
		.source = "/a",
		.subject = "b",
		.topic = "c",
		.correlation_id = "d",
		.causation_id = "e",
		.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		.headers = headers,
		.n_headers = ARRAY_SIZE(headers),
		.priority = -7,
		.event_time = 1600000000 * OUTBOX_SECONDS + 1,
		.due_at = 1700000000 * OUTBOX_SECONDS,
		.expires_at = 1800000000 * OUTBOX_SECONDS,
	};

	place_run(p->conn, "BEGIN");
	assert_int_equal(outbox_publish_pg(p->conn, &m, &p->err), OUTBOX_OK);
	place_run(p->conn, "COMMIT");
	assert_int_equal(
		place_number(
			p->other,
			"SELECT count(*) FROM outbox_message WHERE id = 'mine' AND type ="
			" 'order.placed' AND key = 'k' AND content_type = 'application/json' AND kind"
			" = 'command' AND published AND source = '/a' AND subject = 'b' AND topic ="
			" 'c' AND correlation_id = 'd' AND causation_id = 'e' AND traceparent ="
			" '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' AND headers::jsonb"
			" = '{\"X\":\"\\\"\xc3\xa9\\\\\",\"Empty\":\"\"}' AND priority = -7 AND"
			" event_time = to_timestamp(1600000000) + interval '1 microsecond' AND due_at ="
			" to_timestamp(1700000000) AND expires_at = to_timestamp(1800000000) AND"
			" created_at > now() - interval '1 hour' AND slot = outbox_slot('k')"),
		1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_repeat_is_harmless),
		CASE(a_concurrent_one_that_commits_wins),
		CASE(a_concurrent_one_that_rolls_back_leaves_the_id),
		CASE(a_serializable_caller_tries_again),
		CASE(a_locked_key_is_waited_for),
		CASE(payloads_come_back),
		CASE(every_field_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
