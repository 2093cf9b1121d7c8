/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KAFKA_MOCK_H
#define KAFKA_MOCK_H

/*
 * librdkafka's mock cluster, which gives on cue the answers that a real broker gives once a year: message sets refused,
 * leaders that moved, answers that do not come, errors that end a producer.
 */

#include "place.h"

#include "transport/kafka/driver.h"
#include "transport/transport.h"

#include <librdkafka/rdkafka_mock.h>

/* Kafka's numbers of requests, and the cluster's only broker. */
#define PRODUCE 0
#define INIT_PRODUCER_ID 22
#define BROKER 1

struct mock {
	struct transport_case c;
	rd_kafka_t *owner;
	rd_kafka_mock_cluster_t *cluster;
	const char *servers;
	char url[300];
};

/* For each case a cluster with the topics orders and other, one partition each. */
int mock_setup(void **state);
int mock_teardown(void **state);
#define MOCK_CASE(name) cmocka_unit_test_setup_teardown(name, mock_setup, mock_teardown)

/* A transport to kafka://.../path. */
struct outbox_transport *mock_connect(struct mock *m, const char *path);

int mock_publish(struct mock *m, struct outbox_transport *transport, outbox_time within,
		 struct outbox_error *err);

int verdict(const struct mock *m, size_t i);
void assert_verdicts(const struct mock *m, size_t from, size_t to, int expected);

#endif
