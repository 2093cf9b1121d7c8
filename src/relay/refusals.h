/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_REFUSALS_H
#define RELAY_REFUSALS_H

#include "relay/flight.h"
#include "relay/worker.h"

/* This claim is settled: count its refused messages; told at most once a minute. */
void refusals_note(struct worker *worker, const struct flight *flight, outbox_time now);

/* Tell what was counted and not told: at the end. */
void refusals_tell(struct worker *worker);

#endif
