/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_STATUS_H
#define OPERATE_STATUS_H

/* What a target's numbers mean, the same for people and for programs. */

#include <outbox/delivery.h>

enum target_health {
	HEALTH_RUNNING = 1,
	HEALTH_RETRYING, /* something waits for its next attempt */
	HEALTH_NO_RELAY, /* nobody holds a lane */
	HEALTH_PARTLY,   /* somebody holds some lanes */
	HEALTH_OUTAGE,   /* a relay cannot reach it */
	HEALTH_PAUSED,
	HEALTH_REFUSED, /* relays refuse a lane of it: its position and the log do not belong together */
	HEALTH_UNSERVED /* no relay serves it, and one says why: it waits for its start */
};

enum target_health status_health(const struct outbox_stats *stats,
				 const struct outbox_target_stats *target);
/* By their values, from 1 on; NULL is behind the last. */
extern const char *const health_names[];

/* The first lane that relays refuse, and how many there are; NULL: none. */
const struct outbox_lane_stats *status_refused(const struct outbox_target_stats *target,
					       size_t *ret_count);

/* How many lanes somebody holds. */
size_t status_held(const struct outbox_stats *stats, const struct outbox_target_stats *target);

/* Paused by its relay, because it said that it is gone for good. */
bool status_closed(const struct outbox_target_stats *target);

/* Deliveries that should have been made by now. */
int64_t status_lag(const struct outbox_target_stats *target);

/* Nothing waits, and every lane was given back: whoever worked here has ended, not died. */
bool status_idle(const struct outbox_target_stats *target);

/*
 * How long what can be sent now takes at the last minute's rate. 0: nobody knows: nothing moves now, only retries wait,
 * or what waits came within the minute, whose rate says nothing of it then.
 */
outbox_time status_drain(const struct outbox_stats *stats, const struct outbox_target_stats *target);

/* "1,204/s", "3/min". */
const char *status_rate(const struct outbox_target_stats *target, char *out, size_t size);

/* The oldest delivery of all targets that is not finished; 0: none. */
outbox_time status_oldest(const struct outbox_stats *stats);

#endif
