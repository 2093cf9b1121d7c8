/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/wakeup.h"

#include "relay/registry.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_CHECK (10 * OUTBOX_MILLISECONDS)
#define AGAIN_MIN (20 * OUTBOX_MILLISECONDS)
#define AGAIN_MAX (320 * OUTBOX_MILLISECONDS)
#define LISTEN_SLICE 200 /* ms: how often a listener looks whether the relay stops or works again */
/* Armed, it counts how many of these in a row end with work to do, and how many rings come in some time. */
#define WORK_SLICE 20 /* ms */
#define WORK_SLICES_MAX 5
#define RINGS_TIME (100 * OUTBOX_MILLISECONDS)
#define RINGS_MAX 40
#define RINGS_REST (500 * OUTBOX_MILLISECONDS)
#define STORE_PAUSE OUTBOX_SECONDS
#define LOOK_AGAIN 60  /* seconds */
#define LAST_LOOK 1000 /* ms that all lanes may take to look once more: the store may be far away */

struct listener {
	struct wakeup *wakeup;
	struct outbox_store *store;
	struct random_state random;
	unsigned wakes_seen;
	outbox_time pause; /* before it arms it again: longer while publishers are active */
	bool deaf;         /* this store wakes nobody, nor will it */
};

int wakeup_init(struct wakeup *wakeup, const struct relay_plan *plan, struct outbox_error *err)
{
	wakeup->plan = plan;
	atomic_init(&wakeup->count, 1);
	return waiting_init(&wakeup->waiting, err);
}

void wakeup_deinit(struct wakeup *wakeup)
{
	waiting_deinit(&wakeup->waiting);
	free(wakeup->dry);
}

unsigned wakeup_count(const struct wakeup *wakeup)
{
	return wakeup ? atomic_load(&wakeup->count) : 1;
}

void wakeup_wait(struct wakeup *wakeup, outbox_time until, unsigned *wakes_seen)
{
	struct outbox_clock *clock = wakeup->plan->clock;
	outbox_time wait = until - clock->mono(clock);

	if (wait <= 0)
		return;
	waiting_lock(&wakeup->waiting);
	if (*wakes_seen == wakeup->wakes)
		waiting_wait(&wakeup->waiting, wait < OUTBOX_SECONDS ? wait : OUTBOX_SECONDS);
	*wakes_seen = wakeup->wakes;
	waiting_unlock(&wakeup->waiting);
}

void wakeup_all(struct wakeup *wakeup)
{
	waiting_lock(&wakeup->waiting);
	wakeup->wakes++;
	waiting_ring(&wakeup->waiting);
	waiting_unlock(&wakeup->waiting);
}

static bool is_stopping(const struct wakeup *wakeup)
{
	return atomic_load(&wakeup->stopping);
}

/* Every lane of every worker found nothing, after the last wake-up. */
static bool all_dry(const struct wakeup *wakeup)
{
	unsigned last = atomic_load(&wakeup->count);

	for (size_t i = 0; i < wakeup->n_workers; i++)
		if (atomic_load(wakeup->dry[i]) != last)
			return false;
	return true;
}

static bool has_work(const struct wakeup *wakeup)
{
	for (size_t i = 0; i < wakeup->n_workers; i++)
		if (!atomic_load(wakeup->dry[i]))
			return true;
	return false;
}

static void wake_lanes(struct wakeup *wakeup)
{
	atomic_fetch_add(&wakeup->count, 1);
	wakeup_all(wakeup);
}

/* Wait a little, with the others' wakes. */
static void wait_a_little(struct listener *l, outbox_time time)
{
	struct outbox_clock *clock = l->wakeup->plan->clock;

	wakeup_wait(l->wakeup, clock->mono(clock) + time, &l->wakes_seen);
}

/* For so long, whoever is woken meanwhile. */
static void rest(struct listener *l, outbox_time time)
{
	struct outbox_clock *clock = l->wakeup->plan->clock;
	outbox_time until = clock->mono(clock) + time;

	while (!is_stopping(l->wakeup) && clock->mono(clock) < until)
		wakeup_wait(l->wakeup, until, &l->wakes_seen);
}

/* Rings in the last moments. */
struct ringing {
	outbox_time since;
	int count;
};

/* So often that publishers, who commit one after the other when they ring, should better be polled. */
static bool rings_too_often(struct ringing *ringing, outbox_time now)
{
	if (now - ringing->since > RINGS_TIME)
		*ringing = (struct ringing){ .since = now };
	return ++ringing->count > RINGS_MAX;
}

/*
 * Armed, and all lanes looked once more: every ring wakes them, and publishers go on ringing while the lanes do what
 * little there is. Returns when that is not little any more, since nobody needs to be woken then, or when the
 * store says so.
 */
static int listen_on(struct listener *l, int fd, bool *ret_too_often, struct outbox_error *err)
{
	struct wakeup *wakeup = l->wakeup;
	struct outbox_clock *clock = wakeup->plan->clock;
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct ringing ringing = { 0 };
	bool again = false;
	int r = OUTBOX_OK, at_work = 0;

	while (!r && !again && !*ret_too_often && !is_stopping(wakeup) && at_work < WORK_SLICES_MAX) {
		int n = poll(&pollfd, 1, all_dry(wakeup) ? LISTEN_SLICE : WORK_SLICE);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0) {
			/* first forget the rings, then wake: who commits in between is seen by those who wake */
			r = store_listen(l->store, &pollfd.fd, &again, err);
			wake_lanes(wakeup);
			*ret_too_often = rings_too_often(&ringing, clock->mono(clock));
		} else if (!n) {
			at_work = all_dry(wakeup) ? 0 : at_work + 1;
			again |= atomic_load(&wakeup->unheard);
		}
	}
	return r;
}

static int listen_once(struct listener *l, struct outbox_error *err)
{
	struct wakeup *wakeup = l->wakeup;
	bool again = false, too_often = false;
	int fd = -1, r;

	r = store_listen(l->store, &fd, &again, err);
	if (r)
		return r;
	if (fd < 0) { /* not now; perhaps later */
		for (int i = 0; i < LOOK_AGAIN && !is_stopping(wakeup); i++)
			wait_a_little(l, OUTBOX_SECONDS);
		return OUTBOX_OK;
	}
	if (again) { /* publishers are active, or another relay listens: poll on */
		wait_a_little(l, l->pause);
		l->pause = 2 * l->pause < AGAIN_MAX ? 2 * l->pause : AGAIN_MAX;
		return OUTBOX_OK;
	}
	l->pause = AGAIN_MIN;
	atomic_store(&wakeup->unheard, false);
	atomic_store(&wakeup->armed, true);
	wake_lanes(wakeup); /* everybody looks once more */
	for (int i = 0;
	     i < LAST_LOOK && !is_stopping(wakeup) && !all_dry(wakeup) && !has_work(wakeup); i++)
		wait_a_little(l, OUTBOX_MILLISECONDS);
	r = listen_on(l, fd, &too_often, err);
	atomic_store(&wakeup->armed, false);
	wake_lanes(wakeup); /* first: letting go takes its time */
	if (!r)
		r = store_stop_listening(l->store, err);
	wake_lanes(wakeup); /* and for whoever published meanwhile */
	if (!r && too_often)
		rest(l, RINGS_REST);
	return r;
}

static int open_store(struct listener *l, struct outbox_error *err)
{
	int r = plan_open_store(l->wakeup->plan, &l->random, &l->store, err);

	if (!r && !store_has_doorbell(l->store))
		l->deaf = true;
	return r;
}

static void *run_listener(void *argument)
{
	struct wakeup *wakeup = argument;
	struct listener l = { .wakeup = wakeup, .pause = AGAIN_MIN };

	while (!is_stopping(wakeup) && !l.deaf) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		int r = OUTBOX_OK;

		if (!all_dry(wakeup)) {
			wait_a_little(&l, IDLE_CHECK);
			continue;
		}
		if (!l.store)
			r = open_store(&l, &err);
		if (!r && !l.deaf)
			r = listen_once(&l, &err);
		if (r == OUTBOX_ENOTSUP) {
			l.deaf = true;
			log_event(&wakeup->plan->log, EVENT_RELAY_POLLS, NULL,
				  "%s; this relay polls", err.message);
		} else if (r) {
			/* The workers say what is wrong with the store; not woken, they poll. */
			l.store = store_close(l.store);
			wait_a_little(&l, STORE_PAUSE);
		}
	}
	store_close(l.store);
	return NULL;
}

void wakeup_listen(struct wakeup *wakeup)
{
	wakeup->listening = !wakeup->plan->no_wakeup &&
			    !pthread_create(&wakeup->listener, NULL, run_listener, wakeup);
}

void wakeup_stop_listening(struct wakeup *wakeup)
{
	atomic_store(&wakeup->stopping, true);
	wakeup_all(wakeup);
	if (wakeup->listening)
		pthread_join(wakeup->listener, NULL);
	wakeup->listening = false;
}
