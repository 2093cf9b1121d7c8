/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a rule fires and when it ends. An alert that comes and goes is worse than none, so both want a while: a rule
 * must hold at every look for `settle` before it fires, and must not hold at any look for `settle` before it
 * ends. Where the store itself knows since when (an outage, the oldest message), that counts: after a
 * restart nobody waits for what is old news.
 */
#include "operate/health.h"

#include "base/text.h"
#include "core/secrets.h"
#include "operate/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 64

struct spot {
	char source[NAME_MAX_BYTES], target[NAME_MAX_BYTES]; /* target "": the source itself */
};

struct entry {
	struct spot spot;
	enum health_rule rule;
	bool firing, ending;
	bool seen;               /* in this look */
	outbox_time held, ended; /* mono: since when it holds; since when it does not (ending) */
	outbox_time since;       /* wall */
	char text[300];
};

struct mover {
	struct spot spot;
	bool seen;
	struct rule_progress progress;
};

struct health_memory {
	struct entry *entries;
	size_t n_entries, room;
	struct mover *movers;
	size_t n_movers, movers_room;
};

const char *const health_levels[] = { "healthy", "degraded", "unhealthy", NULL };

const char *health_level_name(enum health_level level)
{
	return health_levels[level];
}

struct health_memory *health_memory_new(void)
{
	return calloc(1, sizeof(struct health_memory));
}

struct health_memory *health_memory_free(struct health_memory *memory)
{
	if (memory) {
		free(memory->entries);
		free(memory->movers);
	}
	free(memory);
	return NULL;
}

static struct spot spot_of(const struct rule_view *view)
{
	struct spot spot = { "", "" };

	snprintf(spot.source, sizeof(spot.source), "%s", view->source->name);
	if (view->target)
		snprintf(spot.target, sizeof(spot.target), "%s", view->target->name);
	return spot;
}

static bool same_spot(const struct spot *a, const struct spot *b)
{
	return strcmp(a->source, b->source) == 0 && strcmp(a->target, b->target) == 0;
}

/* NULL: out of memory. Keeps *room in step with what was allocated. */
static void *grown(void *items, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *bigger;

	if (count < *room)
		return items;
	bigger = realloc(items, more * size);
	if (bigger)
		*room = more;
	return bigger;
}

static struct entry *find_entry(struct health_memory *memory, enum health_rule rule,
				const struct rule_view *view)
{
	struct spot spot = spot_of(view);

	for (size_t i = 0; i < memory->n_entries; i++)
		if (memory->entries[i].rule == rule && same_spot(&memory->entries[i].spot, &spot))
			return &memory->entries[i];
	return NULL;
}

static struct rule_progress *find_progress(struct health_memory *memory, const struct rule_view *view)
{
	struct spot spot = spot_of(view);
	struct mover *movers;

	for (size_t i = 0; i < memory->n_movers; i++)
		if (same_spot(&memory->movers[i].spot, &spot)) {
			memory->movers[i].seen = true;
			return &memory->movers[i].progress;
		}
	movers = grown(memory->movers, memory->n_movers, &memory->movers_room, sizeof(*movers));
	if (!movers)
		return NULL;
	memory->movers = movers;
	movers[memory->n_movers] = (struct mover){ .spot = spot, .seen = true };
	return &movers[memory->n_movers++].progress;
}

static outbox_time hold_time(enum health_rule rule, const struct health_input *input)
{
	if (input->once || rules[rule].at_once)
		return 0;
	return rule == RULE_PENDING ? input->limits->pending_for : input->limits->settle;
}

static int begin_or_go_on(struct health_memory *memory, enum health_rule rule,
			  const struct rule_view *view, const struct health_input *input,
			  struct outbox_error *err)
{
	struct entry *entry = find_entry(memory, rule, view);
	outbox_time wait = hold_time(rule, input);

	if (!entry) {
		struct entry *entries =
			grown(memory->entries, memory->n_entries, &memory->room, sizeof(*entries));

		if (!entries)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		memory->entries = entries;
		entry = &entries[memory->n_entries++];
		*entry = (struct entry){ .spot = spot_of(view),
					 .rule = rule,
					 .held = view->mono,
					 /* one look knows since when only where the store does */
					 .since = input->once ? view->since : view->wall };
	}
	entry->seen = true;
	entry->ending = false;
	if (view->since && view->since < entry->since)
		entry->since = view->since;
	if (view->mono - entry->held >= wait || (view->since && view->wall - view->since >= wait))
		entry->firing = true;
	snprintf(entry->text, sizeof(entry->text), "%s", view->text);
	hide_secrets_in(entry->text, sizeof(entry->text));
	text_clean(entry->text);
	return OUTBOX_OK;
}

/* An entry that is not marked as seen goes at the end of the look. */
static void end_or_wait(struct entry *entry, const struct rule_view *view)
{
	if (!entry || !entry->firing)
		return;
	if (!entry->ending)
		entry->ended = view->mono;
	entry->ending = true;
	entry->seen = view->mono - entry->ended < view->limits->settle;
}

static int try_rules(struct health_memory *memory, struct rule_view *view,
		     const struct health_input *input, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (int i = 0; r == OUTBOX_OK && i < RULE_COUNT; i++) {
		enum health_rule rule = (enum health_rule)i;
		struct entry *entry = find_entry(memory, rule, view);

		if (rules[rule].of_target != (view->target != NULL) ||
		    rule_is_off(input->limits, rule))
			continue;
		view->since = 0;
		switch (rules[rule].test(view)) {
		case TRUTH_TRUE:
			r = begin_or_go_on(memory, rule, view, input, err);
			break;
		case TRUTH_FALSE:
			end_or_wait(entry, view);
			break;
		case TRUTH_UNKNOWN:
			if (entry)
				entry->seen = true;
			break;
		}
	}
	return r;
}

static const struct target_metrics *find_metrics(const struct health_source *source,
						 const char *target)
{
	for (size_t i = 0; i < source->n_metrics; i++)
		if (strcmp(source->metrics[i].target, target) == 0)
			return &source->metrics[i];
	return NULL;
}

/* Nothing new is known about the targets of a source that does not answer. */
static void keep_targets(struct health_memory *memory, const struct health_source *source)
{
	for (size_t i = 0; i < memory->n_entries; i++)
		if (memory->entries[i].spot.target[0] &&
		    strcmp(memory->entries[i].spot.source, source->name) == 0)
			memory->entries[i].seen = true;
	for (size_t i = 0; i < memory->n_movers; i++)
		if (strcmp(memory->movers[i].spot.source, source->name) == 0)
			memory->movers[i].seen = true;
}

static int look_at_source(struct health_memory *memory, const struct health_input *input,
			  const struct health_source *source, struct outbox_error *err)
{
	struct rule_view view = {
		.limits = input->limits, .source = source, .wall = input->wall, .mono = input->mono
	};
	int r = try_rules(memory, &view, input, err);

	if (!source->stats) {
		keep_targets(memory, source);
		return r;
	}
	for (size_t i = 0; r == OUTBOX_OK && i < source->stats->n_targets; i++) {
		view.target = &source->stats->targets[i];
		view.metrics = find_metrics(source, view.target->name);
		view.progress = find_progress(memory, &view);
		if (!view.progress)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		rule_progress_note(view.progress, &view);
		r = try_rules(memory, &view, input, err);
	}
	return r;
}

static void begin_look(struct health_memory *memory)
{
	for (size_t i = 0; i < memory->n_entries; i++)
		memory->entries[i].seen = false;
	for (size_t i = 0; i < memory->n_movers; i++)
		memory->movers[i].seen = false;
}

/* What was not seen is over, or its source or target is gone. */
static void forget(struct health_memory *memory)
{
	size_t kept = 0;

	for (size_t i = 0; i < memory->n_entries; i++)
		if (memory->entries[i].seen)
			memory->entries[kept++] = memory->entries[i];
	memory->n_entries = kept;
	kept = 0;
	for (size_t i = 0; i < memory->n_movers; i++)
		if (memory->movers[i].seen)
			memory->movers[kept++] = memory->movers[i];
	memory->n_movers = kept;
}

static size_t source_index(const struct health_input *input, const char *name)
{
	size_t i = 0;

	while (i < input->n_sources && strcmp(input->sources[i].name, name) != 0)
		i++;
	return i;
}

static int fill_finding(const struct entry *entry, const char *page, struct outbox_arena *arena,
			struct health_finding *finding)
{
	bool of_target = entry->spot.target[0];

	finding->rule = rule_names[entry->rule];
	finding->level = rules[entry->rule].level;
	finding->source = outbox_arena_text(arena, entry->spot.source);
	finding->target = of_target ? outbox_arena_text(arena, entry->spot.target) : NULL;
	finding->since = entry->since;
	memcpy(finding->text, entry->text, sizeof(finding->text));
	runbook_link(page, finding->rule, finding->runbook);
	return finding->source && (!of_target || finding->target) ? OUTBOX_OK : OUTBOX_ENOMEM;
}

/* Of one level: by source, then by rule, then as they began. */
static int add_level(const struct health_memory *memory, const struct health_input *input,
		     enum health_level level, struct outbox_arena *arena,
		     struct health_finding *findings, size_t *count)
{
	int r = OUTBOX_OK;

	for (size_t k = 0; k < input->n_sources * RULE_COUNT; k++) {
		size_t source = k / RULE_COUNT;
		enum health_rule rule = (enum health_rule)(k % RULE_COUNT);

		for (size_t i = 0; r == OUTBOX_OK && i < memory->n_entries; i++) {
			const struct entry *entry = &memory->entries[i];

			if (entry->firing && entry->rule == rule && rules[rule].level == level &&
			    source_index(input, entry->spot.source) == source)
				r = fill_finding(entry, input->limits->runbook, arena,
						 &findings[(*count)++]);
		}
	}
	return r;
}

int health_look(struct health_memory *memory, const struct health_input *input,
		struct outbox_arena *arena, const struct health_finding **ret_findings,
		size_t *ret_count, struct outbox_error *err)
{
	struct health_finding *findings;
	size_t count = 0;
	int r = OUTBOX_OK;

	begin_look(memory);
	for (size_t i = 0; r == OUTBOX_OK && i < input->n_sources; i++)
		r = look_at_source(memory, input, &input->sources[i], err);
	if (r)
		return r;
	forget(memory);
	findings = outbox_arena_alloc(arena, (memory->n_entries + 1) * sizeof(*findings));
	r = findings ? OUTBOX_OK : OUTBOX_ENOMEM;
	for (int level = LEVEL_UNHEALTHY; r == OUTBOX_OK && level >= LEVEL_HEALTHY; level--)
		r = add_level(memory, input, (enum health_level)level, arena, findings, &count);
	if (r)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_findings = findings;
	*ret_count = count;
	return OUTBOX_OK;
}

enum health_level health_worst(const struct health_finding *findings, size_t count,
			       const char *source)
{
	enum health_level worst = LEVEL_HEALTHY;

	for (size_t i = 0; i < count; i++)
		if ((!source || strcmp(findings[i].source, source) == 0) && findings[i].level > worst)
			worst = findings[i].level;
	return worst;
}
