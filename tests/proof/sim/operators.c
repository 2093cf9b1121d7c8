/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: pause, requeue, discard, defer, cancel, purge, at any moment. */
#include "sim.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

/* An operator who acts on a dead owner's lane takes it over first: see who holds the lanes now. */
static void look_who_holds(struct sim *s, int t)
{
	for (int lane = 0; lane < s->lanes; lane++) {
		int64_t token = memory_receipt_last(&sim_db_target(s, t)->lanes[lane])->fence_token;

		if (token == s->holders[t][lane])
			continue;
		s->holders[t][lane] = token;
		check_lost(s, t, lane);
	}
}

static bool act_once(struct sim *s, int t, struct sim_message *m, int action)
{
	char target[3] = { 't', (char)('0' + t), '\0' };
	const char *ids[] = { m->id };
	struct outbox_filter filter = {
		.struct_size = sizeof(filter), .ids = ids, .n_ids = 1, .target = target
	};
	outbox_time until = sim_now(s) + (outbox_time)(1 + sim_pick(s, 15)) * OUTBOX_SECONDS;
	struct outbox_act act = {
		.action = action, .actor = "sim", .reason = "because", .until = until, .filter = &filter
	};
	struct sim_delivery *d = sim_delivery(s, t, m->seq);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_acted acted = { 0 };

	if (store_act(s->store, &act, &acted, &err)) {
		sim_violation(s, "operator", "%s", err.message);
		return false;
	}
	look_who_holds(s, t);
	sim_say(s, "operator %s %d at %s: %s",
		action == OUTBOX_REQUEUE   ? "requeues"
		: action == OUTBOX_DISCARD ? "discards"
					   : "defers",
		(int)m->seq, target, acted.done ? "done" : acted.why);
	if (strstr(acted.why, "being sent"))
		sim_premise(s, PREMISE_REFUSED);
	if (acted.done) {
		s->audits++;
		d->excused = true;
		d->rescheduled = true;
		d->not_before = action == OUTBOX_DEFER ? until : 0;
		if (action == OUTBOX_REQUEUE)
			sim_premise(s, PREMISE_REQUEUED);
		if (action == OUTBOX_REQUEUE && d->accepted)
			d->explained++; /* its outcome was unknown, or a copy was lost on the way */
	}
	check_states(s, BY_OPERATOR);
	return acted.done > 0;
}

static void act_on_one(struct sim *s, int action)
{
	int t = (int)sim_pick(s, (uint64_t)s->n_targets);
	size_t i = s->n_messages ? sim_pick(s, s->n_messages) : 0;
	struct sim_message *m;

	/* Operators requeue what they see as failed; now and then they are wrong. */
	for (size_t tries = 0; action == OUTBOX_REQUEUE && tries < s->n_messages; tries++)
		if (s->deliveries[t][i].state != OUTBOX_FAILED && sim_chance(s, 90))
			i = (i + 1) % s->n_messages;
	m = &s->messages[i];

	if (!s->n_messages || !m->committed || m->purged || !sim_db_target(s, t))
		return;
	if (!act_once(s, t, m, action) || action != OUTBOX_REQUEUE)
		return;
	/* A second operator at the same moment must find that it is done. */
	sim_premise(s, PREMISE_WON_ONCE);
	if (act_once(s, t, m, action))
		sim_violation(s, "requeue", "%d was requeued twice", (int)m->seq);
}

static void pause(struct sim *s)
{
	int t = (int)sim_pick(s, (uint64_t)s->n_targets);
	char target[3] = { 't', (char)('0' + t), '\0' };

	if (!sim_db_target(s, t))
		return; /* no relay has registered it yet */
	if (store_target_pause(s->store, target, !s->paused[t], "sim", "because", NULL))
		sim_violation(s, "operator", "cannot pause");
	s->paused[t] = !s->paused[t];
	s->audits++;
	sim_say(s, "operator %s %s", s->paused[t] ? "pauses" : "resumes", target);
}

static void purge(struct sim *s)
{
	struct outbox_purge purge = {
		.delivered_before = sim_now(s) - (outbox_time)sim_pick(s, 10) * OUTBOX_SECONDS,
		.failed_before = sim_chance(s, 50) ? sim_now(s) - 5 * OUTBOX_SECONDS : 0,
		.limit = 1 + sim_pick(s, 10),
	};
	struct outbox_purged purged;

	check_before_purge(s);
	if (store_purge(s->store, &purge, &purged, NULL))
		sim_violation(s, "operator", "cannot purge");
	sim_say(s, "purge removes %d", (int)purged.messages);
	check_purge(s, &purge);
}

static void say_nothing(void *context, int level, const char *subject, const char *text)
{
	(void)context, (void)level, (void)subject, (void)text;
}

/* With all relays stopped, as one is told to. */
static void rebase(struct sim *s)
{
	const struct outbox_rebase how = { .struct_size = sizeof(how), .actor = "sim" };
	size_t audits = s->db->n_audit;

	for (int i = 0; i < s->n_relays; i++)
		if (s->relays[i].relay)
			relays_end(s, i, "is stopped");
	if (store_rebase(s->store, &how, say_nothing, NULL, NULL))
		sim_violation(s, "operator", "cannot rebase");
	if (s->db->n_audit == audits)
		return; /* nothing was wrong */
	s->audits++;
	sim_premise(s, PREMISE_REBASED);
	sim_say(s, "operator rebases");
	for (int t = 0; t < s->n_targets; t++) {
		memset(s->refused[t], 0, sizeof(s->refused[t]));
		if (sim_db_target(s, t))
			look_who_holds(s, t);
	}
	check_states(s, BY_OPERATOR);
}

static bool counter_happens(struct sim *s, enum sim_fault fault, uint64_t draw, int percent)
{
	if (draw % 100 >= (uint64_t)percent || s->healing || !s->enabled[fault] ||
	    (s->skip && s->skip[fault] == '1'))
		return false;
	s->totals->faults[fault]++;
	return true;
}

static struct sim_message *find_scheduled(struct sim *s, uint64_t from)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		struct sim_message *m = &s->messages[(from + i) % s->n_messages];

		if (m->committed && !m->purged && m->due_at > sim_now(s))
			return m;
	}
	return NULL;
}

/* One that is due later, if there is any. Refused only because a relay reads it, or an operator was there before. */
static void cancel(struct sim *s, uint64_t from)
{
	struct sim_message *m = find_scheduled(s, from);
	struct outbox_cancel how = { .struct_size = sizeof(how), .actor = "sim", .reason = "because" };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	size_t audits = s->db->n_audit;
	bool done = false;
	int r;

	if (!m)
		return;
	how.id = m->id;
	r = store_cancel(s->store, &how, &done, &err);
	if (r && r != OUTBOX_ECONFLICT)
		sim_violation(s, "operator", "%s", err.message);
	sim_say(s, "operator cancels %d: %s", (int)m->seq,
		r      ? err.message
		: done ? "done"
		       : "again");
	if (done == m->cancelled && !r)
		sim_violation(s, "cancel", "%d was cancelled %s", (int)m->seq,
			      done ? "twice" : "not at all");
	s->audits += s->db->n_audit - audits;
	for (int t = 0; t < s->n_targets; t++)
		if (sim_db_target(s, t))
			look_who_holds(s, t);
	if (done) {
		m->cancelled = true;
		sim_premise(s, PREMISE_CANCELLED);
	}
	check_states(s, BY_OPERATOR);
}

void operators_number(struct sim *s)
{
	uint64_t draw = s->past.base.next(&s->past.base), to = s->past.base.next(&s->past.base);
	int64_t last = memory_log_last(s->db);

	if (counter_happens(s, FAULT_COUNTER_SET, draw, 4)) {
		/* somebody may put it right, before or after anything was published */
		last = to % 3 ? (int64_t)(to / 3 % (uint64_t)(last + 1)) : last;
		memory_db_set_counter(s->db, last);
		sim_say(s, "the log's counter is set to %d", (int)last);
	}
	if (!s->depth && counter_happens(s, FAULT_OPERATOR_REBASE, draw / 100, 1))
		rebase(s);
	if (!s->depth && counter_happens(s, FAULT_CANCEL, draw / 10000, 5))
		cancel(s, to);
}

void operators_act(struct sim *s)
{
	if (sim_fault(s, FAULT_OPERATOR_REQUEUE))
		act_on_one(s, OUTBOX_REQUEUE);
	if (sim_fault(s, FAULT_OPERATOR_DISCARD))
		act_on_one(s, OUTBOX_DISCARD);
	if (sim_fault(s, FAULT_OPERATOR_DEFER))
		act_on_one(s, OUTBOX_DEFER);
	if (sim_fault(s, FAULT_OPERATOR_PURGE))
		purge(s);
	if (sim_fault(s, FAULT_OPERATOR_PAUSE))
		pause(s);
}

/*
 * A target that is registered only now starts on a log whose counter was set back before: its lanes
 * refuse, and the operator does what the refusal says. Once: a lane that still refuses is a bug.
 */
void operators_answer(struct sim *s)
{
	if (memory_any_refused(s->db) && !s->answered) {
		s->answered = true;
		rebase(s);
	}
}

/* A rebase restarts the relays, so only when a lane needs it: else they must finish with what they went through. */
void operators_heal(struct sim *s)
{
	if (memory_any_refused(s->db))
		rebase(s);
	for (int t = 0; t < s->n_targets; t++) {
		char target[3] = { 't', (char)('0' + t), '\0' };

		if (s->paused[t] && !store_target_pause(s->store, target, false, "sim", NULL, NULL))
			s->audits++;
		s->paused[t] = false;
	}
}
