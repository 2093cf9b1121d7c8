/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/status.h"

#include "base/text.h"
#include "cli/json_out.h"

#include <stdio.h>

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

enum target_health status_health(const struct outbox_stats *stats,
				 const struct outbox_target_stats *target)
{
	size_t held = 0, refused;

	if (status_refused(target, &refused))
		return HEALTH_REFUSED;
	if (target->paused)
		return HEALTH_PAUSED;
	for (size_t i = 0; i < target->n_lanes; i++)
		held += target->lanes[i].owner && target->lanes[i].lease_until > stats->store_now;
	if (held == 0)
		return HEALTH_NO_RELAY;
	if (target->outage)
		return HEALTH_OUTAGE;
	if (held < target->n_lanes)
		return HEALTH_PARTLY;
	return target->waiting > 0 ? HEALTH_RETRYING : HEALTH_RUNNING;
}

const char *status_health_name(enum target_health health)
{
	switch (health) {
	case HEALTH_RUNNING:
		return "running";
	case HEALTH_RETRYING:
		return "retrying";
	case HEALTH_NO_RELAY:
		return "no relay";
	case HEALTH_PARTLY:
		return "partly";
	case HEALTH_OUTAGE:
		return "outage";
	case HEALTH_PAUSED:
		return "paused";
	case HEALTH_REFUSED:
		return "refused";
	}
	return "?";
}

int64_t status_lag(const struct outbox_target_stats *target)
{
	return target->pending + target->sending + target->waiting + target->parked;
}

outbox_time status_drain(const struct outbox_stats *stats, const struct outbox_target_stats *target)
{
	enum target_health health = status_health(stats, target);

	if (target->delivered_minute <= 0 || health == HEALTH_PAUSED || health == HEALTH_NO_RELAY ||
	    health == HEALTH_OUTAGE || health == HEALTH_REFUSED)
		return 0;
	return status_lag(target) * OUTBOX_MINUTES / target->delivered_minute;
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

static json_t *lanes_json(const struct outbox_stats *stats, const struct outbox_target_stats *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_lanes; i++) {
		const struct outbox_lane_stats *lane = &t->lanes[i];

		json_array_append_new(list,
				      json_pack("{s:i, s:o, s:o, s:b, s:I, s:I, s:o}", "lane",
						lane->lane, "owner", json_text(lane->owner),
						"lease_until", json_time(lane->lease_until), "live",
						lane->owner && lane->lease_until > stats->store_now,
						"receipts", (json_int_t)lane->receipts, "takeovers",
						(json_int_t)lane->takeovers, "refused",
						json_text(lane->refused)));
	}
	return list;
}

/* Counts by their names, so that a new one is one line. */
static void set_counts(json_t *object, const struct outbox_target_stats *t)
{
	const struct {
		const char *name;
		int64_t count;
	} counts[] = {
		{ "pending", t->pending },
		{ "sending", t->sending },
		{ "waiting", t->waiting },
		{ "parked", t->parked },
		{ "deferred", t->deferred },
		{ "failed", t->failed },
		{ "discarded", t->discarded },
		{ "delivered", t->delivered_ever },
		{ "delivered_last_minute", t->delivered_minute },
		{ "retries_last_minute", t->retries_minute },
		{ "lag", status_lag(t) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_object_set_new(object, counts[i].name, json_integer(counts[i].count));
}

static json_t *target_json(const struct outbox_stats *stats, const struct outbox_target_stats *t)
{
	outbox_time age = t->oldest ? stats->store_now - t->oldest : 0;
	outbox_time drain = status_drain(stats, t);
	json_t *object =
		json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			  json_text(t->name), "state", status_health_name(status_health(stats, t)),
			  "paused", t->paused, "paused_by", json_text(t->paused_by),
			  "paused_reason", json_text(t->paused_reason), "outage",
			  json_text(t->outage), "outage_since", json_time(t->outage_since), "rate",
			  json_thousandths(t->delivered_minute * 1000 / 60), "oldest",
			  json_time(t->oldest), "oldest_age",
			  t->oldest ? json_seconds(age) : json_null(), "drain_time",
			  drain ? json_seconds(drain) : json_null(), "lanes", lanes_json(stats, t));

	if (object)
		set_counts(object, t);
	return object;
}

int status_json(const struct cli *cli, const struct outbox_stats *stats, struct outbox_error *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < stats->n_targets; i++)
		json_array_append_new(list, target_json(stats, &stats->targets[i]));
	return json_print(json_pack("{s:o, s:o, s:i, s:o, s:I, s:I, s:o}", "store",
				    json_text(cli->info.name), "driver",
				    json_text(cli->info.driver), "schema", cli->info.schema_version,
				    "now", json_time(stats->store_now), "messages",
				    (json_int_t)stats->messages, "count_cap",
				    (json_int_t)OUTBOX_COUNT_CAP, "targets", list),
			  err);
}
