/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_BREAKER_H
#define RELAY_BREAKER_H

/*
 * A target's breaker, per worker: an outage costs time, never attempts. Closed: work. Open: nothing is
 * claimed until `until`. Then one probe at a time, until a publish() succeeds.
 */

#include <outbox/clock.h>

#include <stdbool.h>

struct breaker {
	outbox_time min, max;
	outbox_time delay; /* of the last trip; 0: closed */
	outbox_time until; /* mono; open before it */
	outbox_time since; /* mono; when the outage began */
};

void breaker_init(struct breaker *breaker, outbox_time min, outbox_time max);

/* How long the next trip would wait, at the most. */
outbox_time breaker_next(const struct breaker *breaker);

/*
 * An outage was seen: open, twice as long as the last time, jittered, and at least so long as the broker
 * asked for (0: it did not). True when it was closed.
 */
bool breaker_trip(struct breaker *breaker, outbox_time now, outbox_time asked,
		  struct outbox_random *random);

/* A publish() succeeded: close. True when it was not closed. */
bool breaker_reset(struct breaker *breaker);

bool breaker_open(const struct breaker *breaker, outbox_time now);
/* There was an outage and no publish() has succeeded since: past the wait, probe with one message. */
bool breaker_probing(const struct breaker *breaker);

#endif
