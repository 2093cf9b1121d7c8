/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/plan.h"

#include "base/random.h"
#include "base/rate.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/bands.h"
#include "core/retry.h"
#include "core/routing.h"
#include "relay/registry.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_BATCH 500
#define BATCH_LIMIT 100000
#define DEFAULT_BATCH_BYTES ((size_t)8 << 20)
#define WORKERS_LIMIT 64

static outbox_time first_time(outbox_time given, outbox_time preset, outbox_time fallback)
{
	return given ? given : preset ? preset : fallback;
}

static int copy_list(const char *const *from, size_t n, struct outbox_arena *arena,
		     const char *const **to, struct outbox_error *err)
{
	const char **list = n ? outbox_arena_alloc(arena, n * sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < n; i++) {
		list[i] = outbox_arena_text(arena, from[i]);
		if (!list[i])
			list = NULL;
	}
	if (n && !list)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*to = list;
	return OUTBOX_OK;
}

static int check_rate(const struct outbox_target_config *c, struct outbox_error *err)
{
	if (!c->rate_count && !c->rate_period && !c->rate_burst)
		return OUTBOX_OK;
	if (c->rate_count <= 0 || c->rate_count > RATE_COUNT_MAX || c->rate_period <= 0 ||
	    c->rate_period > OUTBOX_HOURS)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "rate: between 1 and %d messages, in up to an hour, such as 50/s",
				   RATE_COUNT_MAX);
	if (c->rate_burst < 0 || c->rate_burst > RATE_COUNT_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "burst: between 1 and %d messages",
				   RATE_COUNT_MAX);
	return OUTBOX_OK;
}

static int check_times(const struct target_plan *t, struct outbox_error *err)
{
	if (t->lease < 100 * OUTBOX_MILLISECONDS || t->lease > OUTBOX_HOURS)
		return outbox_fail(err, OUTBOX_ECONFIG, "lease: must be between 100ms and 1h");
	if (t->publish_timeout <= 0 || t->publish_timeout >= t->lease)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "publish_timeout: must be above 0 and shorter than the lease, or a "
				   "slow broker would cost the relay its lane");
	if (t->poll_min <= 0 || t->poll_min > t->poll_max)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "poll: the shortest interval must be above 0 and not above the "
				   "longest");
	if (t->batch_messages > BATCH_LIMIT)
		return outbox_fail(err, OUTBOX_ECONFIG, "batch: %zu messages, at most %d",
				   t->batch_messages, BATCH_LIMIT);
	return OUTBOX_OK;
}

static void plan_times(const struct outbox_relay_config *relay, struct target_plan *t)
{
	t->batch_messages = relay->batch_messages ? relay->batch_messages
			    : t->policy.batch     ? t->policy.batch
						  : DEFAULT_BATCH;
	t->lease = first_time(relay->lease, t->policy.lease, 15 * OUTBOX_SECONDS);
	t->publish_timeout = first_time(relay->publish_timeout, 0, t->lease * 2 / 3);
	if (!relay->publish_timeout && t->publish_timeout > 10 * OUTBOX_SECONDS)
		t->publish_timeout = 10 * OUTBOX_SECONDS;
	t->poll_max = first_time(relay->poll_max, t->policy.poll, 250 * OUTBOX_MILLISECONDS);
	t->poll_min = first_time(relay->poll_min, 0, 4 * OUTBOX_MILLISECONDS);
	if (!relay->poll_min && t->poll_min > t->poll_max)
		t->poll_min = t->poll_max;
}

static int copy_texts(const struct outbox_target_config *c, struct outbox_arena *arena,
		      struct target_plan *t, struct outbox_error *err)
{
	t->name = outbox_arena_text(arena, c->name);
	t->to = outbox_arena_text(arena, c->to);
	t->dead_letter = c->dead_letter ? outbox_arena_text(arena, c->dead_letter) : NULL;
	t->n_headers = c->n_headers;
	if (!t->name || !t->to || (c->dead_letter && !t->dead_letter))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return copy_list(c->headers, c->n_headers, arena, &t->headers, err);
}

static int plan_target(const struct outbox_relay_config *relay, const struct outbox_target_config *c,
		       struct outbox_arena *arena, struct target_plan *t, struct outbox_error *err)
{
	int r = target_name_check(c->name, err);

	if (r)
		return r;
	if (!c->to)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "to: missing; say where messages are sent, like file:out.jsonl");
	if (c->n_headers && c->envelope != OUTBOX_ENVELOPE_EXTERNAL)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "headers: an internal target gets all headers; remove them");
	t->route = c->route;
	t->policy = c->policy ? *c->policy : *outbox_policy_find("default");
	t->envelope = c->envelope;
	t->order = c->order ? c->order : OUTBOX_ORDER_STRICT;
	t->hold = c->hold;
	t->max_size = c->max_size;
	t->paused = c->paused;
	t->start = c->start;
	t->start_time = c->start_time;
	t->rank = RANK_NORMAL;
	plan_times(relay, t);
	r = route_check(&c->route, err);
	if (!r)
		r = copy_list(c->route.types, c->route.n_types, arena, &t->route.types, err);
	if (!r)
		r = copy_list(c->route.headers, c->route.n_headers, arena, &t->route.headers, err);
	if (!r)
		r = retry_check(&t->policy, err);
	if (!r)
		r = copy_texts(c, arena, t, err);
	if (!r)
		r = check_times(t, err);
	if (!r)
		r = check_rate(c, err);
	if (r)
		return r;
	t->throttle = outbox_arena_alloc(arena, sizeof(*t->throttle));
	if (!t->throttle)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	throttle_init(t->throttle, c->rate_count, c->rate_period, c->rate_burst,
		      relay->clock->mono(relay->clock));
	return OUTBOX_OK;
}

struct target_plan *plan_find(const struct relay_plan *plan, const char *name)
{
	for (size_t i = 0; name && i < plan->n_targets; i++)
		if (strcmp(plan->targets[i].name, name) == 0)
			return &plan->targets[i];
	return NULL;
}

/* What is not published must not leave the house this way. */
static int check_dead_letters(const struct relay_plan *plan, struct outbox_error *err)
{
	for (size_t i = 0; i < plan->n_targets; i++) {
		const struct target_plan *t = &plan->targets[i];
		const struct target_plan *dead = plan_find(plan, t->dead_letter);

		if (dead && dead->envelope == OUTBOX_ENVELOPE_EXTERNAL)
			return outbox_fail(
				err, OUTBOX_ECONFIG,
				"target \"%s\", dead_letter: \"%s\" is external, and messages "
				"that fail here may not be meant for outsiders; name another target",
				t->name, t->dead_letter);
	}
	return OUTBOX_OK;
}

static int check_names(const struct relay_plan *plan, struct outbox_error *err)
{
	for (size_t i = 0; i < plan->n_targets; i++) {
		const struct target_plan *t = &plan->targets[i], *first = plan_find(plan, t->name);

		if (first != t)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "target \"%s\" is named twice; names are unique%s",
					   t->name,
					   t->band_of || first->band_of
						   ? ", and bands have theirs, too"
						   : "");
	}
	return OUTBOX_OK;
}

/* The i-th of an array whose elements may be smaller than ours. */
static struct outbox_target_config given_target(const struct outbox_relay_config *config, size_t i)
{
	size_t stride = config->targets[0].struct_size ? config->targets[0].struct_size
						       : sizeof(struct outbox_target_config);
	const char *given = (const char *)config->targets + i * stride;
	struct outbox_target_config c;

	sized_copy(&c, sizeof(c), given, ((const struct outbox_target_config *)given)->struct_size);
	return c;
}

int plan_add_band(struct relay_plan *plan, size_t leader, unsigned band, unsigned takes,
		  struct outbox_arena *arena, struct outbox_error *err)
{
	struct target_plan *t = &plan->targets[plan->n_targets];
	const char *family = plan->targets[leader].name;
	char name[2 * OUTBOX_TARGET_NAME_MAX];
	int r;

	snprintf(name, sizeof(name), "%s-%s", family, band_name(band));
	r = target_name_check(name, err);
	if (r)
		return r;
	*t = plan->targets[leader]; /* the rate's bucket, too */
	t->name = outbox_arena_text(arena, name);
	if (!t->name)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	t->band_of = family;
	t->rank = band == OUTBOX_BAND_HIGH ? RANK_HIGH : RANK_LOW;
	t->route.bands = takes;
	t->route_version = 0;
	plan->n_targets++;
	return OUTBOX_OK;
}

/* NAME takes the normal ones from now on, and NAME-high and NAME-low come behind all targets. */
static int split_by_band(struct relay_plan *plan, size_t target, struct outbox_arena *arena,
			 struct outbox_error *err)
{
	struct target_plan *t = &plan->targets[target];
	int r;

	if (t->route.bands || t->route.nothing)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "bands: makes a target for each band, and this one matches %s; remove one "
				   "of the two",
				   t->route.nothing ? "nothing" : "priority");
	t->band_of = t->name;
	t->route.bands = OUTBOX_BAND_NORMAL;
	r = plan_add_band(plan, target, OUTBOX_BAND_HIGH, OUTBOX_BAND_HIGH, arena, err);
	return r ? r : plan_add_band(plan, target, OUTBOX_BAND_LOW, OUTBOX_BAND_LOW, arena, err);
}

static int plan_targets(const struct outbox_relay_config *config, struct outbox_arena *arena,
			struct relay_plan *plan, struct outbox_error *err)
{
	size_t n = config->n_targets;
	char shown[80];
	int r = OUTBOX_OK;

	if (!n || !config->targets)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "no targets; name at least one, like events=file:out.jsonl");
	plan->targets = outbox_arena_alloc(arena, BANDS_EACH * n * sizeof(*plan->targets));
	if (!plan->targets)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	plan->n_targets = n;
	for (size_t i = 0; i < n && !r; i++) {
		struct outbox_target_config given = given_target(config, i);

		r = plan_target(config, &given, arena, &plan->targets[i], err);
		if (!r && given.bands)
			r = split_by_band(plan, i, arena, err);
		if (r)
			outbox_wrap(err, "target \"%s\"",
				    text_shown(shown, sizeof(shown), given.name ? given.name : ""));
	}
	if (!r)
		r = check_names(plan, err);
	return r ? r : check_dead_letters(plan, err);
}

/* Unique whatever people call it: two processes under one name would take each other's lanes for their own. */
static const char *make_instance(struct outbox_arena *arena, const char *given, uint64_t seed)
{
	char host[65] = "", ours[100], text[260];

	if (gethostname(host, sizeof(host) - 1) || !host[0])
		snprintf(host, sizeof(host), "host");
	snprintf(ours, sizeof(ours), "%s:%ld", host, (long)getpid());
	snprintf(text, sizeof(text), "%s:%04x", given ? given : ours, (unsigned)(seed & 0xffff));
	return outbox_arena_text(arena, text);
}

static int check_relay(const struct outbox_relay_config *c, struct outbox_error *err)
{
	if (!c->store)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "store: missing; give its URL, like "
				   "sqlite:app.db");
	if (c->workers < 0 || c->workers > WORKERS_LIMIT)
		return outbox_fail(err, OUTBOX_ECONFIG, "workers: %d; between 1 and %d", c->workers,
				   WORKERS_LIMIT);
	if (c->breaker_min < 0 || c->breaker_max < 0 || c->retain_delivered < 0 ||
	    c->retain_failed < 0 || c->retain_inbox < 0 || c->purge_interval < 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "a negative duration: breaker, retention and purge interval "
				   "must be 0 (the default) or above");
	if (c->instance && strlen(c->instance) > 200)
		return outbox_fail(err, OUTBOX_ECONFIG, "instance: longer than 200 bytes");
	return OUTBOX_OK;
}

int plan_make(const struct outbox_relay_config *given, struct outbox_arena *arena,
	      struct relay_plan *ret_plan, struct outbox_error *err)
{
	struct relay_plan plan = { 0 };
	struct outbox_relay_config c;
	const struct outbox_policy *preset;
	int r;

	sized_copy(&c, sizeof(c), given, given->struct_size);
	if (!c.clock)
		c.clock = outbox_clock_system();
	r = check_relay(&c, err);
	if (!r)
		r = plan_targets(&c, arena, &plan, err);
	if (r)
		return r;
	preset = &plan.targets[0].policy;
	plan.seed = c.seed ? c.seed : random_system_seed();
	plan.store = outbox_arena_text(arena, c.store);
	plan.instance = make_instance(arena, c.instance, plan.seed);
	plan.store_option = outbox_arena_text(arena, c.store_option ? c.store_option : "");
	plan.archive = c.archive ? outbox_arena_text(arena, c.archive) : NULL;
	if (!plan.store || !plan.instance || !plan.store_option || (c.archive && !plan.archive))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	plan.workers = c.workers ? c.workers : 1;
	plan.batch_bytes = c.batch_bytes ? c.batch_bytes : DEFAULT_BATCH_BYTES;
	plan.breaker_min = first_time(c.breaker_min, 0, 500 * OUTBOX_MILLISECONDS);
	plan.breaker_max = first_time(c.breaker_max, 0, 30 * OUTBOX_SECONDS);
	plan.retain_delivered =
		first_time(c.retain_delivered, preset->retain_delivered, 7 * OUTBOX_DAYS);
	plan.retain_failed = first_time(c.retain_failed, preset->retain_failed, OUTBOX_NEVER);
	plan.retain_inbox = first_time(c.retain_inbox, 0, 30 * OUTBOX_DAYS);
	plan.purge_interval = first_time(c.purge_interval, preset->purge_interval, OUTBOX_MINUTES);
	plan.registry = c.registry;
	plan.clock = c.clock;
	plan.log = (struct log){ .sink = c.log, .context = c.log_context };
	*ret_plan = plan;
	return OUTBOX_OK;
}

int plan_open_store(const struct relay_plan *plan, struct random_state *random,
		    struct outbox_store **ret_store, struct outbox_error *err)
{
	random_init(random, plan->seed);
	return registry_open_store(plan->registry, plan->store, false, plan->clock, &random->base,
				   ret_store, err);
}
