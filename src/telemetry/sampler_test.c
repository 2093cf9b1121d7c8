/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler with a daemon of the test's own: its stores answer, refuse or hang as the test says. */
#include "base/clock.h"
#include "base/unit_test.h"
#include "base/wait.h"
#include "store/store.h"
#include "telemetry/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE (20 * OUTBOX_SECONDS)

enum mood { ANSWERS, REFUSES, HANGS };

struct daemon_store {
	struct outbox_store store;
	struct daemon *daemon;
	size_t source;
};

struct daemon {
	struct waiting waiting;
	size_t n_sources;
	enum mood moods[3];
	int64_t messages[3];
	int opened[3], closed[3];
	bool gone[3], reload_refused;
	struct config configs[2];
	int current, held;
};

static const char *const names[] = { "one", "two", "three" };

static int fake_stats(struct outbox_store *store, struct outbox_arena *arena,
		      struct outbox_stats *ret_stats, struct outbox_error *err)
{
	struct daemon_store *own = container_of(store, struct daemon_store, store);
	struct daemon *d = own->daemon;
	int r = OUTBOX_OK;

	(void)arena;
	waiting_lock(&d->waiting);
	while (d->moods[own->source] == HANGS)
		waiting_wait(&d->waiting, OUTBOX_SECONDS);
	if (d->moods[own->source] == REFUSES)
		r = outbox_fail(err, OUTBOX_ECONN, "the server went away");
	else
		*ret_stats = (struct outbox_stats){ .store_now = 1,
						    .messages = d->messages[own->source] };
	waiting_unlock(&d->waiting);
	return r;
}

static const struct outbox_store_ops fake_ops = { .name = "fake", .operate.stats = fake_stats };

int daemon_sources(struct daemon *d, struct outbox_arena *arena,
		   const struct daemon_source **ret_sources, size_t *ret_count,
		   struct outbox_error *err)
{
	struct daemon_source *sources = outbox_arena_alloc(arena, 3 * sizeof(*sources));

	if (!sources)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_count = 0;
	waiting_lock(&d->waiting);
	for (size_t i = 0; i < d->n_sources; i++)
		if (!d->gone[i]) {
			sources[*ret_count].name = names[i];
			sources[(*ret_count)++].state = SOURCE_RUNNING;
		}
	waiting_unlock(&d->waiting);
	*ret_sources = sources;
	return OUTBOX_OK;
}

int daemon_open_store(struct daemon *d, const char *source, struct daemon_store **ret_store,
		      struct outbox_error *err)
{
	struct daemon_store *store = calloc(1, sizeof(*store));

	(void)err;
	store->daemon = d;
	store->store.ops = &fake_ops;
	while (strcmp(names[store->source], source) != 0)
		store->source++;
	waiting_lock(&d->waiting);
	d->opened[store->source]++;
	waiting_unlock(&d->waiting);
	*ret_store = store;
	return OUTBOX_OK;
}

struct outbox_store *daemon_store_of(struct daemon_store *store)
{
	return &store->store;
}

struct daemon_store *daemon_close_store(struct daemon_store *store)
{
	if (store) {
		waiting_lock(&store->daemon->waiting);
		store->daemon->closed[store->source]++;
		waiting_unlock(&store->daemon->waiting);
	}
	free(store);
	return NULL;
}

const struct config *daemon_config(struct daemon *d)
{
	const struct config *config;

	waiting_lock(&d->waiting);
	d->held++;
	config = &d->configs[d->current];
	waiting_unlock(&d->waiting);
	return config;
}

void daemon_config_done(struct daemon *d, const struct config *config)
{
	(void)config;
	waiting_lock(&d->waiting);
	d->held--;
	waiting_unlock(&d->waiting);
}

const char *daemon_file(const struct daemon *d)
{
	(void)d;
	return "outbox.yaml";
}

bool daemon_reload_refused(struct daemon *d)
{
	bool refused;

	waiting_lock(&d->waiting);
	refused = d->reload_refused;
	waiting_unlock(&d->waiting);
	return refused;
}

static void set_mood(struct daemon *d, size_t source, enum mood mood)
{
	waiting_lock(&d->waiting);
	d->moods[source] = mood;
	waiting_ring(&d->waiting);
	waiting_unlock(&d->waiting);
}

static int setup(void **state)
{
	struct daemon *d = calloc(1, sizeof(*d));

	assert_ok(waiting_init(&d->waiting, err));
	d->n_sources = 2;
	d->messages[0] = 1;
	d->messages[1] = 2;
	for (size_t i = 0; i < 2; i++)
		d->configs[i].health =
			(struct config_health){ .interval = 20 * OUTBOX_MILLISECONDS, .settle = 1 };
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct daemon *d = *state;

	/* every connection was closed, every configuration given back */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(d->opened[i], d->closed[i]);
	assert_int_equal(d->held, 0);
	waiting_deinit(&d->waiting);
	free(d);
	return 0;
}

/* A newer sample; it must come. */
static const struct sample *newer(struct sampler *sampler, const struct sample *before)
{
	outbox_time until = mono_now() + PATIENCE;

	while (mono_now() < until) {
		const struct sample *sample = sampler_hold(sampler);

		if (sample && (!before || sample->at > before->at))
			return sample;
		sampler_release(sample);
		usleep(1000);
	}
	fail_msg("no new sample came");
	return NULL;
}

/* The same, instead of the one before. */
static const struct sample *next(struct sampler *sampler, const struct sample *before)
{
	const struct sample *sample = newer(sampler, before);

	sampler_release(before);
	return sample;
}

static void test_samples(void **state)
{
	struct daemon *d = *state;
	const struct sample *first, *second;
	struct sampler *sampler = NULL;

	assert_ok(sampler_start(d, &sampler, err));
	first = next(sampler, NULL);
	assert_int_equal(first->n_sources, 2);
	assert_string_equal(first->sources[1].source->name, "two");
	assert_true(first->by_file);
	assert_false(first->reload_refused);
	waiting_lock(&d->waiting);
	d->reload_refused = true;
	waiting_unlock(&d->waiting);
	while (!first->reload_refused)
		first = next(sampler, first);
	while (!first->sources[1].stats)
		first = next(sampler, first);
	assert_int_equal(first->sources[1].stats->messages, 2);
	assert_null(first->sources[1].trouble);
	assert_true(first->sources[1].looked > 0);
	/* what one holds does not change when others come */
	second = newer(sampler, first);
	assert_true(second->at > first->at);
	assert_int_equal(first->sources[1].stats->messages, 2);
	sampler_release(first);
	sampler_release(second);
	sampler_stop(sampler);
}

static void test_one_hangs(void **state)
{
	struct daemon *d = *state;
	const struct sample *sample;
	struct sampler *sampler = NULL;

	d->moods[0] = HANGS;
	assert_ok(sampler_start(d, &sampler, err));
	sample = next(sampler, NULL);
	while (!sample->sources[1].stats)
		sample = next(sampler, sample);
	for (int i = 0; i < 20; i++) {
		waiting_lock(&d->waiting);
		d->messages[1] = 10 + i;
		waiting_unlock(&d->waiting);
		sample = next(sampler, sample);
		assert_null(sample->sources[0].stats);
		assert_string_equal(sample->sources[0].trouble, "it has not been sampled yet");
		assert_true(sample->starting); /* nobody knows yet how it is */
	}
	/* the other one is looked at all the time, however long this one hangs */
	while (!sample->sources[1].stats || sample->sources[1].stats->messages < 29)
		sample = next(sampler, sample);
	set_mood(d, 0, ANSWERS);
	while (!sample->sources[0].stats)
		sample = next(sampler, sample);
	assert_false(sample->starting);
	sampler_release(sample);
	sampler_stop(sampler);
}

static void test_one_refuses(void **state)
{
	struct daemon *d = *state;
	const struct sample *sample;
	struct sampler *sampler = NULL;
	int opened;

	d->moods[0] = REFUSES;
	d->configs[0].health.settle = 1;
	assert_ok(sampler_start(d, &sampler, err));
	sample = next(sampler, NULL);
	/* not sampled yet is unhealthy, too */
	while (sample->level != LEVEL_UNHEALTHY ||
	       strcmp(sample->sources[0].trouble, "the server went away") != 0)
		sample = next(sampler, sample);
	assert_string_equal(sample->findings[0].rule, "source_down");
	assert_string_equal(sample->findings[0].source, "one");
	assert_int_equal(sample->sources[0].level, LEVEL_UNHEALTHY);
	assert_int_equal(sample->sources[1].level, sample->n_findings > 1 ? LEVEL_DEGRADED : 0);
	/* a broken connection is not used again */
	waiting_lock(&d->waiting);
	opened = d->opened[0];
	waiting_unlock(&d->waiting);
	assert_true(opened > 0);
	set_mood(d, 0, ANSWERS);
	while (sample->level == LEVEL_UNHEALTHY)
		sample = next(sampler, sample);
	sampler_release(sample);
	sampler_stop(sampler);
	assert_true(d->opened[0] > opened);
}

static void test_reload(void **state)
{
	struct daemon *d = *state;
	const struct sample *sample;
	struct sampler *sampler = NULL;
	int opened;

	assert_ok(sampler_start(d, &sampler, err));
	sample = next(sampler, NULL);
	while (!sample->sources[0].stats)
		sample = next(sampler, sample);
	/* one is new, one is gone, and it goes while it hangs */
	set_mood(d, 0, HANGS);
	waiting_lock(&d->waiting);
	opened = d->opened[1];
	d->n_sources = 3;
	d->gone[0] = true;
	d->current = 1;
	waiting_unlock(&d->waiting);
	while (sample->n_sources != 2 || strcmp(sample->sources[1].source->name, "three") != 0 ||
	       !sample->sources[1].stats)
		sample = next(sampler, sample);
	/* those that stay get a new connection: the URL may be another */
	for (bool again = false; !again; sample = next(sampler, sample)) {
		waiting_lock(&d->waiting);
		again = d->opened[1] > opened;
		waiting_unlock(&d->waiting);
	}
	sampler_release(sample);
	set_mood(d, 0, ANSWERS);
	sampler_stop(sampler);
}

static void test_nothing_newer(void **state)
{
	struct daemon *d = *state;
	const struct sample *sample, *again;
	struct sampler *sampler = NULL;

	d->configs[0].health.interval = OUTBOX_HOURS;
	assert_ok(sampler_start(d, &sampler, err));
	sample = next(sampler, NULL);
	again = sampler_hold(sampler);
	assert_ptr_equal(again, sample);
	sampler_release(again);
	sampler_release(sample);
	sampler_stop(sampler);
	sampler_stop(NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_samples), TEST(test_one_hangs),     TEST(test_one_refuses),
		TEST(test_reload),  TEST(test_nothing_newer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
