/* SPDX-License-Identifier: Apache-2.0 */
/* kafka:// in trouble: what passes, what does not, and what each code becomes. */
#include "mock.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
	assert_int_equal(mock_publish(m, transport, OUTBOX_SECONDS, &err), OUTBOX_ETIMEDOUT);
	assert_verdicts(m, 0, 5, OUTBOX_UNKNOWN);
	/* This producer is spent. */
	case_reset_verdicts(&m->c);
	assert_int_equal(mock_publish(m, transport, OUTBOX_SECONDS, NULL), OUTBOX_ECONN);
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
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, &err), OUTBOX_ECONN);
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
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, &err), OUTBOX_ECONN);
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
		mock_connect(m, "orders?queue.buffering.max.messages=10");

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
		r = mock_publish(m, transport, CONTRACT_DEADLINE, &err);
	assert_int_equal(r, OUTBOX_EAUTH);
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	transport_close(transport);
}

/* The target's only topic may no longer be written to: every message would fail, so none is charged. */
static void no_right_to_the_only_topic_is_an_outage(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	case_messages(&m->c, "a", 0, 5);
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, &err), OUTBOX_EAUTH);
	assert_int_equal(err.native, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_non_null(strstr(err.message, "topic orders"));
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

/* The only topic is removed, and the library finds out by itself before the next batch. */
static void the_only_topic_vanishes(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport =
		mock_connect(m, "orders?topic.metadata.refresh.interval.ms=100");
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = OUTBOX_OK;

	case_messages(&m->c, "a", 0, 5);
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_topic_set_error(m->cluster, "orders", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	for (int i = 0; i < 200 && !r; i++) {
		case_reset_verdicts(&m->c);
		usleep(50000);
		r = mock_publish(m, transport, CONTRACT_DEADLINE, &err);
		for (size_t n = 0; n < 5; n++)
			assert_int_not_equal(verdict(m, n), OUTBOX_RETRY);
	}
	assert_int_equal(r, OUTBOX_ECONFIG);
	assert_verdicts(m, 0, 5, OUTBOX_VERDICT_UNSET);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_ECONFIG);
	rd_kafka_mock_topic_set_error(m->cluster, "orders", RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_reset_verdicts(&m->c);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

/* One of a template's topics is removed: its messages are charged, and find it when it is there again. */
static void a_topic_of_a_template_vanishes(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport =
		mock_connect(m, "{topic}?topic.metadata.refresh.interval.ms=100");

	case_messages(&m->c, "a", 0, 2);
	m->c.messages[0].topic = "orders";
	m->c.messages[1].topic = "other";
	m->c.messages[1].key = "other";
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_topic_set_error(m->cluster, "orders", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	for (int i = 0; i < 200 && verdict(m, 0) == OUTBOX_ACKED; i++) {
		case_reset_verdicts(&m->c);
		usleep(50000);
		assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
		assert_int_equal(verdict(m, 1), OUTBOX_ACKED);
	}
	assert_int_equal(verdict(m, 0), OUTBOX_RETRY);
	rd_kafka_mock_topic_set_error(m->cluster, "orders", RD_KAFKA_RESP_ERR_NO_ERROR);
	case_reset_verdicts(&m->c);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* Codes that the broker gives for a message set, alone in it: one row of docs/transports/kafka.md after the other. */
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
	struct outbox_transport *transport = mock_connect(m, "{topic}");

	case_messages(&m->c, "a", 0, 1);
	m->c.messages[0].topic = "orders";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1, rows[i].error);
		case_reset_verdicts(&m->c);
		assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
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
	/* Of a target's only topic. */
	assert_int_equal(kafka_place_status(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
			 OUTBOX_EAUTH);
	assert_int_equal(kafka_place_status(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART), OUTBOX_ECONFIG);
	assert_int_equal(kafka_place_status(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC), OUTBOX_ECONFIG);
	assert_int_equal(kafka_place_status(RD_KAFKA_RESP_ERR_INVALID_RECORD), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOCK_CASE(passing_trouble_is_the_librarys),
		MOCK_CASE(no_answer_is_unknown),
		MOCK_CASE(nothing_is_sent_to_brokers_that_are_down),
		MOCK_CASE(a_fatal_error_needs_a_new_producer),
		MOCK_CASE(a_full_queue_is_back_pressure),
		MOCK_CASE(no_permission_to_produce_is_eauth),
		MOCK_CASE(no_right_to_the_only_topic_is_an_outage),
		MOCK_CASE(the_only_topic_vanishes),
		MOCK_CASE(a_topic_of_a_template_vanishes),
		MOCK_CASE(verdicts_are_those_of_the_table),
		MOCK_CASE(outages_are_those_of_the_table),
	};

	puts("kafka: librdkafka's mock cluster");
	return cmocka_run_group_tests_name("kafka_mock_trouble", tests, NULL, NULL);
}
