/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_HEALTH_TEST_H
#define OPERATE_HEALTH_TEST_H

/* A source with one target of two lanes, and looks at it. All time is handed in. */

#include "base/cleanup.h"
#include "base/unit_test.h"
#include "operate/health.h"
#include "operate/rules.h"

#include <outbox/arena.h>

#include <stdlib.h>

#define T0 (1800000000 * OUTBOX_SECONDS)

struct world {
	struct config_health limits;
	struct health_memory *memory;
	struct outbox_arena *arena;
	outbox_time wall, mono;
	struct outbox_lane_stats lanes[2];
	struct outbox_target_stats target;
	struct outbox_stats stats;
	struct target_metrics metrics;
	struct health_source source;
	outbox_time lease; /* what is left of it */
	bool once, gone;
	const struct health_finding *findings;
	size_t count;
};

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->limits = (struct config_health){ .interval = 5 * OUTBOX_SECONDS,
					    .settle = 30 * OUTBOX_SECONDS,
					    .backlog = 10000,
					    .pending = 1000,
					    .retry_rate = 10,
					    .pending_for = 5 * OUTBOX_MINUTES,
					    .overdue = 15 * OUTBOX_MINUTES,
					    .sending = 30 * OUTBOX_MINUTES,
					    .latency = 5 * OUTBOX_MINUTES };
	w->memory = health_memory_new();
	w->arena = outbox_arena_new(1 << 20);
	w->wall = T0;
	w->mono = 5 * OUTBOX_DAYS;
	w->lease = 1;
	w->lanes[0] = (struct outbox_lane_stats){ .lane = 0, .owner = "a/0" };
	w->lanes[1] = (struct outbox_lane_stats){ .lane = 1, .owner = "a/0" };
	w->target =
		(struct outbox_target_stats){ .name = "events", .n_lanes = 2, .lanes = w->lanes };
	w->stats.n_targets = 1;
	w->stats.targets = &w->target;
	w->metrics.target = "events";
	w->source = (struct health_source){
		.name = "shop", .stats = &w->stats, .metrics = &w->metrics, .n_metrics = 1
	};
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	health_memory_free(w->memory);
	outbox_arena_free(w->arena);
	free(w);
	return 0;
}

/* One look, the store's clock an hour ahead of ours: nobody may mix the two. */
static inline void sample_world(struct world *w)
{
	struct health_input input = { .wall = w->wall,
				      .mono = w->mono,
				      .limits = &w->limits,
				      .sources = &w->source,
				      .n_sources = w->gone ? 0 : 1,
				      .once = w->once };

	w->stats.store_now = w->wall + OUTBOX_HOURS;
	for (size_t i = 0; i < 2; i++)
		w->lanes[i].lease_until = w->stats.store_now + w->lease;
	assert_ok(health_look(w->memory, &input, w->arena, &w->findings, &w->count, err));
}

static inline void go_on(struct world *w, outbox_time step)
{
	w->wall += step;
	w->mono += step;
	sample_world(w);
}

static inline const struct health_finding *found(const struct world *w, enum health_rule rule)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->findings[i].rule, rule_names[rule]) == 0)
			return &w->findings[i];
	return NULL;
}

/* It holds now: it must not fire before `after` and must fire then. */
static inline void fires_after(struct world *w, enum health_rule rule, outbox_time after)
{
	sample_world(w);
	if (after) {
		assert_null(found(w, rule));
		go_on(w, after - 1);
		assert_null(found(w, rule));
		go_on(w, 1);
	}
	assert_non_null(found(w, rule));
	assert_int_equal(found(w, rule)->level, rules[rule].level);
}

static inline void never_fires(struct world *w, enum health_rule rule)
{
	for (int i = 0; i < 10; i++) {
		go_on(w, 10 * OUTBOX_MINUTES);
		assert_null(found(w, rule));
	}
}

static inline void ends_after_settle(struct world *w, enum health_rule rule)
{
	go_on(w, 1);
	assert_non_null(found(w, rule));
	go_on(w, w->limits.settle - 1);
	assert_non_null(found(w, rule));
	go_on(w, 1);
	assert_null(found(w, rule));
}

#endif
