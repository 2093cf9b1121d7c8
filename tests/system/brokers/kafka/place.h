/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KAFKA_PLACE_H
#define KAFKA_PLACE_H

/* Topics on the broker of with-kafka, and what is in them, by librdkafka without the driver's code. */

#include "transport_case.h"

#include <librdkafka/rdkafka.h>

/* The broker's address without any proxy, "127.0.0.1:PORT". */
const char *place_broker(void);

/* A handle for administration. Free with rd_kafka_destroy(). */
rd_kafka_t *place_admin(const char *servers);

/* A new topic; settings are name, value ..., NULL. */
void place_topic(rd_kafka_t *admin, const char *name, int partitions, const char *const *settings);
void place_drop(rd_kafka_t *admin, const char *name);

/* Everything in the topic, partition by partition. */
void place_read(const char *servers, const char *topic, struct arrivals *arrivals);

#endif
