/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LEASE_H
#define RELAY_LEASE_H

#include "relay/worker.h"

/* One round of lease keeping: say that we are alive, and bring our lanes in line with what the store says we hold. */
void lease_keep(struct worker *worker, outbox_time now);

#endif
