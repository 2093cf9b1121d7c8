/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_OTLP_H
#define TELEMETRY_OTLP_H

/*
 * Metrics and one span per settled batch, for an OpenTelemetry collector. A thread of its own sends them; a collector
 * that is slow or away costs spans, which are counted, and never a worker's time.
 */

#include "telemetry/sampler.h"

struct otlp;

/* Starts nothing. config has an endpoint; its texts are copied. instance: this relay's name for people; may be NULL. */
int otlp_new(const struct config_otlp *config, const char *instance, struct otlp **ret_otlp,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* For daemon_observe(), context is the struct otlp. Never waits. */
void otlp_observe(void *context, const char *source, const struct batch_report *report);

/* Start to send. sampler outlives otlp_stop(). */
int otlp_start(struct otlp *otlp, struct sampler *sampler, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Send what is left, for three seconds at the most, and end the thread. */
void otlp_stop(struct otlp *otlp);

/* Stops first. No relay may use it any more. NULL is legal; returns NULL. */
struct otlp *otlp_free(struct otlp *otlp);

/* Of this process since its start. False: there is no export. */
struct otlp_counts {
	uint64_t sent, dropped; /* spans */
	uint64_t failures;      /* requests that were refused or not answered */
};
bool otlp_look(struct otlp_counts *ret_counts);

#endif
