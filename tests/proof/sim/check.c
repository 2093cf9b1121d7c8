/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants. Each names the promise that was broken, and each has a premise that is counted. */
#include "sim.h"

#include <string.h>

/* ---- the lifecycle ------------------------------------------------------------------------- */

static bool legal(int from, int to, enum check_by by)
{
	switch (to) {
	case OUTBOX_PENDING:
		return from == OUTBOX_PENDING || from == OUTBOX_SENDING ||
		       (from == OUTBOX_FAILED && by == BY_OPERATOR);
	case OUTBOX_SENDING:
		return from == OUTBOX_PENDING || from == OUTBOX_SENDING;
	case OUTBOX_DELIVERED:
	case OUTBOX_FAILED:
		return from == OUTBOX_SENDING && by == BY_RELAY;
	case OUTBOX_DISCARDED:
		/* sending: an operator takes a dead owner's lane over first */
		return by == BY_OPERATOR && from != OUTBOX_DELIVERED && from != OUTBOX_DISCARDED;
	default:
		return false;
	}
}

/* One step of one delivery's life: is it allowed, and are the attempts counted right? */
static void check_step(struct sim *s, int t, size_t i, int state, int attempts, enum check_by by)
{
	const struct sim_message *m = &s->messages[i];
	struct sim_delivery *d = &s->deliveries[t][i];

	s->totals->edges[d->state][state]++;
	if (d->state != state && !legal(d->state, state, by))
		sim_violation(s, "lifecycle", "%d at t%d went from %s to %s", (int)m->seq, t,
			      outbox_state_name(d->state), outbox_state_name(state));
	if (attempts != d->attempts && attempts != d->attempts + 1 &&
	    !(by == BY_OPERATOR && !attempts))
		sim_violation(s, "attempts", "%d at t%d went from %d to %d", (int)m->seq, t,
			      d->attempts, attempts);
	if (state == OUTBOX_DELIVERED || state == OUTBOX_FAILED || state == OUTBOX_DISCARDED)
		d->finished_at = sim_now(s);
	if (state == OUTBOX_FAILED || state == OUTBOX_DISCARDED)
		d->excused = true;
	d->state = state;
	d->attempts = attempts;
}

static void check_state(struct sim *s, int t, size_t i, enum check_by by)
{
	const struct sim_message *m = &s->messages[i];
	struct sim_delivery *d = &s->deliveries[t][i];
	const struct memory_message *row = memory_log_row(s->db, m->seq);
	const struct memory_detour *detour;
	int why, state, attempts;

	if (!row) {
		if (by != BY_PURGE)
			sim_violation(s, "no loss", "%d is gone from the log", (int)m->seq);
		return;
	}
	state = memory_delivery_state(s->db, sim_db_target(s, t), row, &why);
	detour = memory_delivery(s->db, sim_db_target(s, t), m->seq)->detour;
	attempts = detour ? detour->attempts : 0;
	if (d->state == state && d->attempts == attempts)
		return;
	if (m->cancelled && by != BY_OPERATOR && state == OUTBOX_DISCARDED) {
		/* its target was registered after that */
		sim_premise(s, PREMISE_CANCELLED_LATER);
		by = BY_OPERATOR;
	}
	if (!d->state)
		d->state = OUTBOX_PENDING;
	check_step(s, t, i, state, attempts, by);
}
void check_states(struct sim *s, enum check_by by)
{
	for (int t = 0; t < s->n_targets; t++) {
		if (!sim_db_target(s, t))
			continue;
		for (size_t i = 0; i < s->n_messages; i++)
			if (s->messages[i].committed && !s->messages[i].purged)
				check_state(s, t, i, by);
	}
}

/* ---- settling ------------------------------------------------------------------------------ */

static outbox_time plain_delay(const struct outbox_policy *p, int attempts)
{
	outbox_time delay = p->base;

	for (int i = 1; i < attempts && delay < p->cap; i++)
		delay *= 2;
	return delay < p->cap ? delay : p->cap;
}

/* The back-off is exact: base doubling up to cap, moved by the jitter and by nothing else. */
static void check_backoff(struct sim *s, const struct outbox_settlement *o)
{
	outbox_time plain = plain_delay(&s->policy, o->attempts ? o->attempts : 1);
	outbox_time jitter = plain * s->policy.jitter_percent / 100;

	if (o->delay < plain - jitter || (!o->suspect && o->delay > plain + jitter))
		sim_violation(s, "back-off", "%d waits %lld us after attempt %d", (int)o->seq,
			      (long long)o->delay, o->attempts);
}

static void check_waiting(struct sim *s, const struct outbox_settlement *o,
			  const struct sim_delivery *d)
{
	if (o->attempts == d->attempts + 1) {
		sim_premise(s, PREMISE_CHARGED);
		if (d->verdict != OUTBOX_RETRY && !(d->verdict == OUTBOX_UNKNOWN && d->alone) &&
		    !(!d->tried && d->died_alone))
			sim_violation(s, "outage charged",
				      "%d was charged without a refusal (%s, verdict %d%s)",
				      (int)o->seq, d->tried ? "sent" : "not sent", d->verdict,
				      d->alone ? ", alone" : "");
	} else if (o->attempts == d->attempts) {
		sim_premise(s, PREMISE_UNCHARGED);
		if (d->verdict == OUTBOX_RETRY)
			sim_violation(s, "attempts", "%d was refused and not charged", (int)o->seq);
		if (!o->suspect)
			sim_violation(s, "attempts", "%d waits for no reason", (int)o->seq);
	} else {
		sim_violation(s, "attempts", "%d from %d to %d", (int)o->seq, d->attempts,
			      o->attempts);
	}
	if (o->attempts > d->attempts)
		check_backoff(s, o);
}

static void check_failed(struct sim *s, const struct outbox_settlement *o, struct sim_delivery *d)
{
	const struct sim_message *m = sim_message(s, o->seq);

	if (d->verdict == OUTBOX_REJECTED) {
		sim_premise(s, PREMISE_REJECTED);
	} else if (m->expires_at && (m->expires_at <= sim_now(s) || s->jumped) && !d->tried) {
		sim_premise(s, PREMISE_EXPIRED);
	} else if (o->attempts == s->policy.max_attempts && o->attempts == d->attempts + 1 &&
		   (d->verdict == OUTBOX_RETRY || d->verdict == OUTBOX_UNKNOWN || d->died_alone)) {
		sim_premise(s, PREMISE_USED_UP);
	} else {
		sim_violation(s, "dead letter", "%d failed after %d of %d attempts, verdict %d",
			      (int)o->seq, o->attempts, s->policy.max_attempts, d->verdict);
	}
	if (m->nature == KILLS || m->nature == CUTS)
		sim_premise(s, PREMISE_POISON_FAILED);
}

static void check_one(struct sim *s, const struct outbox_settlement *o, struct sim_delivery *d)
{
	switch (o->outcome) {
	case OUTBOX_OUT_DELIVERED:
		sim_premise(s, PREMISE_DELIVERED);
		if (d->verdict != OUTBOX_ACKED || d->accepted < 1)
			sim_violation(s, "no loss", "%d is settled as delivered and is not",
				      (int)o->seq);
		d->acked_unsettled = false;
		if (o->seq > s->highest_settled)
			s->highest_settled = o->seq;
		break;
	case OUTBOX_OUT_RETURNED:
		sim_premise(s, PREMISE_RETURNED);
		if (d->tried && d->verdict && d->verdict != OUTBOX_UNKNOWN)
			sim_violation(s, "verdict", "%d was returned in spite of verdict %d",
				      (int)o->seq, d->verdict);
		break;
	case OUTBOX_OUT_WAITING:
		check_waiting(s, o, d);
		d->not_before = sim_now(s) + o->delay;
		break;
	case OUTBOX_OUT_FAILED:
		check_failed(s, o, d);
		break;
	case OUTBOX_OUT_PARKED:
		sim_premise(s, PREMISE_PARKED);
		if (d->tried)
			sim_violation(s, "verdict", "%d was sent and then parked", (int)o->seq);
		break;
	case OUTBOX_OUT_DEFERRED:
		sim_premise(s, PREMISE_DEFERRED);
		d->excused = true;
		d->not_before = o->due_at;
		break;
	default:
		sim_violation(s, "outcome", "%d has none", (int)o->seq);
	}
}

void check_settlement(struct sim *s, const struct outbox_settle_and_claim *request)
{
	int t = sim_target(request->target);

	for (size_t i = 0; i < request->n_settled; i++) {
		struct sim_delivery *d = sim_delivery(s, t, request->settled[i].seq);

		check_one(s, &request->settled[i], d);
		d->tried = d->alone = false;
		d->verdict = OUTBOX_VERDICT_UNSET;
		if (request->settled[i].outcome != OUTBOX_OUT_RETURNED)
			d->died_alone = false;
	}
}

void check_claim(struct sim *s, const struct outbox_settle_and_claim *request,
		 const struct outbox_claim *claim)
{
	int t = sim_target(request->target);

	if (claim->count > request->max_messages && !s->again)
		sim_violation(s, "budget", "claimed %zu of %zu", claim->count, request->max_messages);
	if (claim->count && s->paused[t] && request->fence_token != claim->fence_token &&
	    request->new_token == claim->fence_token && !s->again)
		sim_violation(s, "pause", "a paused target claims");
	for (size_t i = 0; i < claim->count; i++) {
		struct sim_delivery *d = sim_delivery(s, t, claim->items[i].seq);

		if (!d)
			sim_violation(s, "no phantom", "claimed %d, which nobody published",
				      (int)claim->items[i].seq);
		else if (!s->again)
			d->tried = false, d->verdict = OUTBOX_VERDICT_UNSET;
		/* Not due when it was read: it leaves its key's order, also if it is due a moment later. */
		if (d && sim_message(s, claim->items[i].seq)->due_at > claim->store_now)
			d->excused = true;
	}
}

void check_refusal(struct sim *s, int t, int lane, int status)
{
	if (status == OUTBOX_EPROTO) {
		sim_premise(s, s->refused[t][lane] && !s->db->next ? PREMISE_REFUSED_STILL
								   : PREMISE_LANE_REFUSED);
		s->refused[t][lane] = true;
	}
	if (!status && s->refused[t][lane])
		sim_violation(s, "refusal", "lane %d of t%d was refused and goes on by itself",
			      lane, t);
}

void check_lost(struct sim *s, int t, int lane)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		struct sim_delivery *d = &s->deliveries[t][i];

		if (s->messages[i].slot % s->lanes != lane)
			continue;
		if (d->acked_unsettled)
			d->explained++;
		d->acked_unsettled = d->tried = d->alone = false;
		d->verdict = OUTBOX_VERDICT_UNSET;
	}
}
