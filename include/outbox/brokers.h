/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_BROKERS_H
#define OUTBOX_BROKERS_H

/*
 * The drivers of RabbitMQ (amqp:), Kafka, NATS, Redis and MQTT, for a relay inside your process. They are in a library of
 * their own, liboutbox-brokers, so that a program that only publishes loads no broker's library:
 *
 *   cc relay.c $(pkg-config --cflags --libs outbox-brokers)
 */

#include <outbox/relay.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Add the drivers to the registry; call it before outbox_relay_new(). A driver of your own that was added before goes
 * first. ECONFIG: liboutbox is of another version.
 */
int outbox_brokers_register(struct outbox_registry *registry,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
