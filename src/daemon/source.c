/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that cannot be started (no server, no schema, a target whose start nobody said) is told once, with the remedy,
 * and tried again with growing pauses: the others are not concerned. What is told again is only what is new.
 *
 * When a reload exchanges a relay, the next one is made while the one before still runs, and only then is that drained:
 * what the store refuses, or cannot be asked at the moment, stops nothing.
 */
#include "daemon/source.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "base/url.h"
#include "core/secrets.h"
#include "daemon/journal.h"
#include "operate/schema_check.h"
#include "relay/registry.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MIN (500 * OUTBOX_MILLISECONDS)
#define RETRY_MAX (30 * OUTBOX_SECONDS)

static outbox_time mono(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
}

static outbox_time wall(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->wall(clock);
}

/* Under the lock: has something been asked of the thread that it is not doing? */
static bool is_told(const struct source *s)
{
	return s->stop || s->restart || (s->again && s->trouble.status);
}

/* Under the lock. Wait until something is asked, or the mono time. */
static void wait_told(struct source *s, outbox_time until)
{
	struct timespec at = { .tv_sec = (time_t)(until / OUTBOX_SECONDS),
			       .tv_nsec = (long)(until % OUTBOX_SECONDS) * 1000 };

	while (!is_told(s)) {
		if (until == OUTBOX_NEVER)
			pthread_cond_wait(&s->told, &s->lock);
		else if (pthread_cond_timedwait(&s->told, &s->lock, &at))
			return;
	}
}

/* One line: where from, where to. */
static void tell_start(const struct source *s, const struct outbox_relay_config *config,
		       outbox_time trouble_since)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4096);
	char masked[300], waited[DURATION_TEXT_MAX];

	url_mask(config->store, masked, sizeof(masked));
	buf_printf(&line, "%s ->", masked);
	for (size_t i = 0; i < config->n_targets; i++) {
		url_mask(config->targets[i].to, masked, sizeof(masked));
		buf_printf(&line, "%s %s (%s)", i ? "," : "", config->targets[i].name, masked);
	}
	if (trouble_since)
		buf_printf(&line, "; it had been away for %s",
			   duration_human(wall() - trouble_since, waited));
	journal(EVENT_RELAY_START, ABOUT_SOURCE(s->name), "%s", buf_str(&line));
}

static bool is_outage(int status)
{
	return status == OUTBOX_ECONN || status == OUTBOX_ETIMEDOUT || status == OUTBOX_EBUSY ||
	       status == OUTBOX_EFULL;
}

bool source_refuses(struct source *s)
{
	bool refuses;

	pthread_mutex_lock(&s->lock);
	refuses = s->relay && s->trouble.status && !is_outage(s->trouble.status);
	pthread_mutex_unlock(&s->lock);
	return refuses;
}

/* Say it when it is new; a URL that is wrong will not become right. */
static void note_trouble(struct source *s, struct outbox_error *err, outbox_time retry)
{
	const bool runs = s->relay; /* only this thread changes it */
	char wait[DURATION_TEXT_MAX];
	bool news;

	if (runs)
		outbox_wrap(err, "the relay goes on as before the reload");
	hide_secrets_in(err->message, sizeof(err->message));
	pthread_mutex_lock(&s->lock);
	news = s->trouble.status != err->status || strcmp(s->trouble.message, err->message) != 0;
	if (!s->trouble.status)
		s->trouble_since = wall();
	s->trouble = *err;
	/* beside others it is one source that does not run; alone it is a mistake of whoever started us */
	s->fatal = !s->tried && s->wrong && s->wanted->config->sources.count == 1;
	s->tried = true;
	s->busy_since = 0;
	pthread_mutex_unlock(&s->lock);
	if (news && !s->fatal)
		journal(runs && !is_outage(err->status) ? EVENT_CONFIG_REFUSED : EVENT_SOURCE_AWAY,
			ABOUT_SOURCE(s->name), "%s; next try in %s, then at most every 30 s%s",
			err->message, duration_human(retry, wait),
			runs ? ", and with the next reload" : "");
	daemon_wake(s->daemon);
}

/* What other commands say of a store that is not ready, with the command for this source. */
static int look_first(struct source *s, const char *url, const char *words, struct outbox_error *err)
{
	struct outbox_store_info info = { 0 };
	struct outbox_store *store = NULL;
	struct random_state random;
	int r;

	random_init(&random, random_system_seed());
	r = registry_open_store(NULL, url, false, outbox_clock_system(), &random.base, &store, err);
	/* whoever names a file on a command line is there to hear that it does not exist */
	s->wrong = r == OUTBOX_EINVAL || r == OUTBOX_ECONFIG ||
		   (r == OUTBOX_ENOTFOUND && !daemon_file(s->daemon) &&
		    strncmp(url, "sqlite:", 7) == 0);
	if (r)
		return r;
	r = store->ops->info(store, &info, err);
	store_close(store);
	return r ? r : store_ready(&info, url, words, err);
}

/* Not started yet: that of before still runs, if there is one. */
static int make_relay(struct source *s, const struct generation *generation, size_t index,
		      struct outbox_relay **ret_relay, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf words = BUF_INIT(1000);
	struct outbox_relay_config config = generation->relays[index];
	int r;

	config.log = journal_sink;
	config.log_context = s->name;
	daemon_store_words(s->daemon, s->name, config.store, &words);
	config.store_option = buf_str(&words) + strspn(buf_str(&words), " ");
	r = look_first(s, config.store, buf_str(&words), err);
	return r ? r : relay_new_after(s->relay, &config, ret_relay, err);
}

static void drain(struct source *s)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = s->relay; /* only this thread changes it */
	bool stop;
	int r;

	pthread_mutex_lock(&s->lock);
	s->state = SOURCE_DRAINING;
	pthread_mutex_unlock(&s->lock);
	r = outbox_relay_stop(relay, daemon_shutdown_timeout(s->daemon), &err);
	outbox_relay_counts(relay, &counts);
	pthread_mutex_lock(&s->lock);
	s->relay = NULL;
	relay_counts_add(&s->past, &counts);
	stop = s->stop;
	s->ended = err;
	s->ended.status = r;
	pthread_mutex_unlock(&s->lock);
	/* at the end it is the command's own error */
	if (r && !stop)
		journal(EVENT_RELAY_FAILED, ABOUT_SOURCE(s->name), "%s", err.message);
	outbox_relay_free(relay);
}

/* The relay is taken over. Told to end meanwhile: it is not started. */
static int exchange(struct source *s, struct outbox_relay *relay, struct outbox_error *err)
{
	bool stop;
	int r;

	if (s->relay)
		drain(s);
	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	s->state = SOURCE_STARTING;
	s->busy_since = mono();
	pthread_mutex_unlock(&s->lock);
	if (!stop)
		daemon_watch_relay(s->daemon, s, relay);
	r = stop ? OUTBOX_OK : outbox_relay_start(relay, err);
	if (r || stop) {
		outbox_relay_free(relay);
		return r;
	}
	pthread_mutex_lock(&s->lock);
	s->relay = relay;
	s->state = SOURCE_RUNNING;
	pthread_mutex_unlock(&s->lock);
	return OUTBOX_OK;
}

/* One attempt with what is wanted now. */
static bool begin(struct source *s, outbox_time retry)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	struct generation *generation;
	outbox_time since;
	const bool ran = s->relay;
	size_t index;
	int r;

	pthread_mutex_lock(&s->lock);
	generation = generation_hold(s->wanted);
	index = s->index;
	s->restart = s->again = false;
	s->busy_since = mono();
	pthread_mutex_unlock(&s->lock);
	r = make_relay(s, generation, index, &relay, &err);
	if (r == OUTBOX_OK) {
		pthread_mutex_lock(&s->lock);
		s->busy_since = 0; /* a drain has a limit of its own */
		pthread_mutex_unlock(&s->lock);
		r = exchange(s, relay, &err);
	}
	if (r) {
		generation_drop(generation);
		note_trouble(s, &err, retry);
		return false;
	}
	pthread_mutex_lock(&s->lock);
	since = s->trouble.status && !ran ? s->trouble_since : 0;
	s->trouble.status = OUTBOX_OK;
	s->tried = true;
	s->busy_since = 0;
	pthread_mutex_unlock(&s->lock);
	if (s->relay)
		tell_start(s, &generation->relays[index], since);
	generation_drop(generation);
	daemon_wake(s->daemon);
	return true;
}

static void *supervise(void *argument)
{
	struct source *s = argument;
	outbox_time retry = RETRY_MIN;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->fatal) {
		bool good;

		pthread_mutex_unlock(&s->lock);
		good = begin(s, retry);
		pthread_mutex_lock(&s->lock);
		if (!s->fatal)
			wait_told(s, good ? OUTBOX_NEVER : mono() + retry);
		retry = good ? RETRY_MIN : retry > RETRY_MAX / 2 ? RETRY_MAX : retry * 2;
	}
	pthread_mutex_unlock(&s->lock);
	if (s->relay)
		drain(s);
	pthread_mutex_lock(&s->lock);
	s->state = SOURCE_STOPPED;
	s->done = true;
	pthread_mutex_unlock(&s->lock);
	daemon_wake(s->daemon);
	return NULL;
}

static int init_waiting(struct source *s)
{
	pthread_condattr_t attributes;
	int failed = pthread_mutex_init(&s->lock, NULL) || pthread_condattr_init(&attributes);

	if (failed)
		return failed;
	failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) ||
		 pthread_cond_init(&s->told, &attributes);
	pthread_condattr_destroy(&attributes);
	return failed;
}

int source_start(struct daemon *daemon, struct generation *generation, size_t index,
		 struct source **ret_source, struct outbox_error *err)
{
	const struct config_source *sources = generation->config->sources.items;
	struct source *s = calloc(1, sizeof(*s));

	if (!s || init_waiting(s)) {
		free(s);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	s->daemon = daemon;
	s->wanted = generation_hold(generation);
	s->index = index;
	s->state = SOURCE_STARTING;
	snprintf(s->name, sizeof(s->name), "%s", sources[index].name);
	if (pthread_create(&s->thread, NULL, supervise, s)) {
		generation_drop(s->wanted);
		pthread_cond_destroy(&s->told);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	*ret_source = s;
	return OUTBOX_OK;
}

void source_change(struct source *s, struct generation *generation, size_t index, bool restart)
{
	struct generation *before;

	pthread_mutex_lock(&s->lock);
	before = s->wanted;
	s->wanted = generation_hold(generation);
	s->index = index;
	s->restart |= restart;
	s->again = true;
	pthread_cond_broadcast(&s->told);
	pthread_mutex_unlock(&s->lock);
	generation_drop(before);
}

void source_stop(struct source *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->told);
	pthread_mutex_unlock(&s->lock);
}

/* Under the daemon's reloading lock, or at its end: one thread at a time. */
void source_join(struct source *s)
{
	if (!s->joined)
		pthread_join(s->thread, NULL);
	s->joined = true;
}

struct source *source_free(struct source *s)
{
	if (!s)
		return NULL;
	source_stop(s);
	source_join(s);
	generation_drop(s->wanted);
	pthread_cond_destroy(&s->told);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}
