/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/sampler_store.h"

#include "base/clock.h"
#include "base/text.h"
#include "core/secrets.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MAX ((size_t)16 << 20)

void store_state_release(struct store_state *state)
{
	if (!state || --state->users > 0)
		return;
	outbox_arena_free(state->arena);
	free(state);
}

static int read_store(struct store_sampler *sampler, struct store_state *state,
		      struct outbox_error *err)
{
	struct outbox_store *store;
	int r = OUTBOX_OK;

	if (!sampler->store)
		r = daemon_open_store(sampler->daemon, sampler->source, &sampler->store, err);
	if (r)
		return r;
	store = daemon_store_of(sampler->store);
	r = store_stats(store, state->arena, &state->stats, err);
	/* a lock passes by itself; for anything else a new connection is the better start */
	if (r && r != OUTBOX_EBUSY)
		sampler->store = daemon_close_store(sampler->store);
	return r;
}

/* NULL: out of memory; what was seen last stays and grows old. */
static struct store_state *sample_store(struct store_sampler *sampler, bool again)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct store_state *state = calloc(1, sizeof(*state));

	if (state)
		state->arena = outbox_arena_new(STATE_MAX);
	if (!state || !state->arena) {
		free(state);
		return NULL;
	}
	state->users = 1;
	state->wall = wall_now();
	state->mono = mono_now();
	if (again)
		sampler->store = daemon_close_store(sampler->store);
	state->answered = read_store(sampler, state, &err) == OUTBOX_OK;
	if (!state->answered)
		snprintf(state->trouble, sizeof(state->trouble), "%.*s",
			 (int)utf8_cut(err.message, strlen(err.message), sizeof(state->trouble) - 1),
			 err.message);
	hide_secrets_in(state->trouble, sizeof(state->trouble));
	return state;
}

static void *run(void *context)
{
	struct store_sampler *sampler = context;

	waiting_lock(sampler->waiting);
	while (!sampler->leaving) {
		struct store_state *state, *before;
		bool again = sampler->again;

		if (!sampler->asked) {
			waiting_wait(sampler->waiting, OUTBOX_DAYS);
			continue;
		}
		sampler->busy = true;
		sampler->asked = sampler->again = false;
		waiting_unlock(sampler->waiting);
		state = sample_store(sampler, again);
		waiting_lock(sampler->waiting);
		before = sampler->last;
		sampler->last = state ? state : before;
		if (state)
			store_state_release(before);
		sampler->busy = false;
		waiting_ring(sampler->waiting);
	}
	waiting_unlock(sampler->waiting);
	sampler->store = daemon_close_store(sampler->store);
	waiting_lock(sampler->waiting);
	sampler->left = true;
	waiting_ring(sampler->waiting);
	waiting_unlock(sampler->waiting);
	return NULL;
}

int store_sampler_start(struct daemon *daemon, const char *source, struct waiting *waiting,
			struct store_sampler **ret_sampler, struct outbox_error *err)
{
	struct store_sampler *sampler = calloc(1, sizeof(*sampler));

	if (sampler)
		sampler->source = strdup(source);
	if (!sampler || !sampler->source) {
		free(sampler);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	sampler->daemon = daemon;
	sampler->waiting = waiting;
	if (pthread_create(&sampler->thread, NULL, run, sampler) != 0) {
		free(sampler->source);
		free(sampler);
		return outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	*ret_sampler = sampler;
	return OUTBOX_OK;
}

void store_sampler_free(struct store_sampler *sampler)
{
	waiting_lock(sampler->waiting);
	sampler->leaving = true;
	waiting_ring(sampler->waiting);
	waiting_unlock(sampler->waiting);
	pthread_join(sampler->thread, NULL);
	waiting_lock(sampler->waiting);
	store_state_release(sampler->last);
	waiting_unlock(sampler->waiting);
	free(sampler->source);
	free(sampler);
}
