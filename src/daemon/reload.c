/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that can be wrong is found before anything is changed. Then only what differs is exchanged: a source that
 * stays the same keeps its relay, which does not notice; one that differs is exchanged by its own thread, once the
 * store has taken the new one.
 */
#include "daemon/daemon.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "config/compare.h"
#include "daemon/configure.h"
#include "daemon/internal.h"
#include "daemon/journal.h"
#include "relay/relay.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What becomes of each source. */
struct swap {
	struct source *kept[FIELD_LIST_MAX]; /* in the order of the new file; NULL: it is new */
	bool restart[FIELD_LIST_MAX];
	struct source *gone[FIELD_LIST_MAX];
	size_t n_gone;
};

static struct source *find_running(struct daemon *d, const char *name)
{
	for (size_t i = 0; i < d->n_sources; i++)
		if (strcmp(d->sources[i]->name, name) == 0)
			return d->sources[i];
	return NULL;
}

static void plan_swap(struct daemon *d, const struct config *after, struct swap *swap,
		      struct daemon_reloaded *result)
{
	const struct config *before = d->generation->config;
	const struct config_source *sources = after->sources.items, *source;
	struct config_changes changes;

	/* what takes effect with a start is still as it was at the start, whatever files came between */
	config_compare(d->first->config, after, &changes);
	snprintf(result->restart, sizeof(result->restart), "%s", changes.restart);
	config_compare(before, after, &changes);
	for (size_t i = 0; i < after->sources.count; i++) {
		swap->kept[i] = find_running(d, sources[i].name);
		if (!swap->kept[i] ||
		    config_source_find(before, sources[i].name, &source, NULL) != OUTBOX_OK) {
			result->added++;
			continue;
		}
		swap->restart[i] =
			changes.relay || !config_source_same(before, source, after, &sources[i]);
		result->changed += swap->restart[i];
		result->kept += !swap->restart[i];
	}
	for (size_t i = 0; i < d->n_sources; i++)
		if (config_source_find(after, d->sources[i]->name, &source, NULL) != OUTBOX_OK)
			swap->gone[swap->n_gone++] = d->sources[i];
	result->removed = swap->n_gone;
}

/* Under the daemon's lock. What cannot be started is left out; that is memory only. */
static void swap_sources(struct daemon *d, struct generation *generation, const struct swap *swap)
{
	size_t count = generation->config->sources.count, n = 0;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	for (size_t i = 0; i < count; i++) {
		struct source *s = swap->kept[i];

		if (s)
			source_change(s, generation, i, swap->restart[i]);
		else if (source_start(&d->setup, generation, i, &s, &err))
			journal(EVENT_CONFIG_REFUSED, NULL, "%s", err.message);
		if (s)
			d->sources[n++] = s;
	}
	d->n_sources = n;
	/* asked to drain meanwhile: those that were just started do not know it */
	for (size_t i = 0; atomic_load(&d->draining) && i < n; i++)
		source_stop(d->sources[i]);
	for (size_t i = 0; i < swap->n_gone; i++) {
		source_stop(swap->gone[i]);
		d->leaving[d->n_leaving++] = swap->gone[i];
	}
	generation_drop(d->generation);
	d->generation = generation;
}

void daemon_bury(struct daemon *d, bool all)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_leaving; i++) {
		struct source *s = d->leaving[i];
		bool done;

		waiting_lock(&s->waiting);
		done = s->done;
		waiting_unlock(&s->waiting);
		if (!done && !all) {
			d->leaving[n++] = s;
			continue;
		}
		source_join(s);
		pthread_mutex_lock(&d->lock);
		relay_counts_add(&d->past, &s->past);
		pthread_mutex_unlock(&d->lock);
		source_free(s);
	}
	d->n_leaving = n;
}

static int read_file(struct daemon *d, struct problems *problems,
		     struct generation **ret_generation, struct outbox_error *err)
{
	struct config_input input = { .file = d->setup.file,
				      .sets = d->setup.sets,
				      .n_sets = d->setup.n_sets,
				      .environment = environ,
				      .secrets = true };
	struct config *config = NULL;
	int r;

	if (!d->setup.file)
		return outbox_fail(
			err, OUTBOX_ENOTSUP,
			"the relay was started without --config, so there is no file to reload; restart it instead");
	r = configure(&input, &config, problems, err);
	if (r == OUTBOX_OK) {
		r = daemon_choose(d, config, err);
		if (r)
			config_free(config);
	}
	return r ? r : generation_new(config, ret_generation, err);
}

static void report_reload(const struct daemon *d, const struct daemon_reloaded *result)
{
	journal(EVENT_CONFIG_RELOADED, NULL,
		"%s: sources: %zu kept, %zu changed, %zu added, %zu removed", d->setup.file,
		result->kept, result->changed, result->added, result->removed);
	if (result->restart[0])
		journal(EVENT_CONFIG_RESTART, NULL,
			"changed, but takes effect only at the next start: %s", result->restart);
}

static void report_refused(const struct problems *problems, const struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4000);

	for (size_t i = 0; i < problems->count; i++) {
		buf_clear(&line);
		problem_format(&problems->items[i], &line);
		journal(EVENT_CONFIG_REFUSED, NULL, "%s; nothing was changed", buf_str(&line));
	}
	if (!problems->count)
		journal(EVENT_CONFIG_REFUSED, NULL, "%s; nothing was changed", err->message);
}

static void exchange_generation(struct daemon *d, struct generation *generation,
				const struct swap *swap)
{
	const struct config_log *log = &generation->config->log;

	/* their drain is not waited for, unless there is no room */
	daemon_bury(d, d->n_leaving + swap->n_gone > FIELD_LIST_MAX);
	journal_choose(log->format == CONFIG_LOG_JSON, log->level - 1);
	pthread_mutex_lock(&d->lock);
	swap_sources(d, generation, swap);
	pthread_mutex_unlock(&d->lock);
}

bool daemon_reload_refused(struct daemon *d)
{
	bool refused = atomic_load(&d->refused);

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sources && !refused; i++)
		refused = source_refuses(d->sources[i]);
	pthread_mutex_unlock(&d->lock);
	return refused;
}

int daemon_reload(struct daemon *d, bool dry_run, struct problems *problems,
		  struct daemon_reloaded *ret_reloaded, struct outbox_error *err)
{
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	struct daemon_reloaded result = { 0 };
	struct generation *generation = NULL;
	struct swap swap = { 0 };
	int r;

	pthread_mutex_lock(&d->reloading);
	r = read_file(d, problems, &generation, &cause);
	if (!dry_run && d->setup.file)
		atomic_store(&d->refused, r != OUTBOX_OK);
	if (r == OUTBOX_OK && (!d->started || atomic_load(&d->draining))) {
		generation_drop(generation);
		r = outbox_fail(&cause, OUTBOX_ECONFLICT,
				d->started ? "the relay is draining" : "the relay is starting");
	}
	if (r == OUTBOX_OK && generation) {
		plan_swap(d, generation->config, &swap, &result);
		if (dry_run)
			generation_drop(generation);
		else
			exchange_generation(d, generation, &swap);
		if (!dry_run && d->reloaded)
			d->reloaded(d->reloaded_context);
	}
	pthread_mutex_unlock(&d->reloading);
	if (r) {
		if (!dry_run)
			report_refused(problems, &cause);
		return outbox_fail_native(err, r, cause.native, "%s", cause.message);
	}
	if (!dry_run)
		report_reload(d, &result);
	*ret_reloaded = result;
	setup_wake(&d->setup);
	return OUTBOX_OK;
}
