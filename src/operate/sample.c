/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/sample.h"

#include "base/cleanup.h"
#include "store/store.h"

#include <string.h>

#define ACTS_MAX 1000

DEFINE_CLEANUP(struct health_memory *, health_memory_free)

static bool same_name(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

bool sample_has(const struct sample *sample, const struct health_finding *finding)
{
	for (size_t i = 0; sample && i < sample->n_findings; i++) {
		const struct health_finding *other = &sample->findings[i];

		if (strcmp(other->rule, finding->rule) == 0 &&
		    same_name(other->source, finding->source) &&
		    same_name(other->target, finding->target))
			return true;
	}
	return false;
}

/* Without them it is not known since when a target is paused, and no more. */
static void read_acts(struct outbox_store *store, struct outbox_arena *arena,
		      struct health_source *source)
{
	struct outbox_audit *acts;
	bool paused = false;
	size_t count;

	for (size_t i = 0; i < source->stats->n_targets; i++)
		paused = paused || source->stats->targets[i].paused;
	if (!paused || store_audit(store, NULL, ACTS_MAX, arena, &acts, &count, NULL))
		return;
	source->acts = acts;
	source->n_acts = count;
}

int once_read(struct outbox_store *store, struct outbox_arena *arena,
	      struct health_source *ret_source, struct outbox_error *err)
{
	struct outbox_stats *stats = outbox_arena_alloc(arena, sizeof(*stats));
	int r;

	if (!stats)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = store_stats(store, arena, stats, err);
	if (r)
		return r;
	ret_source->stats = stats;
	read_acts(store, arena, ret_source);
	return OUTBOX_OK;
}

int once_judge(const struct health_input *input, struct outbox_arena *arena,
	       struct sample *ret_sample, struct outbox_error *err)
{
	_cleanup_(health_memory_freep) struct health_memory *memory = health_memory_new();
	struct health_input once = *input;
	int r;

	if (!memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	once.once = true;
	r = health_look(memory, &once, arena, &ret_sample->findings, &ret_sample->n_findings, err);
	if (r)
		return r;
	ret_sample->at = once.wall;
	ret_sample->level = health_worst(ret_sample->findings, ret_sample->n_findings, NULL);
	return OUTBOX_OK;
}
