/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_REJECTION_LOG_H
#define RELAY_REJECTION_LOG_H

#include "relay/batch.h"
#include "relay/worker.h"

/* This claim is settled: count its refused messages; told at most once a minute. */
void refusals_note(struct worker *worker, const struct flight *flight, outbox_time now);

/* Tell what was counted and not told: at the end. */
void refusals_tell(struct worker *worker);

#endif
