/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bands.h"

#include "base/cleanup.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned band;
} names[] = {
	{ "high", OUTBOX_BAND_HIGH },
	{ "normal", OUTBOX_BAND_NORMAL },
	{ "low", OUTBOX_BAND_LOW },
	{ "none", OUTBOX_BAND_NONE },
};

static unsigned band_of(int priority)
{
	if (priority > 0)
		return OUTBOX_BAND_HIGH;
	return priority ? OUTBOX_BAND_LOW : OUTBOX_BAND_NORMAL;
}

unsigned band_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].band;
	return 0;
}

const char *band_name(unsigned band)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].band == band)
			return names[i].name;
	return NULL;
}

bool band_plan_takes(const struct band_plan *plan, int priority, int64_t seq)
{
	size_t i = plan->count;

	if (!plan->count)
		return true;
	while (i > 1 && seq <= plan->pieces[i - 1].above)
		i--;
	return plan->pieces[i - 1].bands & band_of(priority);
}

static unsigned last_bands(const struct band_plan *plan)
{
	return plan->count ? plan->pieces[plan->count - 1].bands : BANDS_ALL;
}

int band_plan_add(struct band_plan *plan, int64_t above, unsigned bands, struct outbox_error *err)
{
	if (!plan->count)
		plan->pieces[plan->count++] = (struct band_piece){ .bands = BANDS_ALL };
	if (plan->count == 1)
		plan->pieces[0].above = 0;
	/* nothing was published since the last change: it never came to pass */
	if (plan->pieces[plan->count - 1].above >= above)
		plan->count--;
	if (plan->count == BAND_PIECES_MAX)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"bands: they were switched on and off %d times, and no further change can be "
			"recorded; leave them as they are, or drop the target",
			BAND_PIECES_MAX - 1);
	plan->pieces[plan->count++] = (struct band_piece){ .above = above, .bands = bands };
	return OUTBOX_OK;
}

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static int taken(const struct outbox_target_def *def, const struct band_state *known,
		 struct outbox_error *err)
{
	if (known->band_of)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "this name belongs to a band of target \"%s\"; choose another name, or "
				   "drop it first: outbox target drop %s --reason WHY",
				   known->band_of, def->name);
	return outbox_fail(
		err, OUTBOX_ECONFIG,
		"this name is needed for a band of target \"%s\", but another target has it; "
		"rename one of the two, or drop this one: outbox target drop %s --reason WHY",
		def->band_of, def->name);
}

/* No family, or the first of it. */
static int next_leader(const struct outbox_target_def *def, const struct band_state *known,
		       int64_t log_end, struct band_plan *plan, struct outbox_error *err)
{
	unsigned bands = def->route.bands ? def->route.bands : BANDS_ALL;

	if (known && known->band_of && !same(known->band_of, def->name))
		return taken(def, known, err);
	if (known && (def->band_of || known->band_of || known->plan.count > 1)) {
		*plan = known->plan;
		return last_bands(plan) == bands ? OUTBOX_OK
						 : band_plan_add(plan, log_end, bands, err);
	}
	if (bands == BANDS_ALL)
		return OUTBOX_OK;
	plan->pieces[plan->count++] = (struct band_piece){ .bands = bands };
	/* for the others of the family, who start where this one did */
	if (!known && def->start == OUTBOX_START_NOW)
		plan->pieces[0].above = log_end;
	return OUTBOX_OK;
}

static int next_sibling(const struct outbox_target_def *def, const struct band_state *known,
			const struct band_state *leader, struct band_plan *plan, int64_t *ret_start,
			struct outbox_error *err)
{
	bool ended = def->route.bands == OUTBOX_BAND_NONE;
	int64_t above;

	if (!leader || (!ended && !leader->band_of))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "it is a band of target \"%s\", which is not registered with bands; "
				   "register that one first",
				   def->band_of);
	if (known && !same(known->band_of, def->band_of))
		return taken(def, known, err);
	above = leader->plan.count ? leader->plan.pieces[leader->plan.count - 1].above : 0;
	if (known) {
		*plan = known->plan;
		return last_bands(plan) == def->route.bands
			       ? OUTBOX_OK
			       : band_plan_add(plan, above, def->route.bands, err);
	}
	/* the family was made of a target that took all of them until there */
	if (leader->plan.count > 1)
		plan->pieces[plan->count++] = (struct band_piece){ .bands = OUTBOX_BAND_NONE };
	plan->pieces[plan->count++] =
		(struct band_piece){ .above = above, .bands = def->route.bands };
	*ret_start = above;
	return OUTBOX_OK;
}

int band_plan_next(const struct outbox_target_def *def, const struct band_state *known,
		   const struct band_state *leader, int64_t log_end, struct band_plan *ret_plan,
		   int64_t *ret_start, struct outbox_error *err)
{
	struct band_plan plan = { 0 };
	int64_t start = 0;
	int r;

	if (def->band_of && !same(def->band_of, def->name))
		r = next_sibling(def, known, leader, &plan, &start, err);
	else
		r = next_leader(def, known, log_end, &plan, err);
	if (r)
		return r;
	*ret_plan = plan;
	*ret_start = start;
	return OUTBOX_OK;
}

bool band_plan_ends(const struct outbox_target_def *def, const struct band_state *known)
{
	return known && !def->band_of && same(known->band_of, def->name);
}
