/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_WATCH_H
#define ADMIN_WATCH_H

/*
 * Every source is looked at every health.interval, each by a thread of its own, so that a store that does not answer
 * delays no other, and what was seen is kept. Metrics, health, alerts and the admin server's counts are answered
 * from that, so that no number of people who look costs the database anything.
 */

#include "admin/daemon.h"
#include "admin/health.h"

struct watch;

struct watch_source {
	const struct daemon_source *source;
	const struct outbox_stats *stats; /* NULL: the store did not answer */
	const char *trouble;              /* why not */
	outbox_time looked;               /* wall: when stats were read; 0: never */
	enum health_level level;
};

/* What was seen at one moment. Never changes; held until it is given back. */
struct watch_sample {
	outbox_time at; /* wall */
	size_t n_sources;
	const struct watch_source *sources;
	size_t n_findings;
	const struct health_finding *findings; /* the worst first */
	enum health_level level;
	bool by_file; /* the configuration is one that can be reloaded */
	bool reload_refused;
};

/* Also starts to tell those whom the configuration's alerts name. */
int watch_start(struct daemon *daemon, struct watch **ret_watch,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
struct watch *watch_stop(struct watch *watch);

/* The newest sample; NULL: none yet (the first comes within two seconds of the start). */
const struct watch_sample *watch_hold(struct watch *watch);
void watch_release(struct watch *watch, const struct watch_sample *sample);

/* Wait for a sample newer than `after`, at most timeout. False: there is none. For live views. */
bool watch_wait(struct watch *watch, outbox_time after, outbox_time timeout);

#endif
