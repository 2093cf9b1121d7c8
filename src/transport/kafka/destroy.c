/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rd_kafka_destroy() waits for the library's threads. Mostly that takes a millisecond; a thread that looks a name
 * up waits for the resolver, which takes as long as it likes. So a thread of ours does the waiting, and we wait
 * for it, but only for a moment. It touches nothing but the producer.
 */
#include "transport/kafka/driver.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PATIENCE 2000 /* ms */

struct destroyer {
	rd_kafka_t *producer;
	int done;         /* an event when it is destroyed */
	atomic_int users; /* the thread and the one who waits; the last one frees */
};

static void let_go(struct destroyer *destroyer)
{
	if (atomic_fetch_sub(&destroyer->users, 1) > 1)
		return;
	close(destroyer->done);
	free(destroyer);
}

static void *destroy_producer(void *arg)
{
	struct destroyer *destroyer = arg;

	rd_kafka_destroy_flags(destroyer->producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	eventfd_write(destroyer->done, 1);
	let_go(destroyer);
	return NULL;
}

static bool start(struct destroyer *destroyer, pthread_t *ret_thread)
{
	if (!destroyer)
		return false;
	destroyer->done = eventfd(0, EFD_CLOEXEC);
	if (destroyer->done >= 0 &&
	    pthread_create(ret_thread, NULL, destroy_producer, destroyer) == 0)
		return true;
	if (destroyer->done >= 0)
		close(destroyer->done);
	free(destroyer);
	return false;
}

void kafka_destroy(rd_kafka_t *producer)
{
	struct destroyer *destroyer = calloc(1, sizeof(*destroyer));
	struct pollfd done = { .events = POLLIN };
	pthread_t thread;

	if (destroyer)
		*destroyer = (struct destroyer){ .producer = producer, .users = 2 };
	if (!start(destroyer, &thread)) {
		rd_kafka_destroy_flags(producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
		return;
	}
	done.fd = destroyer->done;
	if (poll(&done, 1, PATIENCE) > 0)
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	let_go(destroyer);
}
