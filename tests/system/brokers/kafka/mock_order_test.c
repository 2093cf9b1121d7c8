/* SPDX-License-Identifier: Apache-2.0 */
/* kafka:// keeps a key's order: windows, message sets that are refused, keys that are held back. */
#include "mock.h"

#include <stdio.h>

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
	struct outbox_transport *transport = mock_connect(m, "orders?batch.size=20000");

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
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
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
	struct outbox_transport *transport = mock_connect(m, "orders?batch.size=6000");
	size_t refused = 0;

	case_messages(&m->c, "a", 0, 100);
	for (size_t i = 20; i < 100; i += 2)
		m->c.messages[i].key = "other";
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS);
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
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
	struct outbox_transport *transport = mock_connect(m, "{topic}");

	case_messages(&m->c, "a", 0, 6);
	for (size_t i = 0; i < 6; i++)
		m->c.messages[i].topic = "orders";
	m->c.messages[1].topic = "secret"; /* key 42 */
	m->c.messages[3].key = m->c.messages[5].key = "other";
	m->c.messages[4].key = NULL;
	rd_kafka_mock_topic_create(m->cluster, "secret", 1, 1);
	rd_kafka_mock_topic_set_error(m->cluster, "secret",
				      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_int_equal(verdict(m, 0), OUTBOX_ACKED); /* of the same key, and before it */
	assert_int_equal(verdict(m, 1), OUTBOX_RETRY);
	assert_int_equal(verdict(m, 2), OUTBOX_VERDICT_UNSET);
	assert_verdicts(m, 3, 6, OUTBOX_ACKED);
	transport_close(transport);
}

/* The set before the missing topic is refused and split: that a later one failed must not hold its parts back. */
static void a_split_set_before_a_failed_topic(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = mock_connect(m, "{topic}");

	case_messages(&m->c, "a", 0, 3);
	for (size_t i = 0; i < 3; i++)
		m->c.messages[i].topic = i == 2 ? "secret" : "orders";
	rd_kafka_mock_topic_create(m->cluster, "secret", 1, 1);
	rd_kafka_mock_topic_set_error(m->cluster, "secret",
				      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_verdicts(m, 0, 2, OUTBOX_ACKED);
	assert_int_equal(verdict(m, 2), OUTBOX_RETRY);
	transport_close(transport);
}

/* Two topics are two message sets, which end each in its own way: so they are two windows. */
static void a_key_with_two_topics_is_two_windows(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = mock_connect(m, "{topic}");

	case_messages(&m->c, "a", 0, 2);
	m->c.messages[0].topic = "orders";
	m->c.messages[1].topic = "other";
	rd_kafka_mock_push_request_errors(m->cluster, PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(mock_publish(m, transport, CONTRACT_DEADLINE, NULL), OUTBOX_OK);
	assert_int_equal(verdict(m, 0), OUTBOX_RETRY);
	assert_int_equal(verdict(m, 1), OUTBOX_VERDICT_UNSET);
	transport_close(transport);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOCK_CASE(a_window_is_one_message_set),
		MOCK_CASE(a_refused_set_is_split_in_order),
		MOCK_CASE(refused_alone_is_rejected),
		MOCK_CASE(a_failed_key_sends_nothing_more),
		MOCK_CASE(a_failed_topic_holds_its_keys_only),
		MOCK_CASE(a_split_set_before_a_failed_topic),
		MOCK_CASE(a_key_with_two_topics_is_two_windows),
	};

	puts("kafka: librdkafka's mock cluster");
	return cmocka_run_group_tests_name("kafka_mock_order", tests, NULL, NULL);
}
