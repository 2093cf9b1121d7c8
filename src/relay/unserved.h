/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_UNSERVED_H
#define RELAY_UNSERVED_H

/*
 * A worker that serves nothing of its target until somebody repairs something, elsewhere or in its configuration. The
 * others go on; people are told by a log line and by the store, for status, doctor and alerts.
 */

#include "relay/worker.h"

/* Said anew with every round of lease keeping: the store forgets it when a relay dies. */
void unserved_report(struct worker *worker, enum unserved how, const struct outbox_error *why,
		     outbox_time now);
void unserved_over(struct worker *worker, outbox_time now);
/* Sign off; why it was not served stays known. */
void unserved_leave(struct worker *worker);

#endif
