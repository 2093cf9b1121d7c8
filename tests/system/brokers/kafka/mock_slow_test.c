/* SPDX-License-Identifier: Apache-2.0 */
/* kafka:// and a broker that is slow, or in trouble for longer than the deadline. */
#include "mock.h"

#include "base/cleanup.h"

#include <stdio.h>

/* Several windows, each answered late: patience, and order. */
static void a_slow_broker_is_waited_for(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = mock_connect(m, "orders?batch.size=20000");

	case_messages(&m->c, "a", 0, 400);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 300);
	case_publish_acked(&m->c, transport);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 0);
	transport_close(transport);
	case_read_back(&m->c);
	assert_acked_arrived(&m->c);
	assert_arrived_in_order(&m->c);
}

/* The first windows are answered in time, the others are not: those alone are ACKED, and no later one was sent. */
static void too_slow_for_the_deadline(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = mock_connect(m, "orders?batch.size=20000");
	size_t acked = 0, unknown = 0;

	case_messages(&m->c, "a", 0, 400);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 900);
	assert_int_equal(mock_publish(m, transport, 2 * OUTBOX_SECONDS, NULL), OUTBOX_ETIMEDOUT);
	while (acked < 400 && verdict(m, acked) == OUTBOX_ACKED)
		acked++;
	while (acked + unknown < 400 && verdict(m, acked + unknown) == OUTBOX_UNKNOWN)
		unknown++;
	assert_true(acked > 0 && unknown > 0 && acked + unknown < 400);
	assert_verdicts(m, acked + unknown, 400, OUTBOX_VERDICT_UNSET);
	rd_kafka_mock_broker_set_rtt(m->cluster, -1, 0);
	case_read_back(&m->c);
	assert_acked_arrived(&m->c);
	assert_true(m->c.arrivals.count <= acked + unknown);
	/* All of it again, when it is over. */
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_reset_verdicts(&m->c);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
	case_read_back(&m->c);
	assert_acked_arrived(&m->c);
}

/* What the library tries again and again: at the deadline nobody is charged and nothing is ACKED. */
static void trouble_that_lasts_is_an_outage(void **state)
{
	static const rd_kafka_resp_err_t errors[] = {
		RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
		RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
		RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
		RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
		RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
		RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
	};
	rd_kafka_resp_err_t again[200];
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);

	case_messages(&m->c, "a", 0, 5);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		for (size_t n = 0; n < ARRAY_SIZE(again); n++)
			again[n] = errors[i];
		rd_kafka_mock_push_request_errors_array(m->cluster, PRODUCE, ARRAY_SIZE(again),
							again);
		case_reset_verdicts(&m->c);
		assert_int_equal(mock_publish(m, transport, OUTBOX_SECONDS / 2, &err),
				 OUTBOX_ETIMEDOUT);
		for (size_t n = 0; n < 5; n++)
			assert_true(verdict(m, n) == OUTBOX_UNKNOWN ||
				    verdict(m, n) == OUTBOX_VERDICT_UNSET);
		rd_kafka_mock_clear_request_errors(m->cluster, PRODUCE);
		transport->ops->disconnect(transport);
		assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
		case_reset_verdicts(&m->c);
		case_publish_acked(&m->c, transport);
	}
	transport_close(transport);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOCK_CASE(a_slow_broker_is_waited_for),
		MOCK_CASE(too_slow_for_the_deadline),
		MOCK_CASE(trouble_that_lasts_is_an_outage),
	};

	puts("kafka: librdkafka's mock cluster");
	return cmocka_run_group_tests_name("kafka_mock_slow", tests, NULL, NULL);
}
