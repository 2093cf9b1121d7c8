/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that cannot be started (no server, no schema, a target without a start) is reported once, with the remedy,
 * and tried again with growing pauses: the others are not affected. Only what is new is reported again.
 *
 * A run that ends by itself (once, until idle) is for people and scripts who wait for it: whatever keeps it from its
 * start, but a store that is busy, is its error.
 *
 * When a reload exchanges a relay, the next one is made while the one before still runs, and only then is that drained:
 * what the store refuses, or cannot be asked at the moment, stops nothing.
 */
#include "daemon/source.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
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
#define RETRY_MAX_WAITING OUTBOX_SECONDS /* where somebody waits for the end */

static outbox_time longest_retry(const struct source *s)
{
	return s->setup->mode ? RETRY_MAX_WAITING : RETRY_MAX;
}

/* Under the lock: has something been asked of the thread that it is not doing? */
static bool is_told(const struct source *s)
{
	return s->stop || s->restart || (s->again && s->trouble.status);
}

/* Under the lock. Wait until something is asked, or the mono time. */
static void wait_told(struct source *s, outbox_time until)
{
	for (outbox_time left; !is_told(s) && (left = until - mono_now()) > 0;)
		waiting_wait(&s->waiting, left < OUTBOX_DAYS ? left : OUTBOX_DAYS);
}

/* One line: where from, where to. */
static void report_start(const struct source *s, const struct outbox_relay_config *config,
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
	if (s->setup->mode)
		buf_text(&line, s->setup->mode == DAEMON_ONCE ? "; what is due now" : "; until idle");
	else if (trouble_since)
		buf_printf(&line, "; it was unavailable for %s",
			   duration_human(wall_now() - trouble_since, waited));
	journal(EVENT_RELAY_START, ABOUT_SOURCE(s->log_name), "%s", buf_str(&line));
}

static bool is_outage(int status)
{
	return status == OUTBOX_ECONN || status == OUTBOX_ETIMEDOUT || status == OUTBOX_EBUSY ||
	       status == OUTBOX_EFULL;
}

bool source_refuses(struct source *s)
{
	bool refuses;

	waiting_lock(&s->waiting);
	refuses = s->relay && s->trouble.status && !is_outage(s->trouble.status);
	waiting_unlock(&s->waiting);
	return refuses;
}

/* Is trying again of no use, and is nobody else concerned? */
static bool is_fatal(const struct source *s, int status)
{
	if (s->setup->mode)
		return status != OUTBOX_EBUSY;
	/* beside others it is one source that does not run; alone it is a mistake of whoever started us */
	return !s->tried && s->wrong && s->wanted->config->sources.count == 1;
}

/* Say it when it is new; a URL that is wrong will not become right. */
static void report_trouble(struct source *s, struct outbox_error *err, outbox_time retry)
{
	const bool runs = s->relay; /* only this thread changes it */
	char wait[DURATION_TEXT_MAX], longest[DURATION_TEXT_MAX];
	bool news;

	if (runs)
		outbox_wrap(err, "the relay goes on as before the reload");
	hide_secrets_in(err->message, sizeof(err->message));
	waiting_lock(&s->waiting);
	news = !error_same(&s->trouble, err);
	if (!s->trouble.status)
		s->trouble_since = wall_now();
	s->trouble = *err;
	s->fatal = is_fatal(s, err->status);
	s->tried = true;
	s->busy_since = 0;
	waiting_unlock(&s->waiting);
	if (news && !s->fatal)
		journal(runs && !is_outage(err->status) ? EVENT_CONFIG_REFUSED : EVENT_SOURCE_AWAY,
			ABOUT_SOURCE(s->log_name),
			"%s; next try in %s, then with pauses of at most %s%s", err->message,
			duration_human(retry, wait), duration_human(longest_retry(s), longest),
			runs ? ", and with the next reload" : "");
	setup_wake(s->setup);
}

/* How a command that is suggested names this source: " --config outbox.yaml --source shop". */
static void append_store_words(const struct daemon_setup *setup, const char *name, const char *url,
			       struct buf *out)
{
	char masked[300];

	url_mask(url, masked, sizeof(masked));
	buf_text(out, setup->file ? " --config " : " --store ");
	buf_shell_word(out, setup->file ? setup->file : masked);
	if (setup->file)
		buf_printf(out, " --source %s", name);
}

/* What other commands say of a store that is not ready, with the command for this source. */
static int check_store(const char *url, const char *words, bool *ret_opened, struct outbox_error *err)
{
	struct outbox_store_info info = { 0 };
	struct outbox_store *store = NULL;
	struct random_state random;
	int r;

	random_init(&random, random_system_seed());
	r = registry_open_store(NULL, url, false, outbox_clock_system(), &random.base, &store, err);
	*ret_opened = r == OUTBOX_OK;
	if (r)
		return r;
	r = store_info(store, &info, err);
	store_close(store);
	return r ? r : store_ready(&info, url, words, err);
}

int source_look(const struct daemon_setup *setup, const struct generation *generation, size_t index,
		struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf words = BUF_INIT(1000);
	const struct field_list *sources = &generation->config->sources;
	const char *name = ((const struct config_source *)sources->items)[index].name;
	const char *url = generation->relays[index].store;
	bool opened;
	int r;

	append_store_words(setup, name, url, &words);
	r = check_store(url, buf_str(&words), &opened, err);
	return r && sources->count > 1 ? outbox_wrap(err, "source \"%s\"", name) : r;
}

/* Not started yet: that of before still runs, if there is one. */
static int make_relay(struct source *s, const struct generation *generation, size_t index,
		      struct outbox_relay **ret_relay, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf words = BUF_INIT(1000);
	struct outbox_relay_config config = generation->relays[index];
	bool opened;
	int r = OUTBOX_OK;

	config.log = journal_sink;
	config.log_context = (void *)s->log_name;
	append_store_words(s->setup, s->name, config.store, &words);
	config.store_option = buf_str(&words) + strspn(buf_str(&words), " ");
	if (!s->setup->mode) { /* else that was done before the start */
		r = check_store(config.store, buf_str(&words), &opened, err);
		/* whoever names a file on a command line is there to hear that it does not exist */
		s->wrong = !opened && (r == OUTBOX_EINVAL || r == OUTBOX_ECONFIG ||
				       (r == OUTBOX_ENOTFOUND && !s->setup->file &&
					strncmp(config.store, "sqlite:", 7) == 0));
	}
	return r ? r : relay_new_after(s->relay, &config, ret_relay, err);
}

/* The relay has ended: what it counted and how it ended is kept. */
static void retire_relay(struct source *s, int r, const struct outbox_error *err)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_relay *relay = s->relay; /* only this thread changes it */
	bool last;

	outbox_relay_counts(relay, &counts);
	waiting_lock(&s->waiting);
	s->relay = NULL;
	relay_counts_add(&s->past, &counts);
	last = s->stop || s->setup->mode;
	s->ended = *err;
	s->ended.status = r;
	waiting_unlock(&s->waiting);
	/* at the end it is the command's own error */
	if (r && !last)
		journal(EVENT_RELAY_FAILED, ABOUT_SOURCE(s->log_name), "%s", err->message);
	outbox_relay_free(relay);
}

static void drain_relay(struct source *s)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	outbox_time timeout;

	waiting_lock(&s->waiting);
	s->state = SOURCE_DRAINING;
	timeout = s->wanted->config->relay.shutdown_timeout;
	waiting_unlock(&s->waiting);
	retire_relay(s, outbox_relay_stop(s->relay, timeout, &err), &err);
}

/* In a mode that ends by itself. */
static void run_to_end(struct source *s)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = s->setup->mode == DAEMON_ONCE
			? outbox_relay_run_once(s->relay, &err)
			: outbox_relay_run_until_idle(s->relay, &s->stop, &err);

	retire_relay(s, r, &err);
}

static void pass_report(void *context, const struct batch_report *report)
{
	const struct source *s = context;

	s->setup->observer(s->setup->observer_context, s->name, report);
}

/* The relay is taken over. Told to end meanwhile: it is not started. */
static int exchange_relay(struct source *s, struct outbox_relay *relay, struct outbox_error *err)
{
	bool stop;
	int r;

	if (s->relay)
		drain_relay(s);
	waiting_lock(&s->waiting);
	stop = s->stop;
	s->state = SOURCE_STARTING;
	s->busy_since = mono_now();
	waiting_unlock(&s->waiting);
	if (s->setup->observer)
		relay_observe(relay, pass_report, s);
	r = stop || s->setup->mode ? OUTBOX_OK : outbox_relay_start(relay, err);
	if (r || stop) {
		outbox_relay_free(relay);
		return r;
	}
	waiting_lock(&s->waiting);
	s->relay = relay;
	s->ran = true;
	s->state = SOURCE_RUNNING;
	waiting_unlock(&s->waiting);
	return OUTBOX_OK;
}

/* One attempt with what is wanted now. */
static bool start_relay(struct source *s, outbox_time retry)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	struct generation *generation;
	outbox_time since;
	const bool ran = s->relay;
	size_t index;
	int r;

	waiting_lock(&s->waiting);
	generation = generation_hold(s->wanted);
	index = s->index;
	s->restart = s->again = false;
	s->busy_since = mono_now();
	waiting_unlock(&s->waiting);
	r = make_relay(s, generation, index, &relay, &err);
	if (r == OUTBOX_OK) {
		waiting_lock(&s->waiting);
		s->busy_since = 0; /* a drain has a limit of its own */
		waiting_unlock(&s->waiting);
		r = exchange_relay(s, relay, &err);
	}
	if (r) {
		generation_drop(generation);
		report_trouble(s, &err, retry);
		return false;
	}
	waiting_lock(&s->waiting);
	since = s->trouble.status && !ran ? s->trouble_since : 0;
	s->trouble.status = OUTBOX_OK;
	s->tried = true;
	s->busy_since = 0;
	waiting_unlock(&s->waiting);
	if (s->relay)
		report_start(s, &generation->relays[index], since);
	generation_drop(generation);
	setup_wake(s->setup);
	return true;
}

static void *supervise(void *argument)
{
	struct source *s = argument;
	outbox_time retry = RETRY_MIN, longest = longest_retry(s);
	bool ended = false;

	waiting_lock(&s->waiting);
	while (!s->stop && !s->fatal && !ended) {
		bool good;

		waiting_unlock(&s->waiting);
		good = start_relay(s, retry);
		ended = s->setup->mode && s->relay;
		if (ended)
			run_to_end(s);
		waiting_lock(&s->waiting);
		if (!s->fatal && !ended)
			wait_told(s, good ? OUTBOX_NEVER : mono_now() + retry);
		retry = good ? RETRY_MIN : retry > longest / 2 ? longest : retry * 2;
	}
	waiting_unlock(&s->waiting);
	if (s->relay)
		drain_relay(s);
	waiting_lock(&s->waiting);
	s->state = SOURCE_STOPPED;
	s->done = true;
	waiting_unlock(&s->waiting);
	setup_wake(s->setup);
	return NULL;
}

int source_start(const struct daemon_setup *setup, struct generation *generation, size_t index,
		 struct source **ret_source, struct outbox_error *err)
{
	const struct config_source *sources = generation->config->sources.items;
	struct source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = waiting_init(&s->waiting, err);
	if (r) {
		free(s);
		return r;
	}
	s->setup = setup;
	s->wanted = generation_hold(generation);
	s->index = index;
	s->state = SOURCE_STARTING;
	snprintf(s->name, sizeof(s->name), "%s", sources[index].name);
	s->log_name = setup->mode && generation->config->sources.count == 1 ? NULL : s->name;
	if (pthread_create(&s->thread, NULL, supervise, s)) {
		generation_drop(s->wanted);
		waiting_deinit(&s->waiting);
		free(s);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	*ret_source = s;
	return OUTBOX_OK;
}

void source_change(struct source *s, struct generation *generation, size_t index, bool restart)
{
	struct generation *before;

	waiting_lock(&s->waiting);
	before = s->wanted;
	s->wanted = generation_hold(generation);
	s->index = index;
	s->restart |= restart;
	s->again = true;
	waiting_ring(&s->waiting);
	waiting_unlock(&s->waiting);
	generation_drop(before);
}

void source_stop(struct source *s)
{
	waiting_lock(&s->waiting);
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
	waiting_ring(&s->waiting);
	waiting_unlock(&s->waiting);
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
	waiting_deinit(&s->waiting);
	free(s);
	return NULL;
}
