/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_POLLER_H
#define BENCH_BROKERS_POLLER_H

/*
 * The classic outbox as it runs all day, in a thread: claim by UPDATE ... SKIP LOCKED, publish by the plain library,
 * mark by UPDATE, and a pause whenever the batch was not full. It tells latency_note() of every message.
 */

#include "passes.h"

struct poller;

/* Makes its table anew; nothing waits. */
struct poller *poller_start(const struct place *place, const struct broker *broker,
			    double milliseconds);
void poller_stop(struct poller *poller);

#endif
