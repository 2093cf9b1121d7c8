/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rd_kafka_destroy() waits for the library's threads. Mostly that takes a millisecond; a thread that looks a name
 * up waits for the resolver, which takes as long as it likes. So a thread of ours does the waiting, and we wait
 * for it, but only for a moment. It touches nothing but the producer.
 */
#include "transport/kafka/kafka.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE 2 /* seconds */

struct reaper {
	pthread_mutex_t mutex;
	pthread_cond_t finished;
	rd_kafka_t *producer;
	bool done, alone; /* guarded: destroyed; nobody waits, so the thread frees this */
};

static void reaper_free(struct reaper *reaper)
{
	pthread_cond_destroy(&reaper->finished);
	pthread_mutex_destroy(&reaper->mutex);
	free(reaper);
}

static void *reaper_main(void *arg)
{
	struct reaper *reaper = arg;
	bool alone;

	rd_kafka_destroy_flags(reaper->producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	pthread_mutex_lock(&reaper->mutex);
	alone = reaper->alone;
	reaper->done = true;
	pthread_cond_signal(&reaper->finished);
	pthread_mutex_unlock(&reaper->mutex);
	if (alone)
		reaper_free(reaper);
	return NULL;
}

static void await(struct reaper *reaper, pthread_t thread)
{
	struct timespec until;
	bool done;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	pthread_mutex_lock(&reaper->mutex);
	while (!reaper->done && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&reaper->finished, &reaper->mutex, &until);
	done = reaper->done;
	reaper->alone = !done;
	pthread_mutex_unlock(&reaper->mutex);
	if (!done) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	reaper_free(reaper);
}

void kafka_reap(rd_kafka_t *producer)
{
	struct reaper *reaper = calloc(1, sizeof(*reaper));
	pthread_condattr_t monotonic;
	pthread_t thread;

	if (!reaper) {
		rd_kafka_destroy_flags(producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		return;
	}
	reaper->producer = producer;
	pthread_mutex_init(&reaper->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&reaper->finished, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&thread, NULL, reaper_main, reaper) != 0) {
		rd_kafka_destroy_flags(producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		reaper_free(reaper);
		return;
	}
	await(reaper, thread);
}
