/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RABBITMQ_QUEUE_H
#define RABBITMQ_QUEUE_H

/* A connection of the test's own to the broker, straight by the library: what the driver did is read with it. */

#include <amqp.h>

#include <stdbool.h>

/* All fail the test when they cannot. */
amqp_connection_state_t queue_connect(int port);
void queue_disconnect(amqp_connection_state_t connection);

/* A durable topic exchange and a durable queue of the same name, which gets everything. */
void queue_make(amqp_connection_state_t connection, const char *name);
void queue_remove(amqp_connection_state_t connection, const char *name);

/* Take the next message out of the queue; false: it is empty. Free it with amqp_destroy_message(). */
bool queue_take(amqp_connection_state_t connection, const char *name, amqp_message_t *ret_message);

#endif
