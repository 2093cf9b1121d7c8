/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread looks at its state at least every five seconds, so arming it for a time that lies further away
 * costs a mutex and no wake-up: the hot path does not pay for it.
 */
#include "transport/rabbitmq/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_EVERY (5 * OUTBOX_SECONDS)

static outbox_time now(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
}

static void wake_up(struct rabbit_watchdog *w)
{
	(void)!write(w->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
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
static outbox_time look(struct rabbit_watchdog *w, outbox_time at)
{
	outbox_time next = at + LOOK_EVERY;

	if (w->armed && !w->fired && at >= w->until) {
		shutdown(w->fd, SHUT_RDWR);
		w->fired = true;
	}
	if (!w->armed && w->beat && at >= w->beat_at) {
		send_heartbeat(w);
		w->beat_at = at + w->beat;
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
		struct pollfd wake = { .fd = w->wake, .events = POLLIN };
		outbox_time at = now();
		uint64_t rung;
		int wait;

		w->wakes_at = look(w, at);
		wait = (int)((w->wakes_at - at) / OUTBOX_MILLISECONDS) + 1;
		pthread_mutex_unlock(&w->mutex);
		if (poll(&wake, 1, wait) > 0)
			(void)!read(w->wake, &rung, sizeof(rung));
		pthread_mutex_lock(&w->mutex);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static void let_go(struct rabbit_watchdog *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->wake >= 0)
		close(w->wake);
	pthread_mutex_destroy(&w->mutex);
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
	int r = 0;

	*w = (struct rabbit_watchdog){ .connection = connection, .wake = -1 };
	pthread_mutex_init(&w->mutex, NULL);
	w->fd = fcntl(amqp_get_sockfd(connection), F_DUPFD_CLOEXEC, 3);
	if (w->fd >= 0)
		w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake < 0)
		r = errno;
	if (!r)
		r = start_thread(w);
	w->running = !r;
	if (!r)
		return OUTBOX_OK;
	let_go(w);
	return outbox_fail_native(err, OUTBOX_ENOMEM, r,
				  "cannot watch the connection: no more threads or descriptors");
}

void rabbit_watchdog_beat(struct rabbit_watchdog *w, int seconds)
{
	pthread_mutex_lock(&w->mutex);
	w->beat = seconds * OUTBOX_SECONDS;
	pthread_mutex_unlock(&w->mutex);
}

void rabbit_watchdog_arm(struct rabbit_watchdog *w, outbox_time left)
{
	const outbox_time longest = OUTBOX_DAYS;

	pthread_mutex_lock(&w->mutex);
	w->armed = true;
	w->until = now() + (left > longest ? longest : left > 0 ? left : 0);
	if (w->until < w->wakes_at)
		wake_up(w);
	pthread_mutex_unlock(&w->mutex);
}

bool rabbit_watchdog_disarm(struct rabbit_watchdog *w)
{
	bool fired;

	pthread_mutex_lock(&w->mutex);
	w->armed = false;
	w->beat_at = now() + w->beat;
	if (w->beat && w->beat_at < w->wakes_at)
		wake_up(w);
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
	wake_up(w);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	let_go(w);
	w->running = false;
}
