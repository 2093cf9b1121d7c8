/* SPDX-License-Identifier: Apache-2.0 */
#include "core/routing.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "memory_store/bands.h"
#include "memory_store/unserved.h"

#include <stdlib.h>
#include <string.h>

#define ROUTE_MAX ((size_t)1 << 20)

/* The target's place by name: where it is, or where it would go. */
static size_t place_of(const struct memory_db *db, const char *name, bool *ret_found)
{
	size_t i = 0;

	*ret_found = false;
	for (; i < db->n_targets; i++) {
		int order = strcmp(db->targets[i]->name, name);

		if (order >= 0) {
			*ret_found = order == 0;
			break;
		}
	}
	return i;
}

struct memory_target *memory_target_find(const struct memory_db *db, const char *name)
{
	bool found;
	size_t i = place_of(db, name, &found);

	return found ? db->targets[i] : NULL;
}

int memory_target_get(const struct memory_db *db, const char *name,
		      struct memory_target **ret_target, struct outbox_error *err)
{
	struct memory_target *target = name ? memory_target_find(db, name) : NULL;
	char shown[80];

	if (!target)
		return outbox_fail(err, OUTBOX_ENOTFOUND, "no target \"%s\"",
				   text_shown(shown, sizeof(shown), name ? name : ""));
	*ret_target = target;
	return OUTBOX_OK;
}

int memory_lane_get(const struct memory_db *db, const char *name, int lane,
		    struct memory_target **ret_target, struct memory_lane **ret_lane,
		    struct outbox_error *err)
{
	struct memory_target *target;
	int status = memory_target_get(db, name, &target, err);

	if (status)
		return status;
	if (lane < 0 || lane >= target->n_lanes)
		return outbox_fail(err, OUTBOX_ENOTFOUND,
				   "target \"%s\" has no lane %d, only 0 to %d", target->name, lane,
				   target->n_lanes - 1);
	*ret_target = target;
	*ret_lane = &target->lanes[lane];
	return OUTBOX_OK;
}

bool memory_target_routes(const struct memory_target *target, const struct memory_message *row)
{
	return route_match(&target->route, &row->m) &&
	       band_plan_takes(&target->bands, row->m.priority, row->seq);
}

void memory_target_reserve(struct memory_target *target, size_t rows)
{
	target->deliveries = memory_grow(target->deliveries, rows, &target->cap_deliveries,
					 sizeof(struct memory_delivery));
}

void memory_target_free(struct memory_db *db, struct memory_target *target)
{
	for (size_t i = 0; i < db->n_rows; i++) {
		memory_dead_free(target->deliveries[i].arrived);
		memory_detour_free(target, target->deliveries[i].detour);
	}
	for (int i = 0; i < target->n_lanes; i++) {
		free(target->lanes[i].receipts);
		free(target->lanes[i].claim);
	}
	for (size_t i = 0; i < target->n_workers; i++) {
		free(target->workers[i].owner);
		free(target->workers[i].outage);
		free(target->workers[i].place);
	}
	free(target->workers);
	free(target->lanes);
	free(target->deliveries);
	free(target->keys);
	free(target->paused_by);
	free(target->band_of);
	free(target->paused_reason);
	free(target->dead_letter);
	free(target->route_text);
	outbox_arena_free(target->route_memory);
	free(target->name);
	free(target);
}

int memory_target_route(struct memory_target *target, const char *text, struct outbox_error *err)
{
	struct outbox_arena *memory = outbox_arena_new(ROUTE_MAX * 4);
	struct outbox_route route;
	int status;

	if (!memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "target: out of memory");
	status = route_parse(text, memory, &route, err);
	if (status) {
		outbox_arena_free(memory);
		return status;
	}
	outbox_arena_free(target->route_memory);
	target->route_memory = memory;
	target->route = route;
	memory_replace(&target->route_text, text);
	target->version++;
	return OUTBOX_OK;
}

/* A target that starts there passes what is visible before it; what commits later is new to it. */
static void start_at(struct memory_db *db, struct memory_target *target, int64_t through)
{
	for (size_t i = 0; i < db->n_rows; i++) {
		const struct memory_message *row = db->rows[i];

		if (row && row->committed && row->committed <= target->begin && row->seq <= through)
			memory_mark(db, target, &target->lanes[row->key_hash % target->n_lanes],
				    row->seq, MARK_PASSED);
	}
	for (int i = 0; i < target->n_lanes; i++)
		target->lanes[i].read_to = through;
}

/* The last message that is not for a target that starts at a time. */
static int64_t before(const struct memory_db *db, outbox_time time)
{
	for (size_t i = 0; i < db->n_rows; i++) {
		const struct memory_message *row = db->rows[i];

		if (row && row->committed && row->created_at >= time)
			return row->seq - 1;
	}
	return db->visible;
}

/* It starts where its family's bands began, which its plan says. */
static bool is_band(const struct outbox_target_def *def)
{
	return def->band_of && strcmp(def->band_of, def->name) != 0;
}

static int start_check(struct memory_store *s, const struct outbox_target_def *def,
		       struct outbox_error *err)
{
	char time[TIME_TEXT_MAX];

	if (def->start == OUTBOX_START_UNSET && s->db->ever_settled && !is_band(def))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "target \"%s\" is new and messages were delivered before: say where it "
				   "starts, oldest, now or a time",
				   def->name);
	if (def->start == OUTBOX_START_TIME && def->start_time > memory_now(s))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "start: %s is in the future; a target can start at a time in the past, at "
				   "oldest or now",
				   time_format(def->start_time, time));
	return OUTBOX_OK;
}

static int target_add(struct memory_store *s, const struct outbox_target_def *def,
		      const char *route, struct memory_target **ret_target, struct outbox_error *err)
{
	struct memory_db *db = s->db;
	struct memory_target *target;
	bool found;
	size_t place;
	int status = start_check(s, def, err);

	if (status)
		return status;
	target = memory_alloc(sizeof(*target));
	target->name = memory_text(def->name);
	target->open_since = memory_now(s);
	target->keys = memory_alloc(MEMORY_BUCKETS * sizeof(struct memory_key *));
	memory_target_reserve(target, db->n_rows);
	status = memory_target_route(target, route, err);
	if (status) {
		memory_target_free(db, target);
		return status;
	}
	target->n_lanes = db->lanes;
	target->lanes = memory_alloc((size_t)db->lanes * sizeof(struct memory_lane));
	for (int i = 0; i < target->n_lanes; i++)
		memory_receipt_append(db, &target->lanes[i], (int64_t)s->random->next(s->random),
				      "", memory_now(s));
	if (is_band(def) && def->start != OUTBOX_START_TIME)
		target->begin = memory_target_find(db, def->band_of)->begin;
	else if (def->start == OUTBOX_START_NOW || def->start == OUTBOX_START_TIME)
		target->begin = db->commits;
	if (target->begin)
		start_at(db, target,
			 def->start == OUTBOX_START_TIME ? before(db, def->start_time) : db->visible);

	db->targets = memory_grow(db->targets, db->n_targets, &db->cap_targets,
				  sizeof(struct memory_target *));
	place = place_of(db, def->name, &found);
	memmove(&db->targets[place + 1], &db->targets[place],
		(db->n_targets - place) * sizeof(struct memory_target *));
	db->targets[place] = target;
	db->n_targets++;
	*ret_target = target;
	return OUTBOX_OK;
}

int memory_target_put(struct memory_store *s, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(ROUTE_MAX);
	struct memory_target *target;
	struct band_plan plan;
	bool is_new;
	int status;

	status = memory_dead_check(s->db, def, err);
	if (status)
		return status;
	route_format(&def->route, &text);
	if (text.failed)
		return outbox_fail(err, OUTBOX_EINVAL, "target \"%s\": its route is too long",
				   def->name);

	target = memory_target_find(s->db, def->name);
	status = memory_bands_plan(s->db, def, target, &plan, err);
	if (status)
		return status;
	is_new = !target;
	if (!target)
		status = target_add(s, def, buf_str(&text), &target, err);
	else if (strcmp(target->route_text, buf_str(&text)) != 0)
		status = memory_target_route(target, buf_str(&text), err);
	if (!status)
		status = memory_bands_set(s->db, def, target, &plan, err);
	if (status)
		return status;
	memory_cancel_for(s, target);
	target->hold = def->hold;
	target->unordered = def->unordered;
	memory_replace(&target->dead_letter, def->dead_letter);
	*ret_version = target->version;
	if (is_new && def->paused)
		return memory_target_pause(s, def->name, true, OUTBOX_PAUSED_BY_CONFIGURATION,
					   "paused: true", err);
	return OUTBOX_OK;
}

int memory_target_pause(struct memory_store *s, const char *name, bool pause, const char *actor,
			const char *reason, struct outbox_error *err)
{
	struct memory_target *target;
	int status = memory_target_get(s->db, name, &target, err);

	if (status || target->paused == pause)
		return status;
	target->paused = pause;
	memory_replace(&target->paused_by, pause ? actor : NULL);
	memory_replace(&target->paused_reason, pause ? reason : NULL);
	if (!pause)
		target->open_since = memory_now(s);
	memory_audit_add(s->db,
			 &(struct memory_audit){ .at = memory_now(s),
						 .actor = memory_text(actor),
						 .action = memory_text(pause ? "pause" : "resume"),
						 .target = memory_text(name),
						 .reason = memory_text(reason) });
	return OUTBOX_OK;
}

int memory_target_drop(struct memory_store *s, const char *name, const char *actor,
		       const char *reason, struct outbox_error *err)
{
	struct memory_db *db = s->db;
	struct memory_target *target;
	bool found;
	size_t place;
	int status = memory_target_get(db, name, &target, err);

	if (!status)
		status = memory_dead_of(db, name, err);
	if (status)
		return status;
	memory_audit_add(db, &(struct memory_audit){ .at = memory_now(s),
						     .actor = memory_text(actor),
						     .action = memory_text("target drop"),
						     .target = memory_text(name),
						     .reason = memory_text(reason) });
	place = place_of(db, name, &found);
	memmove(&db->targets[place], &db->targets[place + 1],
		(db->n_targets - place - 1) * sizeof(struct memory_target *));
	db->n_targets--;
	memory_unserved_forget(db, name, NULL);
	memory_target_free(db, target);
	return OUTBOX_OK;
}
