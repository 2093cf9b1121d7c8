/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka:// against librdkafka's mock cluster, which gives on cue the answers that a real broker gives once a year:
 * message sets refused, leaders that moved, answers that do not come, errors that end a producer.
 */
#include "place.h"

#include "base/cleanup.h"
#include "transport/kafka/kafka.h"
#include "transport/transport.h"

#include <librdkafka/rdkafka_mock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCE 0
#define INIT_PRODUCER_ID 22
#define BROKER 1

extern const struct outbox_transport_ops kafka_transport_ops;

struct mock {
	struct transport_case c;
	rd_kafka_t *owner;
	rd_kafka_mock_cluster_t *cluster;
	const char *servers;
	char url[300];
};

static const char *mock_url(void *state)
{
	return ((struct mock *)state)->url;
}

static void mock_read(void *state, struct arrivals *arrivals)
{
	place_read(((struct mock *)state)->servers, "orders", arrivals);
}

static const struct transport_fixture fixture = {
	.name = "kafka_mock",
	.ops = &kafka_transport_ops,
	.url = mock_url,
	.read_back = mock_read,
};

static int setup(void **state)
{
	struct mock *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->owner = place_admin("127.0.0.1:1");
	m->cluster = rd_kafka_mock_cluster_new(m->owner, 1);
	assert_non_null(m->cluster);
	m->servers = rd_kafka_mock_cluster_bootstraps(m->cluster);
	rd_kafka_mock_topic_create(m->cluster, "orders", 1, 1);
	rd_kafka_mock_topic_create(m->cluster, "other", 1, 1);
	snprintf(m->url, sizeof(m->url), "kafka://%s/orders", m->servers);
	m->c = (struct transport_case){ .fixture = &fixture, .place = m };
	m->c.arena = outbox_arena_new((size_t)64 << 20);
	case_new_batch(&m->c);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct mock *m = *state;

	rd_kafka_mock_cluster_destroy(m->cluster);
	rd_kafka_destroy(m->owner);
	outbox_arena_free(m->c.arena);
	free(m);
	return 0;
}

static struct outbox_transport *connect_with(struct mock *m, const char *path)
{
	snprintf(m->url, sizeof(m->url), "kafka://%s/%s", m->servers, path);
	return case_connect(&m->c);
}

static int verdict(const struct mock *m, size_t i)
{
	return m->c.batch.items[i]->verdict;
}

static void assert_verdicts(const struct mock *m, size_t from, size_t to, int expected)
{
	for (size_t i = from; i < to; i++) {
		if (verdict(m, i) != expected)
			print_error("message %zu: %s\n", i,
				    m->c.batch.items[i]->reason ? m->c.batch.items[i]->reason : "");
		assert_int_equal(verdict(m, i), expected);
	}
}

static int publish(struct mock *m, struct outbox_transport *transport, outbox_time within,
		   struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();

	return transport->ops->publish(transport, &m->c.batch, clock->mono(clock) + within, err);
}

/* ---- windows and message sets ------------------------------------------------------------------ */

/* The promise that order rests on: one message set a partition and window, whatever the time it takes. */
static void a_window_is_one_message_set(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);
	size_t left = 0;

	case_messages(&m->c, "a", 0, 2000);
	for (int i = 0; i < 10; i++)
		rd_kafka_mock_broker_push_request_error_rtts(m->cluster, BROKER, PRODUCE, (size_t)1,
							     RD_KAFKA_RESP_ERR_NO_ERROR, 0);
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_broker_error_stack_cnt(m->cluster, BROKER, PRODUCE, &left);
	assert_int_equal(left, 9);
	transport_close(transport);
	case_read_back(&m->c);
	assert_arrived_in_order(&m->c);
}

static void a_refused_set_is_split_in_order(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = connect_with(m, "orders?batch.size=20000");

	case_messages(&m->c, "a", 0, 300);
	/* Twice: the first window, then its first half. */
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 2,
					  RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
					  RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
	case_read_back(&m->c);
	assert_arrived_in_order(&m->c);
}

static void refused_alone_is_rejected(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);

	case_messages(&m->c, "a", 0, 2);
	/* The set; then each alone: the first is guilty, the second is not. */
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 2, RD_KAFKA_RESP_ERR_INVALID_RECORD,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_int_equal(verdict(m, 0), OUTBOX_REJECTED);
	assert_int_equal(m->c.batch.items[0]->native, RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(verdict(m, 1), OUTBOX_ACKED);
	transport_close(transport);
}

/* ---- order -------------------------------------------------------------------------------------- */

/* One of the key is refused for now: nothing of that key behind it, everything of the others. */
static void a_failed_key_sends_nothing_more(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = connect_with(m, "orders?batch.size=6000");
	size_t refused = 0;

	case_messages(&m->c, "a", 0, 100);
	for (size_t i = 20; i < 100; i += 2)
		m->c.messages[i].key = "other";
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	for (size_t i = 0; i < 100; i++) {
		bool other = m->c.messages[i].key[0] == 'o';

		refused += verdict(m, i) == OUTBOX_RETRY;
		/* The first window was refused; what follows of its key was not sent. */
		if (!other)
			assert_in_set((uintmax_t)verdict(m, i),
				      ((uintmax_t[]){ OUTBOX_RETRY, OUTBOX_VERDICT_UNSET }), 2);
		else if (i > 30)
			assert_int_equal(verdict(m, i), OUTBOX_ACKED);
	}
	assert_in_range(refused, 1, 30);
	transport_close(transport);
	case_read_back(&m->c);
	for (size_t i = 0; i < 100; i++)
		if (m->c.messages[i].key[0] != 'o')
			assert_null(case_find(&m->c, m->c.messages[i].id));
}

/* The same over topics: a key's messages go to two, and the first of them is not to be had. */
static void a_failed_topic_holds_its_keys_only(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = connect_with(m, "{topic}");

	case_messages(&m->c, "a", 0, 6);
	for (size_t i = 0; i < 6; i++)
		m->c.messages[i].topic = "orders";
	m->c.messages[1].topic = "secret"; /* key 42 */
	m->c.messages[3].key = m->c.messages[5].key = "other";
	m->c.messages[4].key = NULL;
	rd_kafka_mock_topic_create(m->cluster, "secret", 1, 1);
	rd_kafka_mock_topic_set_error(m->cluster, "secret",
				      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_int_equal(verdict(m, 1), OUTBOX_RETRY);
	assert_int_equal(verdict(m, 2), OUTBOX_VERDICT_UNSET);
	assert_verdicts(m, 3, 6, OUTBOX_ACKED);
	transport_close(transport);
}

/* Two topics are two message sets, which end each in its own way: so they are two windows. */
static void a_key_with_two_topics_is_two_windows(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = connect_with(m, "{topic}");

	case_messages(&m->c, "a", 0, 2);
	m->c.messages[0].topic = "orders";
	m->c.messages[1].topic = "other";
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_int_equal(verdict(m, 0), OUTBOX_RETRY);
	assert_int_equal(verdict(m, 1), OUTBOX_VERDICT_UNSET);
	transport_close(transport);
}

/* ---- trouble that passes, and trouble that does not ---------------------------------------------- */

static void passing_trouble_is_the_librarys(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);

	case_messages(&m->c, "a", 0, 500);
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 5,
					  RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
					  RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
					  RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
					  RD_KAFKA_RESP_ERR__TRANSPORT,
					  RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
	case_read_back(&m->c);
	assert_arrived_in_order(&m->c);
}

static void no_answer_is_unknown(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	case_messages(&m->c, "a", 0, 5);
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 60000);
	case_reset_verdicts(&m->c);
	assert_int_equal(publish(m, transport, OUTBOX_SECONDS, &err), OUTBOX_ETIMEDOUT);
	assert_verdicts(m, 0, 5, OUTBOX_UNKNOWN);
	/* This producer is spent. */
	case_reset_verdicts(&m->c);
	assert_int_equal(publish(m, transport, OUTBOX_SECONDS, NULL), OUTBOX_ECONN);
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	transport->ops->disconnect(transport);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

static void nothing_is_sent_to_brokers_that_are_down(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	case_messages(&m->c, "a", 0, 5);
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_broker_set_down(m->cluster, -1);
	case_reset_verdicts(&m->c);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, &err), OUTBOX_ECONN);
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	assert_int_equal(connect_to(transport, &err), OUTBOX_ECONN);
	rd_kafka_mock_broker_set_up(m->cluster, -1);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

static void a_fatal_error_needs_a_new_producer(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	case_messages(&m->c, "a", 0, 5);
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, &err), OUTBOX_ECONN);
	for (size_t i = 0; i < 5; i++)
		assert_int_not_equal(verdict(m, i), OUTBOX_ACKED);
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_reset_verdicts(&m->c);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

static void a_full_queue_is_back_pressure(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport =
		connect_with(m, "orders?queue.buffering.max.messages=10");

	case_messages(&m->c, "a", 0, 95);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
	case_read_back(&m->c);
	assert_arrived_in_order(&m->c);
}

static void no_permission_to_produce_is_eauth(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_open(&m->c, m->url, 0);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	case_messages(&m->c, "a", 0, 5);
	rd_kafka_mock_push_request_errors(m->cluster, INIT_PRODUCER_ID, 1,
					  RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	r = connect_to(transport, &err);
	if (!r)
		r = publish(m, transport, CONTRACT_DEADLINE, &err);
	assert_int_equal(r, OUTBOX_EAUTH);
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	transport_close(transport);
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* Codes that the broker gives for a message set, alone in it: one row of docs/brokers/kafka.md after the other. */
static void verdicts_are_those_of_the_table(void **state)
{
	static const struct {
		rd_kafka_resp_err_t error;
		int verdict;
	} rows[] = {
		{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_INVALID_RECORD, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, OUTBOX_REJECTED },
		{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, OUTBOX_RETRY },
		{ RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, OUTBOX_RETRY }, /* in no row */
	};
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);

	case_messages(&m->c, "a", 0, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1, rows[i].error);
		case_reset_verdicts(&m->c);
		assert_int_equal(publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
		assert_int_equal(verdict(m, 0), rows[i].verdict);
		assert_int_equal(m->c.batch.items[0]->native, rows[i].error);
		assert_non_null(m->c.batch.items[0]->reason);
	}
	case_reset_verdicts(&m->c);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

static void outages_are_those_of_the_table(void **state)
{
	(void)state;
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__TRANSPORT), OUTBOX_ECONN);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__FATAL), OUTBOX_ECONN);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__TIMED_OUT), OUTBOX_ETIMEDOUT);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT), OUTBOX_ETIMEDOUT);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__AUTHENTICATION), OUTBOX_EAUTH);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR__SSL), OUTBOX_EAUTH);
	assert_int_equal(kafka_status(RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED), OUTBOX_EAUTH);
	assert_int_equal(kafka_classify(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT), KAFKA_OUTAGE);
	assert_int_equal(kafka_classify(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR), KAFKA_OUTAGE);
	assert_int_equal(kafka_classify(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC), KAFKA_FOR_NOW);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_window_is_one_message_set),
		CASE(a_refused_set_is_split_in_order),
		CASE(refused_alone_is_rejected),
		CASE(a_failed_key_sends_nothing_more),
		CASE(a_failed_topic_holds_its_keys_only),
		CASE(a_key_with_two_topics_is_two_windows),
		CASE(passing_trouble_is_the_librarys),
		CASE(no_answer_is_unknown),
		CASE(nothing_is_sent_to_brokers_that_are_down),
		CASE(a_fatal_error_needs_a_new_producer),
		CASE(a_full_queue_is_back_pressure),
		CASE(no_permission_to_produce_is_eauth),
		CASE(verdicts_are_those_of_the_table),
		CASE(outages_are_those_of_the_table),
	};

	puts("kafka: librdkafka's mock cluster");
	return cmocka_run_group_tests_name("kafka_mock", tests, NULL, NULL);
}
