/* SPDX-License-Identifier: Apache-2.0 */
#include "core/settlement.h"

/* Attempts, suspicion and error as the engine decided them. */
static void charge(struct settlement_effect *effect, const struct outbox_settlement *s,
		   outbox_time now)
{
	struct detour_state *detour = &effect->detour;

	if (s->attempts > 0 && !detour->failing_since)
		detour->failing_since = now;
	detour->attempts = s->attempts;
	detour->suspect = s->suspect;
	effect->error = s->error;
}

static void set_pending(struct detour_state *detour, int why, outbox_time next_attempt_at)
{
	detour->state = OUTBOX_PENDING;
	detour->why = why;
	detour->next_attempt_at = next_attempt_at;
}

static void set_finished(struct detour_state *detour, int state)
{
	detour->state = state;
	detour->why = 0;
	detour->next_attempt_at = 0;
}

int settlement_apply(const struct detour_state *before, const struct outbox_settlement *s,
		     outbox_time now, struct settlement_effect *ret_effect, struct outbox_error *err)
{
	struct settlement_effect effect = { .settles = true };
	struct detour_state *detour = &effect.detour;

	if (before)
		*detour = *before;
	switch (s->outcome) {
	case OUTBOX_OUT_DELIVERED:
		effect.covered = !before;
		effect.frees_key = before;
		detour->suspect = false;
		set_finished(detour, OUTBOX_DELIVERED);
		break;
	case OUTBOX_OUT_RETURNED: /* as if it had never been claimed */
		effect.settles = false;
		set_pending(detour, before ? before->why : OUTBOX_WAITING, now);
		break;
	case OUTBOX_OUT_WAITING:
		charge(&effect, s, now);
		set_pending(detour, OUTBOX_WAITING, now + s->delay);
		break;
	case OUTBOX_OUT_DEFERRED: /* it leaves its key's order until then */
		effect.frees_key = before;
		charge(&effect, s, now);
		set_pending(detour, OUTBOX_DEFERRED, s->due_at);
		detour->ready_at = s->due_at;
		break;
	case OUTBOX_OUT_PARKED: /* what it waits for may be over by now: then it is woken itself */
		effect.frees_key = true;
		charge(&effect, s, now);
		set_pending(detour, OUTBOX_PARKED, 0);
		break;
	case OUTBOX_OUT_FAILED:
		effect.frees_key = before;
		charge(&effect, s, now);
		set_finished(detour, OUTBOX_FAILED);
		break;
	default:
		return outbox_fail(err, OUTBOX_EINVAL, "message %lld: outcome %d is unknown",
				   (long long)s->seq, s->outcome);
	}
	*ret_effect = effect;
	return OUTBOX_OK;
}

size_t settlement_returned_tail(const struct outbox_settlement *settled, const bool *from_log,
				size_t n)
{
	size_t tail = 0;

	while (tail < n && from_log[n - 1 - tail] &&
	       settled[n - 1 - tail].outcome == OUTBOX_OUT_RETURNED)
		tail++;
	return tail;
}

void settlement_count(struct settlement_counts *counts, int outcome)
{
	counts->delivered += outcome == OUTBOX_OUT_DELIVERED;
	counts->retried += outcome == OUTBOX_OUT_WAITING;
	counts->failed += outcome == OUTBOX_OUT_FAILED;
	counts->parked += outcome == OUTBOX_OUT_PARKED;
	counts->deferred += outcome == OUTBOX_OUT_DEFERRED;
}

int64_t settlement_progress(const struct settlement_counts *counts)
{
	return counts->delivered + counts->retried + counts->failed + counts->parked +
	       counts->deferred;
}
