/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/bands.h"

#include "base/cleanup.h"
#include "store/store.h"

#include <string.h>

/* A band starts where its family does. */
static const char *starts_with(const struct target_plan *t)
{
	return t->band_of ? t->band_of : t->name;
}

/*
 * A new target among messages that were delivered must say where it starts; until then it waits, alone. One that
 * matches nothing does not care.
 */
static int look_at_start(struct target_plan *t, struct outbox_store *store, struct outbox_error *err)
{
	bool wants = false;
	int r = OUTBOX_OK;

	if (t->start == OUTBOX_START_UNSET)
		r = store_wants_start(store, starts_with(t), &wants, err);
	if (wants && t->route.nothing)
		t->start = OUTBOX_START_NOW;
	t->unstarted = wants && !t->route.nothing;
	return r;
}

static int put(const struct relay_plan *plan, struct target_plan *t, struct outbox_store *store,
	       struct outbox_error *err)
{
	const struct target_plan *dead = plan_find(plan, t->dead_letter);
	int r = look_at_start(t, store, err);

	if (!r && !t->unstarted)
		r = store_target_put(store,
				     &(struct outbox_target_def){
					     .name = t->name,
					     .route = t->route,
					     .hold = t->hold,
					     .unordered = t->order == OUTBOX_ORDER_NONE,
					     .start = t->start,
					     .start_time = t->start_time,
					     /* what fails stays here until the other one starts */
					     .dead_letter =
						     dead && dead->unstarted ? NULL : t->dead_letter,
					     .band_of = t->band_of,
					     .paused = t->paused },
				     &t->route_version, err);
	if (r && err)
		outbox_wrap(err, "target \"%s\"", t->name);
	return r;
}

static void tell_split(const struct relay_plan *plan, const struct target_plan *t)
{
	log_event(&plan->log, EVENT_TARGET_BANDS, &(struct about){ .target = t->name },
		  "goes out by priority: %s-high, %s and %s-low; what was published before bands were "
		  "switched on stays with %s",
		  t->name, t->name, t->name, t->name);
}

static void tell_left(const struct relay_plan *plan, const struct target_plan *t)
{
	log_event(&plan->log, EVENT_TARGET_BANDS, &(struct about){ .target = t->name },
		  "the bands of %s were switched off; it sends what was published before, then you can "
		  "drop it: outbox target drop %s --reason WHY",
		  t->band_of, t->name);
}

/* Bands of a target that has none any more. */
static int add_left(struct relay_plan *plan, size_t leader, struct outbox_store *store,
		    struct outbox_arena *arena, struct outbox_error *err)
{
	static const unsigned classes[] = { OUTBOX_BAND_HIGH, OUTBOX_BAND_LOW };
	unsigned left = 0;
	int r = store_bands(store, plan->targets[leader].name, &left, err);

	for (size_t i = 0; i < ARRAY_SIZE(classes) && !r; i++) {
		if (!(left & classes[i]))
			continue;
		r = plan_add_band(plan, leader, classes[i], OUTBOX_BAND_NONE, arena, err);
		if (!r)
			r = put(plan, &plan->targets[plan->n_targets - 1], store, err);
		if (!r)
			tell_left(plan, &plan->targets[plan->n_targets - 1]);
	}
	return r;
}

/* A dead letter goes before those that name it. One that runs is known to the store. */
static bool must_wait(const struct relay_plan *plan, const struct target_plan *t)
{
	const struct target_plan *dead = plan_find(plan, t->dead_letter);

	return dead && !dead->route_version && !dead->unstarted && !dead->running;
}

/*
 * What may be refused goes first: then a refusal has changed nothing for a relay that runs meanwhile. A band
 * starts where its family does, and goes after it.
 */
static int turn_of(const struct target_plan *t)
{
	if (t->running || (t->band_of && t->band_of != t->name))
		return 3;
	return t->start == OUTBOX_START_UNSET ? 0 : t->start == OUTBOX_START_TIME ? 1 : 2;
}

/* Which target is registered next. In a loop of dead letters any of them, the store refuses it. */
static struct target_plan *next_to_register(struct relay_plan *plan)
{
	struct target_plan *any = NULL, *next = NULL;

	for (size_t i = 0; i < plan->n_targets; i++) {
		struct target_plan *t = &plan->targets[i];

		if (t->route_version || t->unstarted)
			continue;
		any = any ? any : t;
		if (!must_wait(plan, t) && (!next || turn_of(t) < turn_of(next)))
			next = t;
	}
	return next ? next : any;
}

int bands_register(struct relay_plan *plan, struct outbox_store *store, struct outbox_arena *arena,
		   struct outbox_error *err)
{
	size_t configured = plan->n_targets;
	struct target_plan *t;
	int r = OUTBOX_OK;

	/* All, before a worker of ours reads anything: see outbox/store.h on bands. */
	while (!r && (t = next_to_register(plan))) {
		r = put(plan, t, store, err);
		if (!r && !t->unstarted && t->band_of == t->name)
			tell_split(plan, t);
	}
	for (size_t i = 0; i < configured && !r; i++)
		if (!plan->targets[i].band_of && !plan->targets[i].unstarted)
			r = add_left(plan, i, store, arena, err);
	return r;
}
