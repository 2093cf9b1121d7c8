/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: the daemon's guards its list of sources and the generation in use, a source's guards that source. The
 * daemon's is taken first, and neither is held while a store or a broker is asked. reloading keeps reloads apart, so
 * that the list changes only there and at the end.
 */
#include "daemon/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/safe.h"
#include "base/url.h"
#include "daemon/journal.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int daemon_new(const struct daemon_setup *setup, struct config *config, void (*wake)(void),
	       struct daemon **ret_daemon, struct outbox_error *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		config_free(config);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	d->setup = *setup;
	d->wake = wake;
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
	d->observer = observer;
	d->observer_context = context;
}

static void pass_report(void *context, const struct batch_report *report)
{
	const struct source *source = context;

	source->daemon->observer(source->daemon->observer_context, source->name, report);
}

void daemon_watch_relay(struct daemon *d, struct source *source, struct outbox_relay *relay)
{
	if (d->observer)
		relay_observe(relay, pass_report, source);
}

void daemon_wake(struct daemon *d)
{
	if (d->wake)
		d->wake();
}

const char *daemon_file(const struct daemon *d)
{
	return d->setup.file;
}

void daemon_follow(struct daemon *d, void (*reloaded)(void *context), void *context)
{
	pthread_mutex_lock(&d->reloading);
	d->reloaded = reloaded;
	d->reloaded_context = context;
	pthread_mutex_unlock(&d->reloading);
}

void daemon_store_words(const struct daemon *d, const char *name, const char *url, struct buf *out)
{
	char masked[300];

	url_mask(url, masked, sizeof(masked));
	buf_text(out, d->setup.file ? " --config " : " --store ");
	safe_shell_word(out, d->setup.file ? d->setup.file : masked);
	if (d->setup.file)
		buf_printf(out, " --source %s", name);
}

outbox_time daemon_shutdown_timeout(struct daemon *d)
{
	const struct config *config = daemon_config(d);
	outbox_time timeout = config->relay.shutdown_timeout;

	daemon_config_done(d, config);
	return timeout;
}

int daemon_start(struct daemon *d, struct outbox_error *err)
{
	size_t count = d->generation->config->sources.count;
	int r = OUTBOX_OK;

	pthread_mutex_lock(&d->reloading);
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		r = source_start(d, d->generation, i, &d->sources[i], err);
		d->n_sources += r == OUTBOX_OK;
	}
	d->started = true;
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&d->reloading);
	/* the admin server hears requests before this: told to end already, the new ones have not heard it */
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

		pthread_mutex_lock(&s->lock);
		tried &= s->tried;
		done &= s->done;
		fatal |= s->fatal;
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_unlock(&d->lock);
	if (fatal && !done)
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

		pthread_mutex_lock(&s->lock);
		running += s->state == SOURCE_RUNNING;
		if (s->trouble.status && !trouble[0])
			snprintf(trouble, sizeof(trouble), "; %s: %.200s", s->name,
				 s->trouble.message);
		pthread_mutex_unlock(&s->lock);
	}
	snprintf(out, size, "%zu of %zu source%s running%s", running, d->n_sources,
		 d->n_sources == 1 ? "" : "s", trouble);
	pthread_mutex_unlock(&d->lock);
}

bool daemon_alive(struct daemon *d, outbox_time patience)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time now = clock->mono(clock);
	bool alive = true;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		pthread_mutex_lock(&s->lock);
		if (s->busy_since && now - s->busy_since > patience)
			alive = false;
		/* a drain has a limit of its own */
		if (s->relay && s->state == SOURCE_RUNNING && !relay_alive(s->relay, patience))
			alive = false;
		pthread_mutex_unlock(&s->lock);
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
	daemon_wake(d);
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

void daemon_counts(struct daemon *d, struct outbox_relay_counts *ret_counts)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;

	pthread_mutex_lock(&d->lock);
	*ret_counts = d->past;
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		pthread_mutex_lock(&s->lock);
		relay_counts_add(ret_counts, &s->past);
		if (s->relay) {
			outbox_relay_counts(s->relay, &counts);
			relay_counts_add(ret_counts, &counts);
		}
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_unlock(&d->lock);
}

void daemon_in_flight(struct daemon *d, size_t *ret_batches, size_t *ret_messages)
{
	size_t batches, messages;

	*ret_batches = *ret_messages = 0;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources; i++) {
		struct source *s = d->sources[i];

		pthread_mutex_lock(&s->lock);
		if (s->relay) {
			outbox_relay_in_flight(s->relay, &batches, &messages);
			*ret_batches += batches;
			*ret_messages += messages;
		}
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_unlock(&d->lock);
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
