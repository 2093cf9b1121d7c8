/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_JANITOR_H
#define RELAY_JANITOR_H

/* Retention and upkeep of the store, by one worker of a relay, between its batches. */

#include "relay/worker.h"

/* When the next piece of work is due (mono); OUTBOX_NEVER when this worker is not the keeper. */
outbox_time janitor_due(const struct worker *worker);

/* One bounded purge or one upkeep call. */
void janitor_step(struct worker *worker, outbox_time now);

#endif
