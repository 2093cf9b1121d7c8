/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/bands.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/routing.h"

#include <stdio.h>
#include <string.h>

#define ROUTE_MAX ((size_t)1 << 20)

static struct band_state state_of(const struct memory_target *target)
{
	return (struct band_state){ .band_of = target->band_of, .plan = target->bands };
}

int memory_bands_plan(const struct memory_db *db, const struct outbox_target_def *def,
		      const struct memory_target *known, struct band_plan *ret_plan,
		      struct outbox_error *err)
{
	struct memory_target *first = def->band_of ? memory_target_find(db, def->band_of) : NULL;
	struct band_state state, leader;
	int64_t start;

	if (known)
		state = state_of(known);
	if (first)
		leader = state_of(first);
	return band_plan_next(def, known ? &state : NULL, first ? &leader : NULL,
			      memory_log_last(db), ret_plan, &start, err);
}

/* Nothing new for this one: it has what it has. */
static int end_band(struct memory_target *target, int64_t log_end, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(ROUTE_MAX);
	struct outbox_route route = target->route;
	int r;

	route.bands = OUTBOX_BAND_NONE;
	route_format(&route, &text);
	if (text.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "target: out of memory");
	r = band_plan_add(&target->bands, log_end, OUTBOX_BAND_NONE, err);
	return r ? r : memory_target_route(target, buf_str(&text), err);
}

int memory_bands_set(struct memory_db *db, const struct outbox_target_def *def,
		     struct memory_target *target, const struct band_plan *plan,
		     struct outbox_error *err)
{
	struct band_state before = state_of(target);
	int r = OUTBOX_OK;

	for (size_t i = 0; band_plan_ends(def, &before) && i < db->n_targets && !r; i++) {
		struct memory_target *other = db->targets[i];

		if (other != target && other->band_of && strcmp(other->band_of, def->name) == 0)
			r = end_band(other, memory_log_last(db), err);
	}
	if (r)
		return r;
	target->bands = *plan;
	memory_replace(&target->band_of, def->band_of);
	return OUTBOX_OK;
}

int memory_bands(struct memory_store *s, const char *target, unsigned *ret_bands,
		 struct outbox_error *err)
{
	static const unsigned bands[] = { OUTBOX_BAND_HIGH, OUTBOX_BAND_LOW };
	char name[OUTBOX_TARGET_NAME_MAX + 32];
	unsigned found = 0;

	(void)err;
	for (size_t i = 0; i < ARRAY_SIZE(bands); i++) {
		const struct memory_target *band;

		snprintf(name, sizeof(name), "%s-%s", target, band_name(bands[i]));
		band = memory_target_find(s->db, name);
		if (band && band->band_of && strcmp(band->band_of, target) == 0)
			found |= bands[i];
	}
	*ret_bands = found;
	return OUTBOX_OK;
}
