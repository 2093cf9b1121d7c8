/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/sampler_store.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/secrets.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MAX ((size_t)16 << 20)

struct looker {
	struct daemon *daemon;
	char *source;
	struct waiting *waiting;
	pthread_t thread;
	bool asked, again, busy, leaving, left;
	struct look *last;
	struct daemon_store *store; /* the thread's own */
};

struct look *look_hold(struct look *look)
{
	if (look)
		look->users++;
	return look;
}

void look_release(struct look *look)
{
	if (!look || --look->users > 0)
		return;
	outbox_arena_free(look->arena);
	free(look);
}

const char *looker_source(const struct looker *looker)
{
	return looker->source;
}

void looker_ask(struct looker *looker, bool again)
{
	looker->asked = true;
	looker->again |= again;
	waiting_ring(looker->waiting);
}

bool looker_busy(const struct looker *looker)
{
	return looker->asked || looker->busy;
}

struct look *looker_last(const struct looker *looker)
{
	return looker->last;
}

void looker_leave(struct looker *looker)
{
	looker->leaving = true;
	waiting_ring(looker->waiting);
}

bool looker_left(const struct looker *looker)
{
	return looker->left;
}

static int read_store(struct looker *looker, struct look *look, struct outbox_error *err)
{
	struct outbox_store *store;
	int r = OUTBOX_OK;

	if (!looker->store)
		r = daemon_open_store(looker->daemon, looker->source, &looker->store, err);
	if (r)
		return r;
	store = daemon_store_of(looker->store);
	r = store->ops->stats(store, look->arena, &look->stats, err);
	/* a lock passes by itself; for anything else a new connection is the better start */
	if (r && r != OUTBOX_EBUSY)
		looker->store = daemon_close_store(looker->store);
	return r;
}

/* NULL: out of memory; what was seen last stays and grows old. */
static struct look *see(struct looker *looker, bool again)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_clock *clock = outbox_clock_system();
	struct look *look = calloc(1, sizeof(*look));

	if (look)
		look->arena = outbox_arena_new(LOOK_MAX);
	if (!look || !look->arena) {
		free(look);
		return NULL;
	}
	look->users = 1;
	look->wall = clock->wall(clock);
	look->mono = clock->mono(clock);
	if (again)
		looker->store = daemon_close_store(looker->store);
	look->answered = read_store(looker, look, &err) == OUTBOX_OK;
	if (!look->answered)
		snprintf(look->trouble, sizeof(look->trouble), "%.*s",
			 (int)utf8_cut(err.message, strlen(err.message), sizeof(look->trouble) - 1),
			 err.message);
	hide_secrets_in(look->trouble, sizeof(look->trouble));
	return look;
}

static void *run(void *context)
{
	struct looker *looker = context;

	waiting_lock(looker->waiting);
	while (!looker->leaving) {
		struct look *look, *before;
		bool again = looker->again;

		if (!looker->asked) {
			waiting_wait(looker->waiting, OUTBOX_DAYS);
			continue;
		}
		looker->busy = true;
		looker->asked = looker->again = false;
		waiting_unlock(looker->waiting);
		look = see(looker, again);
		waiting_lock(looker->waiting);
		before = looker->last;
		looker->last = look ? look : before;
		if (look)
			look_release(before);
		looker->busy = false;
		waiting_ring(looker->waiting);
	}
	waiting_unlock(looker->waiting);
	looker->store = daemon_close_store(looker->store);
	waiting_lock(looker->waiting);
	looker->left = true;
	waiting_ring(looker->waiting);
	waiting_unlock(looker->waiting);
	return NULL;
}

int looker_start(struct daemon *daemon, const char *source, struct waiting *waiting,
		 struct looker **ret_looker, struct outbox_error *err)
{
	struct looker *looker = calloc(1, sizeof(*looker));

	if (looker)
		looker->source = strdup(source);
	if (!looker || !looker->source) {
		free(looker);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	looker->daemon = daemon;
	looker->waiting = waiting;
	if (pthread_create(&looker->thread, NULL, run, looker) != 0) {
		free(looker->source);
		free(looker);
		return outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	*ret_looker = looker;
	return OUTBOX_OK;
}

struct looker *looker_free(struct looker *looker)
{
	if (!looker)
		return NULL;
	waiting_lock(looker->waiting);
	looker_leave(looker);
	waiting_unlock(looker->waiting);
	pthread_join(looker->thread, NULL);
	waiting_lock(looker->waiting);
	look_release(looker->last);
	waiting_unlock(looker->waiting);
	free(looker->source);
	free(looker);
	return NULL;
}
