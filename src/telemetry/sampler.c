/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each round: see which sources there are, ask all lookers at once, wait a moment for those that were quick the last
 * time, put what they saw together with what the daemon knows, judge it, publish it. A store that does not
 * answer keeps its looker busy and nobody else; after STALE its last numbers no longer count.
 */
#include "telemetry/sampler.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/journal.h"
#include "telemetry/alerts.h"
#include "telemetry/sampler_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_MAX ((size_t)64 << 20)
#define STALE (15 * OUTBOX_SECONDS)

struct held_sample {
	struct watch_sample sample; /* first: what people hold */
	size_t users;
	struct outbox_arena *arena;
	size_t n_looks;
	struct look **looks;
};

struct watch {
	struct daemon *daemon;
	struct waiting waiting;
	pthread_t thread;
	bool stopping;
	struct held_sample *newest;
	/* the thread's own */
	struct eyes eyes;
	const struct config *config;
	struct health_memory *memory;
	struct alerts *alerts;
};

static void release(struct held_sample *held)
{
	if (!held || --held->users > 0)
		return;
	for (size_t i = 0; i < held->n_looks; i++)
		look_release(held->looks[i]);
	outbox_arena_free(held->arena);
	free(held);
}

const struct watch_sample *watch_hold(struct watch *watch)
{
	struct held_sample *held;

	waiting_lock(&watch->waiting);
	held = watch->newest;
	if (held)
		held->users++;
	waiting_unlock(&watch->waiting);
	return held ? &held->sample : NULL;
}

void watch_release(struct watch *watch, const struct watch_sample *sample)
{
	if (!sample)
		return;
	waiting_lock(&watch->waiting);
	release(container_of(sample, struct held_sample, sample));
	waiting_unlock(&watch->waiting);
}

bool watch_wait(struct watch *watch, outbox_time after, outbox_time timeout)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time until = clock->mono(clock) + timeout;
	bool newer = false;

	waiting_lock(&watch->waiting);
	while (!newer && !watch->stopping) {
		outbox_time left = until - clock->mono(clock);

		newer = watch->newest && watch->newest->sample.at > after;
		if (newer || left <= 0)
			break;
		waiting_wait(&watch->waiting, left);
	}
	waiting_unlock(&watch->waiting);
	return newer;
}

/* ---- a sample ------------------------------------------------------------------------------ */

static void fill_source(struct watch *watch, struct held_sample *held,
			const struct daemon_source *from, struct watch_source *to)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct look *look = look_hold(eyes_last(&watch->eyes, from->name));
	outbox_time stale = 3 * watch->config->health.interval;
	char text[600], age_text[DURATION_TEXT_MAX];
	outbox_time age;

	to->source = from;
	to->trouble = from->trouble ? from->trouble : "nobody has looked at it yet";
	if (!look)
		return;
	held->looks[held->n_looks++] = look;
	age = clock->mono(clock) - look->mono;
	if (look->answered && age <= (stale > STALE ? stale : STALE)) {
		to->stats = &look->stats;
		to->looked = look->wall;
		to->trouble = NULL;
		return;
	}
	if (look->answered)
		snprintf(text, sizeof(text), "it has not answered for %s",
			 duration_human(age, age_text));
	else
		snprintf(text, sizeof(text), "%s", look->trouble);
	to->trouble = outbox_arena_text(held->arena, text);
	if (!to->trouble)
		to->trouble = "out of memory";
}

static int judge(struct watch *watch, struct held_sample *held, struct watch_source *sources,
		 struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct watch_sample *sample = &held->sample;
	struct health_source *seen =
		outbox_arena_alloc(held->arena, (sample->n_sources + 1) * sizeof(*seen));
	struct health_input input = { .wall = sample->at,
				      .mono = clock->mono(clock),
				      .limits = &watch->config->health,
				      .sources = seen,
				      .n_sources = sample->n_sources };
	int r;

	if (!seen)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct watch_source *from = &sources[i];
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
	r = health_look(watch->memory, &input, held->arena, &sample->findings, &sample->n_findings,
			err);
	for (size_t i = 0; r == OUTBOX_OK && i < sample->n_sources; i++)
		sources[i].level =
			health_worst(sample->findings, sample->n_findings, sources[i].source->name);
	if (r == OUTBOX_OK)
		sample->level = health_worst(sample->findings, sample->n_findings, NULL);
	return r;
}

static void publish(struct watch *watch, struct held_sample *held)
{
	struct held_sample *before;

	waiting_lock(&watch->waiting);
	before = watch->newest;
	watch->newest = held;
	release(before);
	waiting_ring(&watch->waiting);
	waiting_unlock(&watch->waiting);
}

static int fill_sample(struct watch *watch, struct held_sample *held, bool reloaded,
		       struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	const struct daemon_source *from;
	struct watch_source *sources;
	size_t count;
	int r = daemon_sources(watch->daemon, held->arena, &from, &count, err);

	if (r == OUTBOX_OK)
		r = eyes_follow(&watch->eyes, from, count, err);
	if (r)
		return r;
	eyes_ask(&watch->eyes, watch->config->health.interval, reloaded, &watch->stopping);
	sources = outbox_arena_alloc(held->arena, (count + 1) * sizeof(*sources));
	held->looks = outbox_arena_alloc(held->arena, (count + 1) * sizeof(struct look *));
	if (!sources || !held->looks)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	waiting_lock(&watch->waiting);
	for (size_t i = 0; i < count; i++)
		fill_source(watch, held, &from[i], &sources[i]);
	waiting_unlock(&watch->waiting);
	held->sample.at = clock->wall(clock);
	/* only this thread writes newest; people wait for a later one by its time */
	if (watch->newest && held->sample.at <= watch->newest->sample.at)
		held->sample.at = watch->newest->sample.at + 1;
	held->sample.n_sources = count;
	held->sample.by_file = daemon_file(watch->daemon) != NULL;
	held->sample.reload_refused = daemon_reload_refused(watch->daemon);
	held->sample.sources = sources;
	return judge(watch, held, sources, err);
}

static void look_around(struct watch *watch)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const struct config *config = daemon_config(watch->daemon);
	struct held_sample *held = calloc(1, sizeof(*held));
	bool reloaded = watch->config && watch->config != config;
	int r = OUTBOX_OK;

	if (watch->config)
		daemon_config_done(watch->daemon, watch->config);
	watch->config = config;
	if (held)
		held->arena = outbox_arena_new(SAMPLE_MAX);
	if (!held || !held->arena) {
		free(held);
		return;
	}
	held->users = 1;
	r = fill_sample(watch, held, reloaded, &err);
	if (r == OUTBOX_OK) {
		/* before it is published: afterwards it may be gone */
		alerts_note(watch->alerts, watch->config, held->sample.findings,
			    held->sample.n_findings, held->sample.at);
		publish(watch, held);
		return;
	}
	journal(EVENT_WATCH_FAILED, NULL, "cannot look at the sources: %s", err.message);
	waiting_lock(&watch->waiting);
	release(held);
	waiting_unlock(&watch->waiting);
}

static void *run(void *context)
{
	struct watch *watch = context;
	struct outbox_clock *clock = outbox_clock_system();
	bool stopping = false;

	while (!stopping) {
		outbox_time next = clock->mono(clock), left;

		look_around(watch);
		next += watch->config->health.interval;
		waiting_lock(&watch->waiting);
		while (!watch->stopping && (left = next - clock->mono(clock)) > 0)
			waiting_wait(&watch->waiting, left);
		stopping = watch->stopping;
		waiting_unlock(&watch->waiting);
	}
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void dispose(struct watch *watch)
{
	if (!watch)
		return;
	alerts_free(watch->alerts);
	health_memory_free(watch->memory);
	free(watch);
}

int watch_start(struct daemon *daemon, struct watch **ret_watch, struct outbox_error *err)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int r;

	if (watch)
		watch->memory = health_memory_new();
	if (watch)
		watch->alerts = alerts_new();
	if (!watch || !watch->memory || !watch->alerts) {
		dispose(watch);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	watch->daemon = daemon;
	watch->eyes = (struct eyes){ .daemon = daemon, .waiting = &watch->waiting };
	r = waiting_init(&watch->waiting, err);
	if (r == OUTBOX_OK && pthread_create(&watch->thread, NULL, run, watch) != 0) {
		waiting_deinit(&watch->waiting);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	if (r) {
		dispose(watch);
		return r;
	}
	*ret_watch = watch;
	return OUTBOX_OK;
}

struct watch *watch_stop(struct watch *watch)
{
	if (!watch)
		return NULL;
	waiting_lock(&watch->waiting);
	watch->stopping = true;
	waiting_ring(&watch->waiting);
	waiting_unlock(&watch->waiting);
	pthread_join(watch->thread, NULL);
	eyes_close(&watch->eyes);
	release(watch->newest);
	if (watch->config)
		daemon_config_done(watch->daemon, watch->config);
	waiting_deinit(&watch->waiting);
	dispose(watch);
	return NULL;
}
