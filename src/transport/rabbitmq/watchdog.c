/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread looks at its state at least every five seconds, so arming it for a time that lies further away
 * costs a mutex and no wake-up: the hot path does not pay for it.
 */
#include "transport/rabbitmq/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define LOOK_EVERY (5 * SECOND)

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * SECOND + ts.tv_nsec;
}

/* Idle: the driver takes the mutex before it touches the connection, so here nobody else does. */
static void send_heartbeat(struct rabbit_watchdog *w)
{
	amqp_frame_t frame = { .frame_type = AMQP_FRAME_HEARTBEAT };
	struct pollfd socket = { .fd = w->fd, .events = POLLOUT };

	/* A failure is found by the next batch, which reads first. */
	if (poll(&socket, 1, 0) == 1 && socket.revents == POLLOUT)
		amqp_send_frame(w->connection, &frame);
}

/* One look at the state; returns when to look again. */
static int64_t look(struct rabbit_watchdog *w, int64_t now)
{
	int64_t next = now + LOOK_EVERY;

	if (w->armed && !w->fired && now >= w->until) {
		shutdown(w->fd, SHUT_RDWR);
		w->fired = true;
	}
	if (!w->armed && w->beat && now >= w->beat_at) {
		send_heartbeat(w);
		w->beat_at = now + w->beat;
	}
	if (w->armed && !w->fired && w->until < next)
		next = w->until;
	if (!w->armed && w->beat && w->beat_at < next)
		next = w->beat_at;
	return next;
}

static void *run(void *argument)
{
	struct rabbit_watchdog *w = argument;

	pthread_mutex_lock(&w->mutex);
	while (!w->ending) {
		struct timespec at;

		w->wakes_at = look(w, now_ns());
		at = (struct timespec){ .tv_sec = (time_t)(w->wakes_at / SECOND),
					.tv_nsec = (long)(w->wakes_at % SECOND) };
		pthread_cond_timedwait(&w->changed, &w->mutex, &at);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static int start_thread(struct rabbit_watchdog *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	r = pthread_attr_init(&attr);
	if (r)
		return r;
	pthread_attr_setstacksize(&attr, (size_t)256 << 10);
	sigfillset(&all); /* signals are for the program's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, &attr, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

int rabbit_watchdog_start(struct rabbit_watchdog *w, amqp_connection_state_t connection,
			  struct outbox_error *err)
{
	pthread_condattr_t attr;
	int r;

	*w = (struct rabbit_watchdog){ .connection = connection };
	w->fd = fcntl(amqp_get_sockfd(connection), F_DUPFD_CLOEXEC, 3);
	if (w->fd < 0)
		return outbox_fail_native(err, OUTBOX_ECONN, errno,
					  "cannot watch the connection: %s", strerror(errno));
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = start_thread(w);
	if (r) {
		close(w->fd);
		pthread_cond_destroy(&w->changed);
		pthread_mutex_destroy(&w->mutex);
		return outbox_fail_native(err, OUTBOX_ENOMEM, r, "cannot start a thread: %s",
					  strerror(r));
	}
	w->running = true;
	return OUTBOX_OK;
}

void rabbit_watchdog_beat(struct rabbit_watchdog *w, int seconds)
{
	pthread_mutex_lock(&w->mutex);
	w->beat = (int64_t)seconds * SECOND;
	pthread_mutex_unlock(&w->mutex);
}

void rabbit_watchdog_arm(struct rabbit_watchdog *w, outbox_time left)
{
	const outbox_time longest = OUTBOX_DAYS;

	pthread_mutex_lock(&w->mutex);
	w->armed = true;
	w->until = now_ns() + (left > longest ? longest : left > 0 ? left : 0) * 1000;
	if (w->until < w->wakes_at)
		pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

bool rabbit_watchdog_disarm(struct rabbit_watchdog *w)
{
	bool fired;

	pthread_mutex_lock(&w->mutex);
	w->armed = false;
	w->beat_at = now_ns() + w->beat;
	if (w->beat && w->beat_at < w->wakes_at)
		pthread_cond_signal(&w->changed);
	fired = w->fired;
	pthread_mutex_unlock(&w->mutex);
	return fired;
}

void rabbit_watchdog_stop(struct rabbit_watchdog *w)
{
	if (!w->running)
		return;
	pthread_mutex_lock(&w->mutex);
	w->ending = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	close(w->fd);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->mutex);
	w->running = false;
}
