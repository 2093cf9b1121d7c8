/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rd_kafka_destroy() waits for the library's threads. Mostly that takes a millisecond; a thread that looks a name
 * up waits for the resolver, which takes as long as it likes. So a thread of ours does the waiting, and we wait
 * for it, but only for a moment. It touches nothing but the producer.
 */
#include "transport/kafka/driver.h"

#include "base/thread.h"

#include <poll.h>
#include <stddef.h>

#define PATIENCE 2000 /* ms */
#define STEP 2        /* ms between two looks */

static void *destroy_producer(void *producer)
{
	rd_kafka_destroy_flags(producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	return NULL;
}

void kafka_destroy(rd_kafka_t *producer)
{
	pthread_t thread;

	if (thread_start(&thread, destroy_producer, producer)) {
		destroy_producer(producer);
		return;
	}
	for (int waited = 0; waited < PATIENCE; waited += STEP) {
		if (pthread_tryjoin_np(thread, NULL) == 0)
			return;
		poll(NULL, 0, STEP);
	}
	pthread_detach(thread);
}
