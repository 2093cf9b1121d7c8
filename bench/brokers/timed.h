/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_TIMED_H
#define BENCH_BROKERS_TIMED_H

/*
 * A transport around one of ours, "timed:" before its URL: it notes when the first batch was acknowledged, and tells
 * latency_note() of every message that publish() returned as ACKED. That is the moment in which the relay knows;
 * the messages of a batch know together. It costs a look at the clock a batch. It can refuse some messages for now,
 * which then do not reach the broker before their second attempt.
 */

#include "origin.h"

#include <outbox/outbox.h>

/* For the configuration of a relay; one for the whole program. */
const struct outbox_registry *timed_registry(void);

/* Begin to look: for messages only when notes is true. Every nth of the log is refused once; 0: none. */
void timed_start(bool notes, int nth);
/* When the first batch since then was acknowledged, and how many of it count as good. */
struct mark timed_first(void);
/* How many were acknowledged since then that are never refused. */
long timed_good(void);

#endif
