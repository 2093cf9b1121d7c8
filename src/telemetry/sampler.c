/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each round: see which sources there are, ask all store samplers at once, wait a moment for those that were quick the last
 * time, put what they saw together with what the daemon knows, judge it, publish it. A store that does not
 * answer keeps its store_sampler busy and nobody else; after STALE its last numbers no longer count.
 */
#include "telemetry/sampler.h"

#include "base/clock.h"
#include "base/text.h"
#include "daemon/journal.h"
#include "telemetry/alerts.h"
#include "telemetry/sampler_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_MAX ((size_t)64 << 20)
#define PATIENCE (2 * OUTBOX_SECONDS)
#define STALE (15 * OUTBOX_SECONDS)

struct held_sample {
	struct sample sample;
	struct sampler *sampler;
	size_t users;
	struct outbox_arena *arena;
	size_t n_states;
	struct store_state **states;
};

struct sampler {
	struct daemon *daemon;
	struct waiting waiting;
	pthread_t thread;
	bool stopping;
	struct held_sample *newest;
	/* the thread's own */
	struct store_sampler **stores; /* one for each source, and those of sources that are gone until they have left */
	size_t n_stores;
	const struct config *config;
	struct health_memory *memory;
	struct alerts *alerts;
	bool complete; /* every source has been looked at */
};

/* ---- the stores, each with its thread ---------------------------------------------------------- */

/* NULL: none, or one that leaves. */
static struct store_sampler *find_store(const struct sampler *sampler, const char *source)
{
	for (size_t i = 0; i < sampler->n_stores; i++)
		if (!sampler->stores[i]->leaving && strcmp(sampler->stores[i]->source, source) == 0)
			return sampler->stores[i];
	return NULL;
}

static int add_store(struct sampler *sampler, const char *source, struct outbox_error *err)
{
	struct store_sampler **stores =
		realloc(sampler->stores, (sampler->n_stores + 1) * sizeof(struct store_sampler *));
	int r;

	if (!stores)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	sampler->stores = stores;
	r = store_sampler_start(sampler->daemon, source, &sampler->waiting,
				&stores[sampler->n_stores], err);
	if (r == OUTBOX_OK)
		stores[sampler->n_stores++]->seen = true;
	return r;
}

/* Its thread may be busy for a while: it is joined when it says that it has left. */
static bool let_leave(struct store_sampler *store)
{
	bool left;

	waiting_lock(store->waiting);
	store->leaving = true;
	waiting_ring(store->waiting);
	left = store->left;
	waiting_unlock(store->waiting);
	if (left)
		store_sampler_free(store);
	return left;
}

/* One for each of these sources, and no other. */
static int follow_sources(struct sampler *sampler, const struct daemon_source *sources,
			  size_t count, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < sampler->n_stores; i++)
		sampler->stores[i]->seen = false;
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		struct store_sampler *store = find_store(sampler, sources[i].name);

		if (store)
			store->seen = true;
		else
			r = add_store(sampler, sources[i].name, err);
	}
	for (size_t i = sampler->n_stores; r == OUTBOX_OK && i-- > 0;)
		if (!sampler->stores[i]->seen && let_leave(sampler->stores[i]))
			sampler->stores[i] = sampler->stores[--sampler->n_stores];
	return r;
}

static bool quick_ones_are_done(const struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->n_stores; i++) {
		const struct store_sampler *store = sampler->stores[i];

		if (!store->slow && (store->asked || store->busy))
			return false;
	}
	return true;
}

/* Ask all, and wait a moment for those that were quick the last time. again: with new connections. */
static void ask_stores(struct sampler *sampler, bool again)
{
	outbox_time interval = sampler->config->health.interval;
	outbox_time until = mono_now() + (interval < PATIENCE ? interval : PATIENCE);

	waiting_lock(&sampler->waiting);
	for (size_t i = 0; i < sampler->n_stores; i++) {
		struct store_sampler *store = sampler->stores[i];

		store->slow = store->asked || store->busy || store->leaving;
		store->asked |= !store->slow || again;
		store->again |= again;
	}
	waiting_ring(&sampler->waiting);
	while (!sampler->stopping && !quick_ones_are_done(sampler) && mono_now() < until)
		waiting_wait(&sampler->waiting, until - mono_now());
	waiting_unlock(&sampler->waiting);
}

/* ---- what others hold ----------------------------------------------------------------------- */

/* With the lock held. */
static void release_held(struct held_sample *held)
{
	if (!held || --held->users > 0)
		return;
	for (size_t i = 0; i < held->n_states; i++)
		store_state_release(held->states[i]);
	outbox_arena_free(held->arena);
	free(held);
}

const struct sample *sampler_hold(struct sampler *sampler)
{
	struct held_sample *held;

	waiting_lock(&sampler->waiting);
	held = sampler->newest;
	if (held)
		held->users++;
	waiting_unlock(&sampler->waiting);
	return held ? &held->sample : NULL;
}

void sampler_release(const struct sample *sample)
{
	struct held_sample *held;
	struct sampler *sampler;

	if (!sample)
		return;
	held = container_of(sample, struct held_sample, sample);
	sampler = held->sampler;
	waiting_lock(&sampler->waiting);
	release_held(held);
	waiting_unlock(&sampler->waiting);
}

/* ---- a sample ------------------------------------------------------------------------------ */

static void fill_source(struct sampler *sampler, struct held_sample *held,
			const struct daemon_source *from, struct sample_source *to)
{
	const struct store_sampler *store = find_store(sampler, from->name);
	struct store_state *state = store ? store->last : NULL;
	outbox_time stale = 3 * sampler->config->health.interval;
	char text[100], age_text[DURATION_TEXT_MAX];
	outbox_time age;

	to->source = from;
	to->trouble = from->trouble ? from->trouble : "it has not been sampled yet";
	if (!state)
		return;
	state->users++;
	held->states[held->n_states++] = state;
	age = mono_now() - state->mono;
	to->trouble = state->trouble;
	if (state->answered && age <= (stale > STALE ? stale : STALE)) {
		to->stats = &state->stats;
		to->looked = state->wall;
		to->trouble = NULL;
	} else if (state->answered) {
		snprintf(text, sizeof(text), "it has not answered for %s",
			 duration_human(age, age_text));
		to->trouble = outbox_arena_text(held->arena, text);
		if (!to->trouble)
			to->trouble = "out of memory";
	}
}

static int judge_sample(struct sampler *sampler, struct held_sample *held,
			struct sample_source *sources, struct outbox_error *err)
{
	struct sample *sample = &held->sample;
	struct health_source *seen =
		outbox_arena_alloc(held->arena, (sample->n_sources + 1) * sizeof(*seen));
	struct health_input input = { .wall = sample->at,
				      .mono = mono_now(),
				      .limits = &sampler->config->health,
				      .sources = seen,
				      .n_sources = sample->n_sources };
	int r;

	if (!seen)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct sample_source *from = &sources[i];
		/* one that runs has a reload that was refused: that stops nothing */
		const bool runs = from->source->state == SOURCE_RUNNING;

		seen[i] = (struct health_source){ .name = from->source->name,
						  .stats = from->stats,
						  .trouble = !from->stats ? from->trouble
							     : runs       ? NULL
									  : from->source->trouble,
						  .n_metrics = from->source->n_targets,
						  .metrics = from->source->targets };
	}
	r = health_look(sampler->memory, &input, held->arena, &sample->findings,
			&sample->n_findings, err);
	for (size_t i = 0; r == OUTBOX_OK && i < sample->n_sources; i++)
		sources[i].level =
			health_worst(sample->findings, sample->n_findings, sources[i].source->name);
	if (r == OUTBOX_OK)
		sample->level = health_worst(sample->findings, sample->n_findings, NULL);
	return r;
}

static int fill_sample(struct sampler *sampler, struct held_sample *held, bool reloaded,
		       struct outbox_error *err)
{
	const struct daemon_source *from;
	struct sample_source *sources;
	size_t count;
	int r = daemon_sources(sampler->daemon, held->arena, &from, &count, err);

	if (r == OUTBOX_OK)
		r = follow_sources(sampler, from, count, err);
	if (r)
		return r;
	ask_stores(sampler, reloaded);
	sources = outbox_arena_alloc(held->arena, (count + 1) * sizeof(*sources));
	held->states = outbox_arena_alloc(held->arena, (count + 1) * sizeof(struct store_state *));
	if (!sources || !held->states)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	waiting_lock(&sampler->waiting);
	for (size_t i = 0; i < count; i++)
		fill_source(sampler, held, &from[i], &sources[i]);
	waiting_unlock(&sampler->waiting);
	/* a source that a reload adds later does not make it unknown again */
	sampler->complete = sampler->complete || held->n_states == count;
	held->sample.starting = !sampler->complete;
	held->sample.at = wall_now();
	/* only this thread writes newest; live views know a later one by its time */
	if (sampler->newest && held->sample.at <= sampler->newest->sample.at)
		held->sample.at = sampler->newest->sample.at + 1;
	held->sample.n_sources = count;
	held->sample.by_file = daemon_file(sampler->daemon) != NULL;
	held->sample.reload_refused = daemon_reload_refused(sampler->daemon);
	held->sample.sources = sources;
	return judge_sample(sampler, held, sources, err);
}

static void take_sample(struct sampler *sampler)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const struct config *config = daemon_config(sampler->daemon);
	struct held_sample *held = calloc(1, sizeof(*held));
	bool reloaded = sampler->config && sampler->config != config;
	int r = OUTBOX_OK;

	if (sampler->config)
		daemon_config_done(sampler->daemon, sampler->config);
	sampler->config = config;
	if (held)
		held->arena = outbox_arena_new(SAMPLE_MAX);
	if (!held || !held->arena) {
		free(held);
		return;
	}
	held->users = 1;
	held->sampler = sampler;
	r = fill_sample(sampler, held, reloaded, &err);
	if (r == OUTBOX_OK)
		alerts_note(sampler->alerts, sampler->config,
			    sampler->newest ? &sampler->newest->sample : NULL, &held->sample);
	else
		journal(EVENT_WATCH_FAILED, NULL, "cannot look at the sources: %s", err.message);
	waiting_lock(&sampler->waiting);
	release_held(r ? held : sampler->newest);
	if (r == OUTBOX_OK)
		sampler->newest = held;
	waiting_unlock(&sampler->waiting);
}

static void *run(void *context)
{
	struct sampler *sampler = context;
	bool stopping = false;

	while (!stopping) {
		outbox_time next = mono_now(), left;

		take_sample(sampler);
		next += sampler->config->health.interval;
		waiting_lock(&sampler->waiting);
		while (!sampler->stopping && (left = next - mono_now()) > 0)
			waiting_wait(&sampler->waiting, left);
		stopping = sampler->stopping;
		waiting_unlock(&sampler->waiting);
	}
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void free_sampler(struct sampler *sampler)
{
	if (!sampler)
		return;
	alerts_free(sampler->alerts);
	health_memory_free(sampler->memory);
	free(sampler);
}

int sampler_start(struct daemon *daemon, struct sampler **ret_sampler, struct outbox_error *err)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int r;

	if (sampler) {
		sampler->memory = health_memory_new();
		sampler->alerts = alerts_new();
	}
	if (!sampler || !sampler->memory || !sampler->alerts) {
		free_sampler(sampler);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	sampler->daemon = daemon;
	r = waiting_init(&sampler->waiting, err);
	if (r == OUTBOX_OK && pthread_create(&sampler->thread, NULL, run, sampler) != 0) {
		waiting_deinit(&sampler->waiting);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	if (r) {
		free_sampler(sampler);
		return r;
	}
	*ret_sampler = sampler;
	return OUTBOX_OK;
}

struct sampler *sampler_stop(struct sampler *sampler)
{
	if (!sampler)
		return NULL;
	waiting_lock(&sampler->waiting);
	sampler->stopping = true;
	waiting_ring(&sampler->waiting);
	waiting_unlock(&sampler->waiting);
	pthread_join(sampler->thread, NULL);
	for (size_t i = 0; i < sampler->n_stores; i++)
		store_sampler_free(sampler->stores[i]);
	free(sampler->stores);
	release_held(sampler->newest);
	if (sampler->config)
		daemon_config_done(sampler->daemon, sampler->config);
	waiting_deinit(&sampler->waiting);
	free_sampler(sampler);
	return NULL;
}
