/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rd_kafka_destroy() waits for the library's threads. Mostly that takes a millisecond; a thread that looks a name
 * up waits for the resolver, which takes as long as it likes. So a thread of ours does the waiting, and we wait
 * for it, but only for a moment. It touches nothing but the producer.
 */
#include "transport/kafka/kafka.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PATIENCE 2000 /* ms */

struct reaper {
	rd_kafka_t *producer;
	int done;         /* an event when it is destroyed */
	atomic_int users; /* the thread and the one who waits; the last one frees */
};

static void let_go(struct reaper *reaper)
{
	if (atomic_fetch_sub(&reaper->users, 1) > 1)
		return;
	close(reaper->done);
	free(reaper);
}

static void *reap(void *arg)
{
	struct reaper *reaper = arg;

	rd_kafka_destroy_flags(reaper->producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	eventfd_write(reaper->done, 1);
	let_go(reaper);
	return NULL;
}

static bool start(struct reaper *reaper, pthread_t *ret_thread)
{
	if (!reaper)
		return false;
	reaper->done = eventfd(0, EFD_CLOEXEC);
	if (reaper->done >= 0 && pthread_create(ret_thread, NULL, reap, reaper) == 0)
		return true;
	if (reaper->done >= 0)
		close(reaper->done);
	free(reaper);
	return false;
}

void kafka_reap(rd_kafka_t *producer)
{
	struct reaper *reaper = calloc(1, sizeof(*reaper));
	struct pollfd done = { .events = POLLIN };
	pthread_t thread;

	if (reaper)
		*reaper = (struct reaper){ .producer = producer, .users = 2 };
	if (!start(reaper, &thread)) {
		rd_kafka_destroy_flags(producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		return;
	}
	done.fd = reaper->done;
	if (poll(&done, 1, PATIENCE) > 0)
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	let_go(reaper);
}
