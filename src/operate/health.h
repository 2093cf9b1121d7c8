/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_HEALTH_H
#define OPERATE_HEALTH_H

/* Health from rules: pure, from what was seen and what is remembered to findings. */

#include "operate/rules.h"
#include "operate/runbook.h"

struct health_finding {
	const char *rule; /* "failed", "overdue", "backlog" ...: also the alert's name */
	enum health_level level;
	const char *source, *target; /* target may be NULL */
	outbox_time since;           /* wall: how long this has been so; 0: one look cannot know */
	char text[300];              /* what is the matter, with the number and the limit */
	char runbook[RUNBOOK_LINK_MAX]; /* what to do: a link */
};

const char *health_level_name(enum health_level level);
extern const char *const health_levels[]; /* all of them, by number; NULL is behind the last */

struct health_input {
	outbox_time wall, mono;
	const struct config_health *limits;
	const struct health_source *sources;
	size_t n_sources;
	bool once; /* a single look, without memory: what is true counts at once */
};

/* What earlier looks saw: since when a rule holds, and since when it does not. */
struct health_memory;
struct health_memory *health_memory_new(void);
struct health_memory *health_memory_free(struct health_memory *memory);

/*
 * The findings, the worst first, then in the order of sources and rules; texts are the arena's. A rule fires when it
 * held for health.settle (pending: pending_for; failed, refused and paused: at once) and ends when it did
 * not hold for health.settle. Of a store that does not answer nothing new is known: what fired goes on.
 */
int health_look(struct health_memory *memory, const struct health_input *input,
		struct outbox_arena *arena, const struct health_finding **ret_findings,
		size_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The worst of a source; source NULL: of all. */
enum health_level health_worst(const struct health_finding *findings, size_t count,
			       const char *source);

#endif
