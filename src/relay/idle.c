/* SPDX-License-Identifier: Apache-2.0 */
/* Run until nothing is left but deferred, failed and discarded deliveries. */
#include "relay/relay.h"
#include "store/store.h"

#include <string.h>

#define STATS_MAX ((size_t)4 << 20)
#define IDLE_CHECK (20 * OUTBOX_MILLISECONDS)

static bool serves(const struct outbox_relay *relay, const char *target)
{
	for (size_t i = 0; i < relay->plan.n_targets; i++)
		if (!strcmp(relay->plan.targets[i].name, target))
			return true;
	return false;
}

static int look(const struct outbox_relay *relay, struct outbox_store *store,
		struct outbox_arena *arena, bool *ret_idle, struct outbox_error *err)
{
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(arena);
	r = store->ops->stats(store, arena, &stats, err);
	if (r)
		return r;
	*ret_idle = true;
	for (size_t i = 0; i < stats.n_targets; i++) {
		const struct outbox_target_stats *t = &stats.targets[i];

		/* oldest also knows deferred ones whose time has come */
		if (serves(relay, t->name) &&
		    (t->pending + t->sending + t->waiting + t->parked > 0 || t->oldest))
			*ret_idle = false;
	}
	return OUTBOX_OK;
}

/* A store that is busy, full or away is the workers' business, who say so and try again; so do we. */
static bool passing(int status)
{
	return status == OUTBOX_EBUSY || status == OUTBOX_ECONN || status == OUTBOX_ETIMEDOUT ||
	       status == OUTBOX_EFULL;
}

static int wait_for_idle(struct outbox_relay *relay, struct outbox_arena *arena,
			 const volatile int *stop, struct outbox_error *err)
{
	struct outbox_clock *clock = relay->plan.clock;
	struct outbox_store *store = NULL;
	struct random_state random;
	unsigned wakes_seen = 0;
	bool is_idle = false;
	int r = OUTBOX_OK;

	while (!is_idle && (!r || passing(r)) && !(stop && __atomic_load_n(stop, __ATOMIC_RELAXED))) {
		relay_wait(relay, clock->mono(clock) + IDLE_CHECK, &wakes_seen);
		r = store ? OUTBOX_OK : relay_open_store(relay, &random, &store, err);
		if (!r)
			r = look(relay, store, arena, &is_idle, err);
		if (r && r != OUTBOX_EBUSY)
			store = store_close(store);
	}
	store_close(store);
	return passing(r) ? OUTBOX_OK : r;
}

int outbox_relay_run_until_idle(struct outbox_relay *relay, const volatile int *stop,
				struct outbox_error *err)
{
	struct outbox_arena *arena = outbox_arena_new(STATS_MAX);
	int r, stopped;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = outbox_relay_start(relay, err);
	if (!r) {
		r = wait_for_idle(relay, arena, stop, err);
		stopped = outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, r ? NULL : err);
		r = r ? r : stopped;
	}
	outbox_arena_free(arena);
	return r;
}
