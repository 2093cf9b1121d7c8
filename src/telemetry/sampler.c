/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each round: see which sources there are, ask all store samplers at once, wait a moment for those that were quick the last
 * time, put what they saw together with what the daemon knows, judge it, publish it. A store that does not
 * answer keeps its store_sampler busy and nobody else; after STALE its last numbers no longer count.
 */
#include "telemetry/sampler.h"

#include "base/cleanup.h"
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

/* ---- the stores, each with its thread ---------------------------------------------------------- */

struct store_slot {
	struct store_sampler *store_sampler;
	bool slow; /* did not answer in time the last time: nobody waits for it */
	bool seen; /* its source is still there */
};

/* A store sampler for each source there is. Used by the sampler's thread alone. */
struct store_samplers {
	struct daemon *daemon;
	struct waiting *waiting;
	struct store_slot *items;
	size_t count;
	struct store_sampler **leaving; /* of sources that are gone */
	size_t n_leaving;
};

static struct store_slot *find_store(struct store_samplers *stores, const char *source)
{
	for (size_t i = 0; i < stores->count; i++)
		if (strcmp(store_sampler_source(stores->items[i].store_sampler), source) == 0)
			return &stores->items[i];
	return NULL;
}

static int add_store(struct store_samplers *stores, const char *source, struct outbox_error *err)
{
	struct store_slot *items = realloc(stores->items, (stores->count + 1) * sizeof(*items));
	struct store_slot slot = { .seen = true };
	int r;

	if (!items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	stores->items = items;
	r = store_sampler_start(stores->daemon, source, stores->waiting, &slot.store_sampler, err);
	if (r == OUTBOX_OK)
		stores->items[stores->count++] = slot;
	return r;
}

/* Its thread may be busy for a while: it is joined when it says that it has left. */
static int remove_store(struct store_samplers *stores, size_t i, struct outbox_error *err)
{
	struct store_sampler **leaving =
		realloc(stores->leaving, (stores->n_leaving + 1) * sizeof(struct store_sampler *));

	if (!leaving)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	stores->leaving = leaving;
	stores->leaving[stores->n_leaving++] = stores->items[i].store_sampler;
	waiting_lock(stores->waiting);
	store_sampler_leave(stores->items[i].store_sampler);
	waiting_unlock(stores->waiting);
	stores->items[i] = stores->items[--stores->count];
	return OUTBOX_OK;
}

static void free_left_stores(struct store_samplers *stores)
{
	for (size_t i = stores->n_leaving; i-- > 0;) {
		bool left;

		waiting_lock(stores->waiting);
		left = store_sampler_left(stores->leaving[i]);
		waiting_unlock(stores->waiting);
		if (!left)
			continue;
		store_sampler_free(stores->leaving[i]);
		stores->leaving[i] = stores->leaving[--stores->n_leaving];
	}
}

/* One for each of these sources, and no other. */
static int follow_sources(struct store_samplers *stores, const struct daemon_source *sources,
			  size_t count, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < stores->count; i++)
		stores->items[i].seen = false;
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		struct store_slot *slot = find_store(stores, sources[i].name);

		if (slot)
			slot->seen = true;
		else
			r = add_store(stores, sources[i].name, err);
	}
	for (size_t i = stores->count; r == OUTBOX_OK && i-- > 0;)
		if (!stores->items[i].seen)
			r = remove_store(stores, i, err);
	free_left_stores(stores);
	return r;
}

static bool quick_ones_are_done(const struct store_samplers *stores)
{
	for (size_t i = 0; i < stores->count; i++)
		if (!stores->items[i].slow && store_sampler_busy(stores->items[i].store_sampler))
			return false;
	return true;
}

/*
 * Ask all, and wait at most patience (and never more than two seconds) for those that were quick the last time.
 * again: with new connections. *stopping ends it, read under the lock.
 */
static void ask_stores(struct store_samplers *stores, outbox_time patience, bool again,
		       const bool *stopping)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time until;

	if (patience > PATIENCE)
		patience = PATIENCE;
	until = clock->mono(clock) + patience;
	waiting_lock(stores->waiting);
	for (size_t i = 0; i < stores->count; i++) {
		struct store_slot *slot = &stores->items[i];

		slot->slow = store_sampler_busy(slot->store_sampler);
		if (!slot->slow || again)
			store_sampler_ask(slot->store_sampler, again);
	}
	while (!*stopping && !quick_ones_are_done(stores) && clock->mono(clock) < until)
		waiting_wait(stores->waiting, until - clock->mono(clock));
	waiting_unlock(stores->waiting);
}

/* What was seen last; NULL: nothing yet. With the lock held. */
static struct store_state *last_state(struct store_samplers *stores, const char *source)
{
	const struct store_slot *slot = find_store(stores, source);

	return slot ? store_sampler_last(slot->store_sampler) : NULL;
}

static void free_store_samplers(struct store_samplers *stores)
{
	for (size_t i = 0; i < stores->count; i++)
		store_sampler_free(stores->items[i].store_sampler);
	for (size_t i = 0; i < stores->n_leaving; i++)
		store_sampler_free(stores->leaving[i]);
	free(stores->items);
	free(stores->leaving);
}

/* ---- what others hold ----------------------------------------------------------------------- */

struct held_sample {
	struct sample sample; /* first: what people hold */
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
	struct store_samplers stores;
	const struct config *config;
	struct health_memory *memory;
	struct alerts *alerts;
};

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

void sampler_release(struct sampler *sampler, const struct sample *sample)
{
	if (!sample)
		return;
	waiting_lock(&sampler->waiting);
	release_held(container_of(sample, struct held_sample, sample));
	waiting_unlock(&sampler->waiting);
}

bool sampler_wait(struct sampler *sampler, outbox_time after, outbox_time timeout)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time until = clock->mono(clock) + timeout;
	bool newer = false;

	waiting_lock(&sampler->waiting);
	while (!newer && !sampler->stopping) {
		outbox_time left = until - clock->mono(clock);

		newer = sampler->newest && sampler->newest->sample.at > after;
		if (newer || left <= 0)
			break;
		waiting_wait(&sampler->waiting, left);
	}
	waiting_unlock(&sampler->waiting);
	return newer;
}

/* ---- a sample ------------------------------------------------------------------------------ */

static void fill_source(struct sampler *sampler, struct held_sample *held,
			const struct daemon_source *from, struct sample_source *to)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct store_state *state = store_state_hold(last_state(&sampler->stores, from->name));
	outbox_time stale = 3 * sampler->config->health.interval;
	char text[600], age_text[DURATION_TEXT_MAX];
	outbox_time age;

	to->source = from;
	to->trouble = from->trouble ? from->trouble : "nobody has looked at it yet";
	if (!state)
		return;
	held->states[held->n_states++] = state;
	age = clock->mono(clock) - state->mono;
	if (state->answered && age <= (stale > STALE ? stale : STALE)) {
		to->stats = &state->stats;
		to->looked = state->wall;
		to->trouble = NULL;
		return;
	}
	if (state->answered)
		snprintf(text, sizeof(text), "it has not answered for %s",
			 duration_human(age, age_text));
	else
		snprintf(text, sizeof(text), "%s", state->trouble);
	to->trouble = outbox_arena_text(held->arena, text);
	if (!to->trouble)
		to->trouble = "out of memory";
}

static int judge_sample(struct sampler *sampler, struct held_sample *held,
			struct sample_source *sources, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct sample *sample = &held->sample;
	struct health_source *seen =
		outbox_arena_alloc(held->arena, (sample->n_sources + 1) * sizeof(*seen));
	struct health_input input = { .wall = sample->at,
				      .mono = clock->mono(clock),
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

static void publish_sample(struct sampler *sampler, struct held_sample *held)
{
	struct held_sample *before;

	waiting_lock(&sampler->waiting);
	before = sampler->newest;
	sampler->newest = held;
	release_held(before);
	waiting_ring(&sampler->waiting);
	waiting_unlock(&sampler->waiting);
}

static int fill_sample(struct sampler *sampler, struct held_sample *held, bool reloaded,
		       struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	const struct daemon_source *from;
	struct sample_source *sources;
	size_t count;
	int r = daemon_sources(sampler->daemon, held->arena, &from, &count, err);

	if (r == OUTBOX_OK)
		r = follow_sources(&sampler->stores, from, count, err);
	if (r)
		return r;
	ask_stores(&sampler->stores, sampler->config->health.interval, reloaded, &sampler->stopping);
	sources = outbox_arena_alloc(held->arena, (count + 1) * sizeof(*sources));
	held->states = outbox_arena_alloc(held->arena, (count + 1) * sizeof(struct store_state *));
	if (!sources || !held->states)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	waiting_lock(&sampler->waiting);
	for (size_t i = 0; i < count; i++)
		fill_source(sampler, held, &from[i], &sources[i]);
	waiting_unlock(&sampler->waiting);
	held->sample.at = clock->wall(clock);
	/* only this thread writes newest; people wait for a later one by its time */
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
	r = fill_sample(sampler, held, reloaded, &err);
	if (r == OUTBOX_OK) {
		/* before it is published: afterwards it may be gone */
		alerts_note(sampler->alerts, sampler->config, held->sample.findings,
			    held->sample.n_findings, held->sample.at);
		publish_sample(sampler, held);
		return;
	}
	journal(EVENT_WATCH_FAILED, NULL, "cannot look at the sources: %s", err.message);
	waiting_lock(&sampler->waiting);
	release_held(held);
	waiting_unlock(&sampler->waiting);
}

static void *run(void *context)
{
	struct sampler *sampler = context;
	struct outbox_clock *clock = outbox_clock_system();
	bool stopping = false;

	while (!stopping) {
		outbox_time next = clock->mono(clock), left;

		take_sample(sampler);
		next += sampler->config->health.interval;
		waiting_lock(&sampler->waiting);
		while (!sampler->stopping && (left = next - clock->mono(clock)) > 0)
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

int sampler_start(struct daemon *daemon, struct sampler **ret_watch, struct outbox_error *err)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int r;

	if (sampler)
		sampler->memory = health_memory_new();
	if (sampler)
		sampler->alerts = alerts_new();
	if (!sampler || !sampler->memory || !sampler->alerts) {
		free_sampler(sampler);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	sampler->daemon = daemon;
	sampler->stores = (struct store_samplers){ .daemon = daemon, .waiting = &sampler->waiting };
	r = waiting_init(&sampler->waiting, err);
	if (r == OUTBOX_OK && pthread_create(&sampler->thread, NULL, run, sampler) != 0) {
		waiting_deinit(&sampler->waiting);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	if (r) {
		free_sampler(sampler);
		return r;
	}
	*ret_watch = sampler;
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
	free_store_samplers(&sampler->stores);
	release_held(sampler->newest);
	if (sampler->config)
		daemon_config_done(sampler->daemon, sampler->config);
	waiting_deinit(&sampler->waiting);
	free_sampler(sampler);
	return NULL;
}
