/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_H
#define TELEMETRY_SAMPLER_H

/*
 * Every source is looked at every health.interval, each by a thread of its own, so that a store that does not answer
 * delays no other, and what was seen is kept. Metrics, health, alerts and the admin server's counts are answered
 * from that, so that no number of people who look costs the database anything.
 */

#include "base/cleanup.h"
#include "daemon/daemon.h"

struct sampler;

/* Also starts the webhooks that the configuration's alerts name. */
int sampler_start(struct daemon *daemon, struct sampler **ret_sampler,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
struct sampler *sampler_stop(struct sampler *sampler);

/* The newest sample; NULL: none yet (the first comes within two seconds of the start). */
const struct sample *sampler_hold(struct sampler *sampler);
void sampler_release(const struct sample *sample); /* NULL is legal */

DEFINE_CLEANUP(const struct sample *, sampler_release)

#endif
