/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_SAMPLE_H
#define OPERATE_SAMPLE_H

/* Stores and relays as they were seen at one moment: what metrics, health and status are made from. */

#include "operate/health.h"

#include <outbox/store.h>

enum source_state { SOURCE_STARTING = 1, SOURCE_RUNNING, SOURCE_DRAINING, SOURCE_STOPPED };

/* A source as it is at this moment. */
struct daemon_source {
	const char *name;
	char store[300]; /* the URL without its secrets */
	enum source_state state;
	const char *trouble; /* why it does not run, or not as the file says; NULL: it does */
	outbox_time trouble_since;
	size_t n_targets;
	const struct target_metrics *targets; /* of this process; empty until it runs */
};

struct sample_source {
	const struct daemon_source *source;
	const struct outbox_stats *stats; /* NULL: the store did not answer */
	const char *trouble;              /* why not */
	outbox_time looked;               /* wall: when stats were read; 0: never */
	enum health_level level;
};

/* What was seen at one moment. Never changes; held until it is given back. */
struct sample {
	outbox_time at; /* wall */
	size_t n_sources;
	const struct sample_source *sources;
	size_t n_findings;
	const struct health_finding *findings; /* the worst first */
	enum health_level level;
	bool starting; /* not every source was looked at yet: the level is not known */
	bool by_file;  /* the configuration is one that can be reloaded */
	bool reload_refused;
};

/* Is there a finding of the same rule about the same source and target? NULL: there is none. */
bool sample_has(const struct sample *sample, const struct health_finding *finding);

/* ---- from a single look: it has no memory, what is true counts at once, and what takes two looks is not judged ---- */

/* The store's numbers, and where a target is paused what operators did, which tells since when. */
int once_read(struct outbox_store *store, struct outbox_arena *arena,
	      struct health_source *ret_source, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Fills in the sample's time, findings and level. */
int once_judge(const struct health_input *input, struct outbox_arena *arena,
	       struct sample *ret_sample, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
