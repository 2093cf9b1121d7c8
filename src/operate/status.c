/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/status.h"

#include "base/text.h"
#include "relay/link.h"

#include <stdio.h>
#include <string.h>

const struct outbox_lane_stats *status_refused(const struct outbox_target_stats *target,
					       size_t *ret_count)
{
	const struct outbox_lane_stats *first = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < target->n_lanes; i++) {
		if (!target->lanes[i].refused)
			continue;
		first = first ? first : &target->lanes[i];
		++*ret_count;
	}
	return first;
}

size_t status_held(const struct outbox_stats *stats, const struct outbox_target_stats *target)
{
	size_t held = 0;

	for (size_t i = 0; i < target->n_lanes; i++)
		held += target->lanes[i].owner && target->lanes[i].lease_until > stats->store_now;
	return held;
}

bool status_closed(const struct outbox_target_stats *target)
{
	return target->paused && target->paused_by && strcmp(target->paused_by, RELAY_ACTOR) == 0;
}

enum target_health status_health(const struct outbox_stats *stats,
				 const struct outbox_target_stats *target)
{
	size_t held = status_held(stats, target), refused;

	if (status_refused(target, &refused))
		return HEALTH_REFUSED;
	if (target->unserved && !target->n_lanes)
		return HEALTH_UNSERVED;
	if (target->paused)
		return HEALTH_PAUSED;
	if (held == 0)
		return HEALTH_NO_RELAY;
	if (target->outage)
		return HEALTH_OUTAGE;
	if (held < target->n_lanes)
		return HEALTH_PARTLY;
	return target->waiting > 0 ? HEALTH_RETRYING : HEALTH_RUNNING;
}

const char *const health_names[] = { NULL,     "running", "retrying", "no relay",   "partly",
				     "outage", "paused",  "refused",  "not served", NULL };

outbox_time status_oldest(const struct outbox_stats *stats)
{
	outbox_time oldest = 0;

	for (size_t i = 0; i < stats->n_targets; i++) {
		outbox_time one = stats->targets[i].oldest;

		if (one && (!oldest || one < oldest))
			oldest = one;
	}
	return oldest;
}

int64_t status_lag(const struct outbox_target_stats *target)
{
	return target->pending + target->sending + target->waiting + target->parked;
}

bool status_idle(const struct outbox_target_stats *target)
{
	for (size_t i = 0; i < target->n_lanes; i++)
		if (target->lanes[i].owner || target->lanes[i].refused)
			return false;
	return status_lag(target) == 0;
}

outbox_time status_drain(const struct outbox_stats *stats, const struct outbox_target_stats *target)
{
	enum target_health health = status_health(stats, target);

	if (target->delivered_minute <= 0 || health == HEALTH_PAUSED || health == HEALTH_NO_RELAY ||
	    health == HEALTH_OUTAGE || health == HEALTH_REFUSED || health == HEALTH_UNSERVED)
		return 0;
	if (!target->oldest || stats->store_now - target->oldest < OUTBOX_MINUTES)
		return 0;
	return (target->pending + target->sending) * OUTBOX_MINUTES / target->delivered_minute;
}

const char *status_rate(const struct outbox_target_stats *target, char *out, size_t size)
{
	char count[COUNT_TEXT_MAX];
	int64_t minute = target->delivered_minute;

	if (minute >= 60)
		snprintf(out, size, "%s/s", count_human(minute / 60, count));
	else
		snprintf(out, size, "%s/min", count_human(minute, count));
	return out;
}
