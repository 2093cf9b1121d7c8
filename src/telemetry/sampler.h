/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_H
#define TELEMETRY_SAMPLER_H

/*
 * Every source is looked at every health.interval, each by a thread of its own, so that a store that does not answer
 * delays no other, and what was seen is kept. Metrics, health, alerts and the admin server's counts are answered
 * from that, so that no number of people who look costs the database anything.
 */

#include "daemon/daemon.h"

struct sampler;

/* Also starts to tell those whom the configuration's alerts name. */
int sampler_start(struct daemon *daemon, struct sampler **ret_watch,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
struct sampler *sampler_stop(struct sampler *sampler);

/* The newest sample; NULL: none yet (the first comes within two seconds of the start). */
const struct sample *sampler_hold(struct sampler *sampler);
void sampler_release(struct sampler *sampler, const struct sample *sample);

/* Wait for a sample newer than `after`, at most timeout. False: there is none. For live views. */
bool sampler_wait(struct sampler *sampler, outbox_time after, outbox_time timeout);

#endif
