/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_H
#define TELEMETRY_SAMPLER_H

/*
 * Every source is looked at every health.interval, each by a thread of its own, so that a store that does not answer
 * delays no other, and what was seen is kept. Metrics, health, alerts and the admin server's counts are answered
 * from that, so that no number of people who look costs the database anything.
 */

#include "daemon/daemon.h"

struct watch;

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
