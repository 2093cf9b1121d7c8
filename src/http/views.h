/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_VIEWS_H
#define HTTP_VIEWS_H

/* What programs get of deliveries, messages, targets, audit rows: the same by --json and by the admin server. */

#include "fields/fields.h"
#include "operate/health.h"
#include "operate/message_detail.h"
#include "telemetry/sampler.h"

extern const struct record view_delivery, view_deliveries, view_audit, view_audits, view_lane,
	view_target, view_message, view_message_detail, view_status, view_placed_lane,
	view_placed_target, view_blocked_key, view_blocked_keys, view_redacted, view_cancelled,
	view_amended, view_amendment, view_attempt, view_acted, view_paused, view_purged,
	view_problem, view_setting, view_finding, view_alerts;

json_t *json_blocked_keys(const struct outbox_keys_page *page);
json_t *json_audits(const struct outbox_audit *rows, size_t count);

/* How much of a payload is shown. Masked, the values of headers are, too. */
enum payload_view { PAYLOAD_SHOWN = 0, PAYLOAD_MASKED, PAYLOAD_TOO_LARGE };
#define HEADER_MASK "***"

json_t *json_message_detail(const struct message_detail *detail, enum payload_view view);

json_t *json_targets(const struct outbox_stats *stats);

/* Where a target or a lane is, among many. */
struct place_of {
	const char *source, *target;
	const char *transport; /* NULL: no relay here has it */
	int breaker;           /* enum breaker_state + 1; 0: no relay here has it */
};
json_t *json_placed_lane(const struct place_of *place, const struct outbox_stats *stats,
			 const struct outbox_lane_stats *lane);
json_t *json_placed_target(const struct place_of *place, const struct outbox_stats *stats,
			   const struct outbox_target_stats *target);

/* A store with all its targets. */
json_t *json_status(const struct outbox_store_info *info, const struct outbox_stats *stats,
		    enum health_level health);

/* ---- what is not well ---------------------------------------------------------------------- */

/* The fields that every view of a sample has: when, how well, what is the matter. */
json_t *view_make_findings(const void *row);

#define VIEW_SAMPLE_FIELDS                                                           \
	FIELD(struct sample, at, FIELD_TIME, 0, "when it was looked at"),            \
		FIELD_ONE_OF(struct sample, level, health_levels, 0, NULL),          \
		FIELD(struct sample, starting, FIELD_BOOL, 0,                        \
		      "not every source was looked at yet: the level is not known"), \
	{                                                                            \
		.name = "findings", .type = FIELD_LIST, .make = view_make_findings,  \
		.of = &view_finding, .help = "what is wrong, the worst first"        \
	}

/* ---- what was done: view_act.c ------------------------------------------------------------- */

struct acted_view {
	const char *action; /* "requeue" */
	bool dry_run;
	struct outbox_acted acted;
	outbox_time before; /* for the next call, while there is more; 0: none */
};

json_t *json_redacted(const char *id, bool changed);
json_t *json_cancelled(const char *id, bool changed);
json_t *json_amended(const char *id, const struct outbox_amended *amended);
json_t *json_paused(const char *target, bool paused, bool changed);

struct purged_view {
	bool dry_run;
	struct outbox_purged purged;
	const char *archive; /* NULL: none */
	int64_t archived;
};

/* ---- configuration: view_config.c ---------------------------------------------------------- */

struct problems;
json_t *json_problems(const struct problems *problems);
/* One value in effect, as config_show() tells it; secrets are masked there. */
json_t *json_setting(const char *key, const char *value, const char *from);

#endif
