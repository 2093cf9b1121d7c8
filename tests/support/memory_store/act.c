/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lifecycle.h"

#include "base/text.h"
#include "memory_store/select.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

/*
 * Operators' actions. What may be done in which state is lifecycle.h's; here are the rules of a lane
 * with an owner: what is in flight is refused while the lease lives, afterwards the lane is taken
 * over first, so that the dead owner's settlement has no effect any more.
 */

static bool lease_lives(const struct memory_lane *lane, outbox_time now)
{
	return lane->owner && lane->lease_until > now;
}

/* May it be done to this delivery now? Counts a refusal of one that was named. */
static bool allowed(const struct memory_select *select, const struct memory_target *target,
		    const struct memory_message *row, const struct outbox_act *act,
		    struct outbox_acted *acted, outbox_time now)
{
	int why, state = memory_delivery_state(select->db, target, row, &why);
	const struct memory_lane *lane = &target->lanes[row->key_hash % target->n_lanes];
	const struct memory_detour *detour = memory_delivery(select->db, target, row->seq)->detour;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char shown[80];

	if (state == OUTBOX_SENDING && !lease_lives(lane, now))
		state = OUTBOX_PENDING;
	/* Deferring again to the same time would select the same ones in every call. */
	if (!select->seqs && act->action == OUTBOX_DEFER && why == OUTBOX_DEFERRED && detour &&
	    detour->next_attempt_at == act->until)
		return false;
	if (state == OUTBOX_SENDING)
		outbox_fail(&err, OUTBOX_ECONFLICT, "is being sent right now; try again");
	else if (lifecycle_check(state, lifecycle_of_action(act->action), &err) == OUTBOX_OK)
		return true;
	if (!select->seqs)
		return false;
	if (!acted->refused++)
		snprintf(acted->why, sizeof(acted->why), "%s to %s: %.300s",
			 text_shown(shown, sizeof(shown), row->m.id), target->name, err.message);
	return false;
}

static void audit(struct memory_db *db, const struct memory_target *target,
		  const struct memory_detour *detour, const struct outbox_act *act, outbox_time now)
{
	memory_audit_add(db, &(struct memory_audit){
				     .at = now,
				     .actor = memory_text(act->actor),
				     .action = memory_text(action_names[act->action]),
				     .target = memory_text(target->name),
				     .id = memory_text(detour->message->m.id),
				     .reason = memory_text(act->reason),
				     .detail = memory_text(detour->error),
			     });
}

void memory_act_change(struct memory_store *s, struct memory_target *target,
		       struct memory_message *row, const struct outbox_act *act, outbox_time now)
{
	int why, lane = row->key_hash % target->n_lanes;
	struct memory_detour *detour;

	if (memory_delivery_state(s->db, target, row, &why) == OUTBOX_SENDING)
		memory_lane_take(s->db, target, lane, act->actor ? act->actor : "operator",
				 (int64_t)s->random->next(s->random), now);
	detour = memory_detour_make(s->db, target, row);
	audit(s->db, target, detour, act, now);
	switch (act->action) {
	case OUTBOX_REQUEUE:
		detour->attempts = 0;
		detour->failing_since = 0;
		detour->next_attempt_at = detour->ready_at = now;
		memory_replace(&detour->error, NULL);
		memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_WAITING, now);
		break;
	case OUTBOX_DISCARD:
		memory_detour_set(target, detour, OUTBOX_DISCARDED, 0, now);
		break;
	default:
		detour->next_attempt_at = detour->ready_at = act->until;
		memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_DEFERRED, now);
		break;
	}
	memory_replace(&detour->reason, act->reason);
}

static void act_on_all(struct memory_store *s, struct memory_select *select,
		       const struct outbox_act *act, struct outbox_acted *acted)
{
	/* A dry run by filter counts them all. */
	size_t limit = act->dry_run && !select->seqs ? SIZE_MAX : act->filter->limit;
	outbox_time now = memory_now(s);
	struct memory_target *target;
	struct memory_message *row;

	while (memory_select_next(select, &target, &row)) {
		/* A state in the filter narrows a selection; what was named by id is told instead. */
		if (!select->seqs && !memory_select_state(select, target, row))
			continue;
		if (acted->done == limit) {
			const struct outbox_acted before = *acted;

			acted->more = allowed(select, target, row, act, acted, now);
			acted->refused = before.refused;
			if (acted->more)
				return;
			continue;
		}
		if (!allowed(select, target, row, act, acted, now))
			continue;
		if (!acted->done++ || row->created_at < acted->oldest)
			acted->oldest = row->created_at;
		if (!act->dry_run)
			memory_act_change(s, target, row, act, now);
		store_cursor_format(row->seq, target->name, acted->cursor, sizeof(acted->cursor));
	}
	if (!acted->more)
		acted->cursor[0] = '\0';
}

int memory_act(struct memory_store *s, const struct outbox_act *act, struct outbox_acted *ret_acted,
	       struct outbox_error *err)
{
	struct outbox_acted acted = { 0 };
	struct memory_select select;
	char shown[80];
	int status = memory_select_start(&select, s->db, act->filter, err);

	if (status)
		return status;
	select.now = memory_now(s);
	if (select.missing) {
		acted.refused = select.missing;
		snprintf(acted.why, sizeof(acted.why), "no message with the id \"%s\"",
			 text_shown(shown, sizeof(shown), select.missing_id));
	}
	act_on_all(s, &select, act, &acted);
	memory_select_end(&select);
	*ret_acted = acted;
	return OUTBOX_OK;
}
