/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wait.h"

#include <stdbool.h>
#include <time.h>

int waiting_init(struct waiting *waiting, struct outbox_error *err)
{
	pthread_condattr_t attributes;
	bool failed = pthread_condattr_init(&attributes);

	if (!failed) {
		failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) ||
			 pthread_cond_init(&waiting->changed, &attributes);
		pthread_condattr_destroy(&attributes);
	}
	if (!failed && pthread_mutex_init(&waiting->mutex, NULL)) {
		pthread_cond_destroy(&waiting->changed);
		failed = true;
	}
	return failed ? outbox_fail(err, OUTBOX_EINTERNAL, "cannot make a mutex") : OUTBOX_OK;
}

void waiting_deinit(struct waiting *waiting)
{
	pthread_cond_destroy(&waiting->changed);
	pthread_mutex_destroy(&waiting->mutex);
}

void waiting_lock(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->mutex);
}

void waiting_unlock(struct waiting *waiting)
{
	pthread_mutex_unlock(&waiting->mutex);
}

void waiting_ring(struct waiting *waiting)
{
	pthread_cond_broadcast(&waiting->changed);
}

void waiting_wait(struct waiting *waiting, outbox_time timeout)
{
	struct timespec at;

	if (timeout <= 0)
		return;
	if (timeout > OUTBOX_DAYS)
		timeout = OUTBOX_DAYS;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)(timeout / OUTBOX_SECONDS);
	at.tv_nsec += (long)(timeout % OUTBOX_SECONDS) * 1000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	pthread_cond_timedwait(&waiting->changed, &waiting->mutex, &at);
}
