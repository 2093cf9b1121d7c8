/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread looks at its state at least every five seconds, so arming it for a later time than that
 * costs a mutex and no wake-up: the hot path does not pay for it.
 */
#include "transport/rabbitmq/watchdog.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_EVERY (5 * OUTBOX_SECONDS)

static outbox_time now(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
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
static outbox_time check_deadlines(struct rabbit_watchdog *w, outbox_time at)
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

	waiting_lock(&w->waiting);
	while (!w->ending) {
		outbox_time at = now();

		w->wakes_at = check_deadlines(w, at);
		waiting_wait(&w->waiting, w->wakes_at - at);
	}
	waiting_unlock(&w->waiting);
	return NULL;
}

int rabbit_watchdog_start(struct rabbit_watchdog *w, amqp_connection_state_t connection,
			  struct outbox_error *err)
{
	int r;

	*w = (struct rabbit_watchdog){ .connection = connection };
	r = waiting_init(&w->waiting, err);
	if (r != OUTBOX_OK)
		return r;
	w->fd = fcntl(amqp_get_sockfd(connection), F_DUPFD_CLOEXEC, 3);
	r = w->fd < 0 ? errno : thread_start(&w->thread, run, w);
	w->running = !r;
	if (w->running)
		return OUTBOX_OK;
	if (w->fd >= 0)
		close(w->fd);
	waiting_deinit(&w->waiting);
	return outbox_fail_native(err, OUTBOX_ENOMEM, r,
				  "cannot watch the connection: no more threads or descriptors");
}

void rabbit_watchdog_beat(struct rabbit_watchdog *w, int seconds)
{
	waiting_lock(&w->waiting);
	w->beat = seconds * OUTBOX_SECONDS;
	waiting_unlock(&w->waiting);
}

void rabbit_watchdog_arm(struct rabbit_watchdog *w, outbox_time left)
{
	const outbox_time longest = OUTBOX_DAYS;

	waiting_lock(&w->waiting);
	w->armed = true;
	w->until = now() + (left > longest ? longest : left > 0 ? left : 0);
	if (w->until < w->wakes_at)
		waiting_ring(&w->waiting);
	waiting_unlock(&w->waiting);
}

bool rabbit_watchdog_disarm(struct rabbit_watchdog *w)
{
	bool fired;

	waiting_lock(&w->waiting);
	w->armed = false;
	w->beat_at = now() + w->beat;
	if (w->beat && w->beat_at < w->wakes_at)
		waiting_ring(&w->waiting);
	fired = w->fired;
	waiting_unlock(&w->waiting);
	return fired;
}

void rabbit_watchdog_stop(struct rabbit_watchdog *w)
{
	if (!w->running)
		return;
	waiting_lock(&w->waiting);
	w->ending = true;
	waiting_ring(&w->waiting);
	waiting_unlock(&w->waiting);
	pthread_join(w->thread, NULL);
	close(w->fd);
	waiting_deinit(&w->waiting);
	w->running = false;
}
