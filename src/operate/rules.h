/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_RULES_H
#define OPERATE_RULES_H

/* What each rule of health looks at. Pure; when it fires and ends is health.c's. */

#include "config/config.h"
#include "config/rules.h"
#include "relay/metrics.h"

#include <outbox/delivery.h>

/* Healthy with a finding: information, such as a target that somebody paused. */
enum health_level { LEVEL_HEALTHY = 0, LEVEL_DEGRADED, LEVEL_UNHEALTHY };

/* A source as it was seen. */
struct health_source {
	const char *name;
	const struct outbox_stats *stats; /* NULL: the store did not answer */
	const char *trouble; /* why not; with stats: why its relay does not run; NULL: none */
	size_t n_metrics;
	const struct target_metrics *metrics; /* of relays in this process */
	const struct outbox_audit *acts; /* the last ones, the newest first, to tell since when; may be none */
	size_t n_acts;
};

enum truth { TRUTH_FALSE = 0, TRUTH_TRUE, TRUTH_UNKNOWN };

/* What two looks tell together: whether anything moves, and the latency between them. */
struct rule_progress {
	bool begun;
	int64_t receipts;  /* of all lanes */
	outbox_time moved; /* mono: when that number changed, or nothing was being sent */
	/* the latency histogram as it was at two moments, at least LATENCY_STEPS * settle apart */
	struct rule_checkpoint {
		outbox_time mono;
		uint64_t count;
		int64_t sum;
	} older, newer;
};

#define LATENCY_STEPS 5 /* averages are of the last 5 to 10 times health.settle: 2.5 to 5 minutes */
#define RETRY_RATE_MIN 20 /* tries in a minute below which a rate means nothing */

struct rule_view {
	const struct config_health *limits;
	const struct health_source *source;
	const struct outbox_target_stats *target; /* NULL: the rule is about the source */
	const struct target_metrics *metrics;     /* NULL: no relay of this process */
	struct rule_progress *progress;
	outbox_time wall, mono;
	/* the answer: */
	outbox_time since; /* wall; 0: now, for all that is known */
	char text[300];
};

struct rule {
	enum health_level level;
	bool of_target;
	bool at_once; /* needs not hold for a while */
	enum truth (*test)(struct rule_view *view);
	const char *about; /* what it means, in a line */
};

extern const struct rule rules[RULE_COUNT];

/* Switched off by health.off. */
bool rule_is_off(const struct config_health *limits, enum health_rule rule);

struct rule_reason {
	enum health_rule rule;
	const char *target; /* NULL: the source itself */
	char text[300];
};

/* How bad a source that answers is, by one look without memory: the level that `outbox alerts` gives it, except that a
 * target without work misses no relay. ret_why: by which rule; not written when it is healthy. */
enum health_level rule_worst(const struct config_health *limits, const struct outbox_stats *stats,
			     struct rule_reason *ret_why);

/* To be called once a look, before the rules. */
void rule_progress_note(struct rule_progress *progress, const struct rule_view *view);

#endif
