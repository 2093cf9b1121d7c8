/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of retention: nothing goes too early, and in the end everything goes. */
#include "sim.h"
#include "store/store.h"

#include <string.h>

bool sim_gets(const struct sim *s, int t, const struct sim_message *m)
{
	return !m->before[t] &&
	       (s->gets[t] == GETS_ALL || (s->gets[t] == GETS_SOME && !strcmp(m->type, "a")));
}

static bool is_finished(const struct sim_delivery *d)
{
	return d->state == OUTBOX_DELIVERED || d->state == OUTBOX_DISCARDED ||
	       d->state == OUTBOX_FAILED;
}

static bool may_be_purged(struct sim *s, size_t i, const struct outbox_purge *purge)
{
	const struct sim_message *m = &s->messages[i];
	bool nobodys = true, any_target = false;

	for (int t = 0; t < s->n_targets; t++) {
		const struct sim_delivery *d = &s->deliveries[t][i];
		outbox_time before =
			d->state == OUTBOX_FAILED ? purge->failed_before : purge->delivered_before;

		if (!sim_db_target(s, t))
			continue; /* nobody has registered it yet */
		any_target = true;
		if (!sim_gets(s, t, m))
			continue;
		nobodys = false;
		if (!is_finished(d))
			return false;
		if (!s->jumped && d->finished_at > before)
			return false;
	}
	if (!any_target)
		return false; /* whoever comes first may want all of it */
	return !nobodys || s->jumped || m->published_at < purge->delivered_before;
}

void check_before_purge(struct sim *s)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		struct sim_message *m = &s->messages[i];

		m->unpassed = false;
		for (int t = 0; t < s->n_targets && m->committed && !m->purged; t++) {
			const struct memory_target *target = sim_db_target(s, t);

			if (target && !sim_gets(s, t, m) &&
			    memory_delivery(s->db, target, m->seq)->mark == MARK_NEW)
				m->unpassed = true;
		}
	}
}

void check_purge(struct sim *s, const struct outbox_purge *purge)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		struct sim_message *m = &s->messages[i];

		if (!m->committed || m->purged || memory_log_row(s->db, m->seq))
			continue;
		if (!may_be_purged(s, i, purge))
			sim_violation(s, "purge", "%d was purged before its time", (int)m->seq);
		m->purged = true;
		sim_premise(s, PREMISE_PURGED);
		if (m->unpassed)
			sim_premise(s, PREMISE_UNPASSED);
		for (int t = 0; t < s->n_targets; t++)
			if (m->before[t])
				sim_premise(s, PREMISE_BEFORE_START);
	}
	check_states(s, BY_PURGE);
}

void check_retention(struct sim *s)
{
	struct outbox_purge purge = { .delivered_before = sim_now(s), .failed_before = sim_now(s) };
	struct outbox_purged purged;

	check_before_purge(s);
	do {
		if (store_purge(s->store, &purge, &purged, NULL))
			sim_violation(s, "operator", "cannot purge");
		check_purge(s, &purge);
	} while (purged.more);
	for (size_t i = 0; i < s->n_messages; i++) {
		const struct sim_message *m = &s->messages[i];

		if (m->committed && !m->purged && may_be_purged(s, i, &purge))
			sim_violation(s, "retention", "%d is finished everywhere and stays",
				      (int)m->seq);
	}
}
