/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: the daemon's guards its list of sources and the generation in use, a source's guards that source. The
 * daemon's is taken first, and neither is held while a store or a broker is asked. reloading keeps reloads apart, so
 * that the list changes only there and at the end.
 */
#include "daemon/daemon.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/url.h"
#include "daemon/configure.h"
#include "daemon/internal.h"
#include "daemon/journal.h"
#include "relay/registry.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct daemon_store {
	struct random_state random;
	struct outbox_store *store;
};

int daemon_new(const struct daemon_setup *setup, struct config *config, struct daemon **ret_daemon,
	       struct outbox_error *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		config_free(config);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	d->setup = *setup;
	r = daemon_choose(d, config, err);
	if (r)
		config_free(config);
	else
		r = generation_new(config, &d->generation, err);
	if (r == OUTBOX_OK &&
	    (pthread_mutex_init(&d->lock, NULL) || pthread_mutex_init(&d->reloading, NULL)))
		r = outbox_fail(err, OUTBOX_ENOMEM, "cannot make a mutex");
	if (r) {
		generation_drop(d->generation);
		free(d);
		return r;
	}
	d->first = generation_hold(d->generation);
	*ret_daemon = d;
	return OUTBOX_OK;
}

int daemon_choose(const struct daemon *d, struct config *config, struct outbox_error *err)
{
	const struct config_source *source = NULL;
	int r;

	if (!d->setup.only)
		return OUTBOX_OK;
	r = config_source_find(config, d->setup.only, &source, err);
	if (r)
		return r;
	config->sources.items = (void *)source;
	config->sources.count = 1;
	return OUTBOX_OK;
}

void daemon_observe(struct daemon *d, daemon_observer observer, void *context)
{
	d->setup.observer = observer;
	d->setup.observer_context = context;
}

const char *daemon_file(const struct daemon *d)
{
	return d->setup.file;
}

enum daemon_mode daemon_mode(const struct daemon *d)
{
	return d->setup.mode;
}

void daemon_follow(struct daemon *d, void (*reloaded)(void *context), void *context)
{
	pthread_mutex_lock(&d->reloading);
	d->reloaded = reloaded;
	d->reloaded_context = context;
	pthread_mutex_unlock(&d->reloading);
}

int daemon_start(struct daemon *d, struct outbox_error *err)
{
	size_t count = d->generation->config->sources.count;
	int r = OUTBOX_OK;

	for (size_t i = 0; d->setup.mode && r == OUTBOX_OK && i < count; i++)
		r = source_look(&d->setup, d->generation, i, err);
	if (r)
		return r;
	pthread_mutex_lock(&d->reloading);
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		r = source_start(&d->setup, d->generation, i, &d->sources[i], err);
		d->n_sources += r == OUTBOX_OK;
	}
	d->started = true;
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&d->reloading);
	/* the admin server takes requests before this: asked to drain already, the new ones do not know it */
	if (atomic_load(&d->draining))
		daemon_drain(d);
	return r;
}

enum daemon_phase daemon_phase(struct daemon *d)
{
	bool tried = true, done = true, fatal = false;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		waiting_lock(&s->waiting);
		tried &= s->tried;
		done &= s->done;
		fatal |= s->fatal;
		waiting_unlock(&s->waiting);
	}
	pthread_mutex_unlock(&d->lock);
	/* in a run that ends by itself the others do their work; once: draining wakes whoever asks here */
	if (fatal && !done && !d->setup.mode && !atomic_load(&d->draining))
		daemon_drain(d);
	return done                        ? DAEMON_DONE
	       : atomic_load(&d->draining) ? DAEMON_DRAINING
	       : tried                     ? DAEMON_READY
					   : DAEMON_STARTING;
}

void daemon_describe(struct daemon *d, char *out, size_t size)
{
	char trouble[300] = "";
	size_t running = 0;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		waiting_lock(&s->waiting);
		running += s->state == SOURCE_RUNNING;
		if (s->trouble.status && !trouble[0])
			snprintf(trouble, sizeof(trouble), "; %s: %.200s", s->name,
				 s->trouble.message);
		waiting_unlock(&s->waiting);
	}
	snprintf(out, size, "%zu of %zu source%s running%s", running, d->n_sources,
		 d->n_sources == 1 ? "" : "s", trouble);
	pthread_mutex_unlock(&d->lock);
}

bool daemon_alive(struct daemon *d, outbox_time patience)
{
	outbox_time now = mono_now();
	bool alive = true;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		waiting_lock(&s->waiting);
		if (s->busy_since && now - s->busy_since > patience)
			alive = false;
		/* a drain has a limit of its own */
		if (s->relay && s->state == SOURCE_RUNNING && !relay_alive(s->relay, patience))
			alive = false;
		waiting_unlock(&s->waiting);
	}
	pthread_mutex_unlock(&d->lock);
	return alive;
}

void daemon_drain(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	atomic_store(&d->draining, true);
	for (size_t i = 0; i < d->n_sources; i++)
		source_stop(d->sources[i]);
	pthread_mutex_unlock(&d->lock);
	setup_wake(&d->setup);
}

bool daemon_draining(struct daemon *d)
{
	return atomic_load(&d->draining);
}

/* The first source's failure is the command's; those of the others are said here. */
int daemon_stop(struct daemon *d, struct outbox_error *err)
{
	int first = OUTBOX_OK;

	daemon_drain(d);
	pthread_mutex_lock(&d->reloading); /* one that is under way ends first */
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];
		const struct outbox_error *failed;

		source_join(s);
		failed = s->fatal ? &s->trouble : &s->ended;
		if (!failed->status)
			continue;
		if (first) {
			journal(EVENT_RELAY_FAILED, ABOUT_SOURCE(s->name), "%s", failed->message);
			continue;
		}
		first = outbox_fail_native(err, failed->status, failed->native, "%s",
					   failed->message);
		if (d->n_sources > 1)
			outbox_wrap(err, "source \"%s\"", s->name);
	}
	daemon_bury(d, true);
	pthread_mutex_unlock(&d->reloading);
	return first;
}

bool daemon_counts(struct daemon *d, struct outbox_relay_counts *ret_counts)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	bool ran = false;

	pthread_mutex_lock(&d->lock);
	*ret_counts = d->past;
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		waiting_lock(&s->waiting);
		relay_counts_add(ret_counts, &s->past);
		if (s->relay) {
			outbox_relay_counts(s->relay, &counts);
			relay_counts_add(ret_counts, &counts);
		}
		ran |= s->ran;
		waiting_unlock(&s->waiting);
	}
	pthread_mutex_unlock(&d->lock);
	return ran;
}

void daemon_in_flight(struct daemon *d, size_t *ret_batches, size_t *ret_messages)
{
	size_t batches, messages;

	*ret_batches = *ret_messages = 0;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		waiting_lock(&s->waiting);
		if (s->relay) {
			outbox_relay_in_flight(s->relay, &batches, &messages);
			*ret_batches += batches;
			*ret_messages += messages;
		}
		waiting_unlock(&s->waiting);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- what others see: its sources, its configuration, their stores ------------------------------ */

/* The relay's own texts are gone when it is: copies. */
static int copy_metrics(const struct outbox_relay *relay, struct outbox_arena *arena,
			struct daemon_source *seen)
{
	size_t count = relay ? relay_target_count(relay) : 0;
	struct target_metrics *targets = outbox_arena_alloc(arena, count * sizeof(*targets) + 1);

	for (size_t i = 0; targets && i < count; i++) {
		relay_target_metrics(relay, i, &targets[i]);
		targets[i].target = outbox_arena_text(arena, targets[i].target);
		targets[i].transport = outbox_arena_text(arena, targets[i].transport);
		if (!targets[i].target || !targets[i].transport)
			targets = NULL;
	}
	seen->targets = targets;
	seen->n_targets = count;
	return targets ? OUTBOX_OK : OUTBOX_ENOMEM;
}

static int copy_source(struct source *s, struct outbox_arena *arena, struct daemon_source *seen)
{
	int r;

	waiting_lock(&s->waiting);
	seen->name = outbox_arena_text(arena, s->name);
	seen->state = s->state;
	url_mask(s->wanted->relays[s->index].store, seen->store, sizeof(seen->store));
	if (s->trouble.status) {
		seen->trouble = outbox_arena_text(arena, s->trouble.message);
		seen->trouble_since = s->trouble_since;
	}
	r = copy_metrics(s->relay, arena, seen);
	if (!seen->name || (s->trouble.status && !seen->trouble))
		r = OUTBOX_ENOMEM;
	waiting_unlock(&s->waiting);
	return r;
}

int daemon_sources(struct daemon *d, struct outbox_arena *arena,
		   const struct daemon_source **ret_sources, size_t *ret_count,
		   struct outbox_error *err)
{
	struct daemon_source *list;
	int r = OUTBOX_OK;
	size_t count;

	pthread_mutex_lock(&d->lock);
	count = d->n_sources;
	list = outbox_arena_alloc(arena, count * sizeof(*list) + 1);
	for (size_t i = 0; list && r == OUTBOX_OK && i < count; i++) {
		memset(&list[i], 0, sizeof(list[i]));
		r = copy_source(d->sources[i], arena, &list[i]);
	}
	pthread_mutex_unlock(&d->lock);
	if (!list || r)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sources = list;
	*ret_count = count;
	return OUTBOX_OK;
}

const struct config *daemon_config(struct daemon *d)
{
	const struct config *config;

	pthread_mutex_lock(&d->lock);
	config = generation_hold(d->generation)->config;
	pthread_mutex_unlock(&d->lock);
	return config;
}

void daemon_config_done(struct daemon *d, const struct config *config)
{
	(void)d;
	generation_drop(config->owner);
}

int daemon_open_store(struct daemon *d, const char *source, struct daemon_store **ret_store,
		      struct outbox_error *err)
{
	const struct config *config = daemon_config(d);
	const struct generation *generation = config->owner;
	const struct config_source *sources = config->sources.items, *found = NULL;
	struct daemon_store *opened = calloc(1, sizeof(*opened));
	int r = opened ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = config_source_find(config, source, &found, err);
	if (r == OUTBOX_OK) {
		random_init(&opened->random, random_system_seed());
		r = registry_open_store(NULL, generation->relays[found - sources].store, false,
					outbox_clock_system(), &opened->random.base, &opened->store,
					err);
	}
	daemon_config_done(d, config);
	if (r) {
		free(opened);
		return r;
	}
	*ret_store = opened;
	return OUTBOX_OK;
}

struct outbox_store *daemon_store_of(struct daemon_store *store)
{
	return store->store;
}

struct daemon_store *daemon_close_store(struct daemon_store *store)
{
	if (store)
		store_close(store->store);
	free(store);
	return NULL;
}

struct daemon *daemon_free(struct daemon *d)
{
	if (!d)
		return NULL;
	daemon_drain(d);
	for (size_t i = 0; i < d->n_sources; i++)
		source_free(d->sources[i]);
	daemon_bury(d, true);
	generation_drop(d->generation);
	generation_drop(d->first);
	pthread_mutex_destroy(&d->reloading);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return NULL;
}
