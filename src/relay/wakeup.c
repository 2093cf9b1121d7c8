/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/wakeup.h"

#include "relay/relay.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define IDLE_CHECK (10 * OUTBOX_MILLISECONDS)
#define AGAIN_MIN (20 * OUTBOX_MILLISECONDS)
#define AGAIN_MAX (320 * OUTBOX_MILLISECONDS)
#define LISTEN_SLICE 200 /* ms: how often a listener looks whether the relay stops or works again */
#define STORE_PAUSE OUTBOX_SECONDS
#define LOOK_AGAIN 60  /* seconds */
#define LAST_LOOK 1000 /* ms that all lanes may take to look once more: the store may be far away */

struct listener {
	struct outbox_relay *relay;
	struct outbox_store *store;
	struct random_state random;
	unsigned wakes_seen;
	outbox_time pause; /* before it arms it again: longer while publishers are active */
	bool deaf;         /* this store wakes nobody, nor will it */
};

static bool is_stopping(const struct outbox_relay *relay)
{
	return atomic_load(&relay->stopping);
}

/* Every lane of every worker found nothing, after the last wake-up. */
static bool all_dry(struct outbox_relay *relay)
{
	unsigned last = atomic_load(&relay->wakeup.count);

	for (size_t i = 0; i < relay->n_threads; i++)
		if (atomic_load(&relay->threads[i].worker->dry) != last)
			return false;
	return true;
}

static bool has_work(struct outbox_relay *relay)
{
	for (size_t i = 0; i < relay->n_threads; i++)
		if (!atomic_load(&relay->threads[i].worker->dry))
			return true;
	return false;
}

static void wake_lanes(struct outbox_relay *relay)
{
	atomic_fetch_add(&relay->wakeup.count, 1);
	relay_wake_all(relay);
}

/* Wait a little, with the others' wakes. */
static void wait_a_little(struct listener *l, outbox_time time)
{
	struct outbox_clock *clock = l->relay->plan.clock;

	relay_wait(l->relay, clock->mono(clock) + time, &l->wakes_seen);
}

/* Armed, and all lanes looked once more: wait until somebody wakes us or a lane has work. */
static void listen_on(struct outbox_relay *relay, int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	while (!is_stopping(relay) && all_dry(relay)) {
		int n = poll(&pollfd, 1, LISTEN_SLICE);

		if (n > 0 || (n < 0 && errno != EINTR))
			return;
	}
}

static int listen_once(struct listener *l, struct outbox_error *err)
{
	struct outbox_relay *relay = l->relay;
	bool again = false;
	int fd = -1, r;

	r = l->store->ops->listen(l->store, &fd, &again, err);
	if (r)
		return r;
	if (fd < 0) { /* not now; perhaps later */
		for (int i = 0; i < LOOK_AGAIN && !is_stopping(relay); i++)
			wait_a_little(l, OUTBOX_SECONDS);
		return OUTBOX_OK;
	}
	if (again) { /* publishers are active, or another relay listens: poll on */
		wait_a_little(l, l->pause);
		l->pause = 2 * l->pause < AGAIN_MAX ? 2 * l->pause : AGAIN_MAX;
		return OUTBOX_OK;
	}
	l->pause = AGAIN_MIN;
	atomic_store(&relay->wakeup.armed, true);
	wake_lanes(relay); /* everybody looks once more */
	for (int i = 0; i < LAST_LOOK && !is_stopping(relay) && !all_dry(relay) && !has_work(relay);
	     i++)
		wait_a_little(l, OUTBOX_MILLISECONDS);
	listen_on(relay, fd);
	atomic_store(&relay->wakeup.armed, false);
	wake_lanes(relay); /* first: letting go takes its time */
	r = l->store->ops->stop_listening(l->store, err);
	wake_lanes(relay); /* and for whoever published meanwhile */
	return r;
}

static int open_store(struct listener *l, struct outbox_error *err)
{
	int r = relay_open_store(l->relay, &l->random, &l->store, err);

	if (!r && !(STORE_HAS(l->store, listen) && STORE_HAS(l->store, stop_listening)))
		l->deaf = true;
	return r;
}

void *wakeup_run(void *argument)
{
	struct outbox_relay *relay = argument;
	struct listener l = { .relay = relay, .pause = AGAIN_MIN };

	while (!is_stopping(relay) && !l.deaf) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		int r = OUTBOX_OK;

		if (!all_dry(relay)) {
			wait_a_little(&l, IDLE_CHECK);
			continue;
		}
		if (!l.store)
			r = open_store(&l, &err);
		if (!r && !l.deaf)
			r = listen_once(&l, &err);
		if (r == OUTBOX_ENOTSUP) {
			l.deaf = true;
			log_event(&relay->plan.log, EVENT_RELAY_POLLS, NULL, "%s; this relay polls",
				  err.message);
		} else if (r) {
			/* The workers say what is wrong with the store; not woken, they poll. */
			l.store = store_close(l.store);
			wait_a_little(&l, STORE_PAUSE);
		}
	}
	store_close(l.store);
	return NULL;
}
