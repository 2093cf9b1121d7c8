/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_REDIS_COMMAND_H
#define TRANSPORT_REDIS_COMMAND_H

#include "transport/redis/driver.h"

/* Write the XADD of a message. EINVAL: the message cannot be sent, and nothing was written. */
int redis_command_add(struct redis_transport *t, const struct outbox_item *item,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write a WAIT for the replicas, for at most so long. */
void redis_command_wait(struct redis_transport *t, outbox_time limit);

#endif
