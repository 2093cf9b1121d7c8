/* SPDX-License-Identifier: Apache-2.0 */
/* Targets, lanes, a store with all of them, what is not well. */
#include "base/cleanup.h"
#include "fields/json_value.h"
#include "http/views.h"
#include "operate/status.h"

/* What the store counted, and what follows from it. */
struct target_row {
	struct outbox_target_stats s;
	const struct outbox_stats *stats;
	const char *state;
	int64_t rate, lag;
	outbox_time oldest_age, drain;
};

struct lane_row {
	struct outbox_lane_stats s;
	bool live;
};

#define L(name_, kind_, flags_, help_) \
	FIELD_NAMED(#name_, struct lane_row, s.name_, kind_, flags_, help_)

static const struct field lane_fields[] = {
	L(lane, FIELD_INT, 0, NULL),
	L(owner, FIELD_TEXT, FIELD_NULL, NULL),
	L(lease_until, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct lane_row, live, FIELD_BOOL, 0, "its lease has not run out"),
	L(receipts, FIELD_NUMBER, 0, "number of the last receipt"),
	L(takeovers, FIELD_NUMBER, 0, "ever"),
	L(refused, FIELD_TEXT, FIELD_NULL | FIELD_UNTRUSTED,
	  "why relays refuse it until somebody repairs it"),
};

const struct record view_lane = RECORD("Lane", lane_fields);

static void fill_lane(const struct outbox_stats *stats, const struct outbox_lane_stats *lane,
		      struct lane_row *row)
{
	row->s = *lane;
	row->live = lane->owner && lane->lease_until > stats->store_now;
}

/* A lane without the target it is of. */
struct placed_lane {
	struct lane_row row;
	const char *source, *target;
};

static const struct field placed_lane_fields[] = {
	FIELD(struct placed_lane, source, FIELD_TEXT, 0, NULL),
	FIELD(struct placed_lane, target, FIELD_TEXT, 0, NULL),
};

const struct record view_placed_lane = { .name = "LaneOfTarget",
					 .fields = placed_lane_fields,
					 .count = ARRAY_SIZE(placed_lane_fields),
					 .base = &view_lane };

json_t *json_placed_lane(const struct place_of *place, const struct outbox_stats *stats,
			 const struct outbox_lane_stats *lane)
{
	struct placed_lane row = { .source = place->source, .target = place->target };

	fill_lane(stats, lane, &row.row);
	return fields_json(&view_placed_lane, &row);
}

static json_t *make_lanes(const void *row)
{
	const struct target_row *target = row;
	json_t *list = json_array();
	struct lane_row lane;

	for (size_t i = 0; i < target->s.n_lanes; i++) {
		fill_lane(target->stats, &target->s.lanes[i], &lane);
		json_array_append_new(list, fields_json(&view_lane, &lane));
	}
	return list;
}

static json_t *make_oldest_age(const void *row)
{
	const struct target_row *target = row;

	return target->s.oldest ? json_seconds(target->oldest_age) : json_null();
}

#define T(name_, kind_, flags_, help_) \
	FIELD_NAMED(#name_, struct target_row, s.name_, kind_, flags_, help_)

static const struct field target_fields[] = {
	T(name, FIELD_TEXT, 0, NULL),
	{ .name = "state",
	  .type = FIELD_TEXT,
	  .offset = offsetof(struct target_row, state),
	  .words = health_names },
	T(paused, FIELD_BOOL, 0, NULL),
	T(paused_by, FIELD_TEXT, FIELD_NULL, NULL),
	T(paused_reason, FIELD_TEXT, FIELD_NULL, NULL),
	T(outage, FIELD_TEXT, FIELD_NULL | FIELD_UNTRUSTED, "why a relay cannot reach it"),
	T(outage_since, FIELD_TIME, FIELD_NULL, NULL),
	T(unserved, FIELD_TEXT, FIELD_NULL | FIELD_UNTRUSTED,
	  "why a relay that is configured for it does not serve it"),
	T(unserved_since, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct target_row, rate, FIELD_THOUSANDTHS, 0,
	      "delivered in a second, over the last minute"),
	T(oldest, FIELD_TIME, FIELD_NULL,
	  "when the oldest unfinished delivery became ready to send, not counting failed ones"),
	FIELD_MADE("oldest_age", FIELD_SECONDS, FIELD_NULL, make_oldest_age, "seconds"),
	FIELD_NAMED("drain_time", struct target_row, drain, FIELD_SECONDS, FIELD_NULL,
		    "seconds that the lag takes at this rate"),
	FIELD_MADE_OF("lanes", FIELD_LIST, view_lane, make_lanes, NULL),
	T(pending, FIELD_NUMBER, 0, "in the log, unread"),
	T(sending, FIELD_NUMBER, 0, NULL),
	T(waiting, FIELD_NUMBER, 0, "for their next attempt"),
	T(parked, FIELD_NUMBER, 0, "behind an unfinished message of their key"),
	T(deferred, FIELD_NUMBER, 0, "until they are due"),
	T(failed, FIELD_NUMBER, 0, NULL),
	T(discarded, FIELD_NUMBER, 0, NULL),
	FIELD_NAMED("delivered", struct target_row, s.delivered_ever, FIELD_NUMBER, 0, "ever"),
	FIELD_NAMED("delivered_last_minute", struct target_row, s.delivered_minute, FIELD_NUMBER, 0,
		    NULL),
	FIELD_NAMED("retries_last_minute", struct target_row, s.retries_minute, FIELD_NUMBER, 0,
		    NULL),
	FIELD(struct target_row, lag, FIELD_NUMBER, 0,
	      "unfinished deliveries, not counting deferred ones"),
};

const struct record view_target = RECORD("Target", target_fields);

static void fill_target(const struct outbox_stats *stats, const struct outbox_target_stats *target,
			struct target_row *row)
{
	*row = (struct target_row){
		.s = *target,
		.stats = stats,
		.state = health_names[status_health(stats, target)],
		.rate = target->delivered_minute * 1000 / 60,
		.lag = status_lag(target),
		.oldest_age = target->oldest ? stats->store_now - target->oldest : 0,
		.drain = status_drain(stats, target),
	};
}

/* A target without the source it is of, and what the relay of this process has to do with it. */
struct placed_target {
	struct target_row row;
	struct place_of place;
};

static const char *const breakers[] = { NULL, "closed", "open", "probing", NULL };

static const struct field placed_target_fields[] = {
	FIELD_NAMED("source", struct placed_target, place.source, FIELD_TEXT, 0, NULL),
	FIELD_NAMED("transport", struct placed_target, place.transport, FIELD_TEXT, FIELD_NULL,
		    "null: not a target of the relay of this process"),
	{ .name = "breaker",
	  .type = FIELD_WORD,
	  .offset = offsetof(struct placed_target, place.breaker),
	  .flags = FIELD_NULL,
	  .words = breakers,
	  .help = "of this process; open: unreachable from here" },
};

const struct record view_placed_target = { .name = "TargetOfSource",
					   .fields = placed_target_fields,
					   .count = ARRAY_SIZE(placed_target_fields),
					   .base = &view_target };

json_t *json_placed_target(const struct place_of *place, const struct outbox_stats *stats,
			   const struct outbox_target_stats *target)
{
	struct placed_target row = { .place = *place };

	fill_target(stats, target, &row.row);
	return fields_json(&view_placed_target, &row);
}

json_t *json_targets(const struct outbox_stats *stats)
{
	json_t *list = json_array();
	struct target_row row;

	for (size_t i = 0; i < stats->n_targets; i++) {
		fill_target(stats, &stats->targets[i], &row);
		json_array_append_new(list, fields_json(&view_target, &row));
	}
	return list;
}

/* ---- a store ------------------------------------------------------------------------------- */

struct status_row {
	struct outbox_store_info info;
	const struct outbox_stats *stats;
	const char *health;
	outbox_time now;
	int64_t messages, cap;
	struct outbox_inbox_stats inbox;
};

static json_t *make_targets(const void *row)
{
	return json_targets(((const struct status_row *)row)->stats);
}

static const struct field status_fields[] = {
	FIELD_NAMED("store", struct status_row, info.name, FIELD_CHARS, 0, "its short name"),
	FIELD_NAMED("driver", struct status_row, info.driver, FIELD_CHARS, 0, NULL),
	FIELD_NAMED("schema", struct status_row, info.schema_version, FIELD_INT, 0, "its version"),
	FIELD(struct status_row, health, FIELD_TEXT, 0, "healthy, degraded or unhealthy"),
	FIELD(struct status_row, now, FIELD_TIME, 0, "the store's clock"),
	FIELD(struct status_row, messages, FIELD_NUMBER, 0, "in the log"),
	FIELD_NAMED("count_cap", struct status_row, cap, FIELD_NUMBER, 0,
		    "counting stops here: a larger number means more than this"),
	FIELD_NAMED("inbox_ids", struct status_row, inbox.rows, FIELD_NUMBER, 0,
		    "in the inbox beside it; 0: there is none, or it is empty"),
	FIELD_NAMED("inbox_oldest", struct status_row, inbox.oldest, FIELD_TIME, FIELD_NULL,
		    "when the oldest of them was received"),
	FIELD_MADE_OF("targets", FIELD_LIST, view_target, make_targets, NULL),
};

const struct record view_status = RECORD("Status", status_fields);

json_t *json_status(const struct outbox_store_info *info, const struct outbox_stats *stats,
		    enum health_level health)
{
	struct status_row row = {
		.info = *info,
		.stats = stats,
		.health = health_level_name(health),
		.now = stats->store_now,
		.messages = stats->messages,
		.inbox = stats->inbox,
		.cap = OUTBOX_COUNT_CAP,
	};

	return fields_json(&view_status, &row);
}

/* ---- what is not well ----------------------------------------------------------------------- */

static const struct field finding_fields[] = {
	FIELD(struct health_finding, rule, FIELD_TEXT, 0, "also the alert's name"),
	FIELD_ONE_OF(struct health_finding, level, health_levels, 0, NULL),
	FIELD(struct health_finding, source, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct health_finding, target, FIELD_TEXT, FIELD_NULL, "null: it is about the source"),
	FIELD(struct health_finding, since, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct health_finding, text, FIELD_CHARS, 0,
	      "what is the matter, with the number and the limit"),
	FIELD(struct health_finding, runbook, FIELD_CHARS, 0, "what to do: a link to its section"),
};

const struct record view_finding = RECORD("Finding", finding_fields);

json_t *view_make_findings(const void *row)
{
	const struct sample *sample = row;

	return fields_list(&view_finding, sample->findings, sample->n_findings,
			   sizeof(*sample->findings));
}

static const struct field alerts_fields[] = { VIEW_SAMPLE_FIELDS };

const struct record view_alerts = RECORD("Alerts", alerts_fields);
