/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of what reaches a broker, and of the end. */
#include "sim.h"

#include <string.h>

bool sim_owns(struct sim *s, int t, int64_t seq)
{
	int lane = sim_message(s, seq)->slot % s->lanes;
	const struct memory_receipt *last = memory_receipt_last(&sim_db_target(s, t)->lanes[lane]);

	return !strncmp(last->owner, "relay", 5) && relays_find(s, last->owner) == s->current;
}

/* Is this relay still the one that the store knows as owner of the message's lane? */
static void check_owner(struct sim *s, int t, const struct sim_message *m)
{
	const struct memory_lane *lane = &sim_db_target(s, t)->lanes[m->slot % s->lanes];

	if (s->jumped)
		return; /* a store whose clock jumps ends leases early; the fence still holds */
	if (!lane->owner || relays_find(s, lane->owner) != s->current)
		sim_violation(s, "one live owner", "relay-%d.%d sends %d of a lane that %s owns",
			      s->current->number, s->current->life, (int)m->seq,
			      lane->owner ? lane->owner : "nobody");
}

/* What is not due or has expired when a later message of its key leaves is out of the order. */
static void excuse_earlier(struct sim *s, int t, const struct sim_message *m)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		const struct sim_message *e = &s->messages[i];

		if (e->seq < m->seq && m->key[0] && !strcmp(e->key, m->key) &&
		    (e->due_at > sim_now(s) || (e->expires_at && e->expires_at <= sim_now(s)) ||
		     (s->jumped && (e->due_at || e->expires_at))))
			s->deliveries[t][i].excused = true;
	}
}

/* Not before its time, not after its end, and only while it is being sent. */
static void check_time(struct sim *s, const struct sim_message *m, const struct sim_delivery *d)
{
	if (d->not_before > sim_now(s))
		sim_violation(s, "back-off", "%d was sent %lld us before its time", (int)m->seq,
			      (long long)(d->not_before - sim_now(s)));
	if (m->due_at > sim_now(s) && !d->rescheduled)
		sim_violation(s, "due", "%d was sent before it was due", (int)m->seq);
	if (m->expires_at && m->expires_at <= sim_now(s))
		sim_violation(s, "expiry", "%d was sent after it had expired", (int)m->seq);
	if (d->state != OUTBOX_SENDING)
		sim_violation(s, "lifecycle", "%d was sent while %s", (int)m->seq,
			      outbox_state_name(d->state));
}

void check_sent(struct sim *s, int t, const struct outbox_item *item)
{
	struct sim_message *m = sim_message(s, item->seq);
	struct sim_delivery *d = sim_delivery(s, t, item->seq);

	if (!m || !m->committed) {
		sim_violation(s, "no phantom", "%d was sent and never committed", (int)item->seq);
		return;
	}
	if (strcmp(item->message->id, m->id) != 0 || item->message->size != strlen(m->payload) ||
	    memcmp(item->message->data, m->payload, item->message->size) != 0 ||
	    item->message->event_time != m->event_time)
		sim_violation(s, "fidelity", "%d is not what was published", (int)m->seq);
	if (m->cancelled)
		sim_violation(s, "cancel", "%d was sent to t%d after it was cancelled", (int)m->seq,
			      t);
	if (!sim_gets(s, t, m))
		sim_violation(s, "routing", "%d was sent to t%d, which does not get it",
			      (int)m->seq, t);
	if (!s->jumped)
		check_time(s, m, d);
	check_owner(s, t, m);
	excuse_earlier(s, t, m);
	if (!sim_owns(s, t, item->seq))
		return; /* it will be refused when it settles; the owner's own tries count */
	d->tried = true;
	d->verdict = OUTBOX_UNKNOWN; /* until something else is said */
}

/* First copies of a key arrive in the order of the log, where its numbers are one. */
static void check_order(struct sim *s, int t, const struct sim_message *m)
{
	for (size_t i = 0; i < s->n_messages && !s->unordered_writers; i++) {
		const struct sim_message *e = &s->messages[i];
		const struct sim_delivery *d = &s->deliveries[t][i];

		if (e->seq >= m->seq || !e->committed || e->purged || !m->key[0] ||
		    strcmp(e->key, m->key) != 0 || !sim_gets(s, t, e) || e->again || m->again)
			continue;
		sim_premise(s, PREMISE_ORDERED);
		/* one that will always be refused may be passed as soon as it was */
		if (!d->was_accepted && !d->excused && e->nature != REJECTED)
			sim_violation(s, "order", "%d of key %s came to t%d before %d", (int)m->seq,
				      m->key, t, (int)e->seq);
	}
}

void check_accepted(struct sim *s, int t, const struct outbox_item *item)
{
	struct sim_message *m = sim_message(s, item->seq);
	struct sim_delivery *d = sim_delivery(s, t, item->seq);

	if (!m)
		return;
	if (!d->was_accepted)
		check_order(s, t, m);
	d->was_accepted = true;
	if (d->accepted)
		sim_premise(s, PREMISE_DUPLICATE);
	if (d->accepted > d->explained)
		sim_violation(s, "duplicates", "%d came to t%d for the %dth time, %d explained",
			      (int)m->seq, t, d->accepted + 1, d->explained);
}

void check_end(struct sim *s)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		const struct sim_message *m = &s->messages[i];

		for (int t = 0; t < s->n_targets; t++) {
			const struct sim_delivery *d = &s->deliveries[t][i];

			if (m->rolled_back && d->was_accepted)
				sim_violation(s, "no phantom", "%d was rolled back and sent",
					      (int)m->seq);
			if (m->committed && d->state == OUTBOX_DELIVERED && d->accepted < 1)
				sim_violation(s, "no loss", "%d is delivered nowhere", (int)m->seq);
		}
	}
	if (s->db->n_audit != s->audits)
		sim_violation(s, "audit", "%zu rows for %zu actions", s->db->n_audit, s->audits);
}
