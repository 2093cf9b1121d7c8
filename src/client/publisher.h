/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_PUBLISHER_H
#define CLIENT_PUBLISHER_H

/* What the publishers of all databases have in common. */

#include <outbox/publisher.h>

#include "base/random.h"

struct publisher_ops {
	/* arguments and messages were checked; n is not 0 */
	int (*publish)(struct outbox_publisher *publisher, const struct outbox_message *messages,
		       size_t n, struct outbox_published *ret_published, struct outbox_error *err);
	int (*flush)(struct outbox_publisher *publisher, struct outbox_error *err);
	void (*free)(struct outbox_publisher *publisher);
};

struct outbox_publisher {
	const struct publisher_ops *ops;
	struct outbox_clock *clock;
	struct random_state random; /* of the ids that are made here */
	unsigned flags;
};

void publisher_init(struct outbox_publisher *publisher, const struct publisher_ops *ops,
		    unsigned flags);

/* The id of a message: its own, or a new one, which is written to room. */
const char *publisher_id(struct outbox_publisher *publisher, const struct outbox_message *message,
			 char room[37]);

#endif
