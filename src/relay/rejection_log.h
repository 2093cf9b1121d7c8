/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_REJECTION_LOG_H
#define RELAY_REJECTION_LOG_H

#include "relay/batch.h"
#include "relay/worker.h"

/* This claim is settled: count its refused messages; told at most once a minute. */
void rejection_log_add(struct worker *worker, const struct batch *batch, outbox_time now);

/* Tell what was counted and not told: at the end. */
void rejection_log_flush(struct worker *worker);

#endif
