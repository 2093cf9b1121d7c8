/* SPDX-License-Identifier: Apache-2.0 */
/* Applications: transactions that publish, hold, commit late, roll back, use savepoints. */
#include "sim.h"

#include "core/key_hash.h"

#include <stdio.h>
#include <string.h>

#define HOLD_MAX (8 * OUTBOX_SECONDS)

/* The application's own lock on the aggregate: nobody else may publish for this key meanwhile. */
static bool key_is_locked(struct sim *s, const struct sim_writer *self, const char *key)
{
	if (s->unordered_writers || !*key)
		return false;
	for (int i = 0; i < SIM_WRITERS; i++) {
		const struct sim_writer *w = &s->writers[i];

		for (size_t j = 0; w != self && w->tx && j < w->n; j++)
			if (!strcmp(s->messages[w->messages[j]].key, key))
				return true;
	}
	return false;
}

static void choose_nature(struct sim *s, struct sim_message *m)
{
	if (sim_fault(s, FAULT_POISON_KILLS))
		m->nature = KILLS;
	else if (sim_fault(s, FAULT_POISON_CUTS))
		m->nature = CUTS;
	else if (sim_fault(s, FAULT_BROKER_REJECT))
		m->nature = REJECTED;
	if (sim_fault(s, FAULT_DUE))
		m->due_at = sim_now(s) + (outbox_time)sim_pick(s, 20) * OUTBOX_SECONDS + 1;
	if (sim_fault(s, FAULT_EXPIRY))
		m->expires_at = (m->due_at ? m->due_at : sim_now(s)) +
				(outbox_time)(1 + sim_pick(s, 30)) * OUTBOX_SECONDS;
}

static void publish(struct sim *s, struct sim_writer *w)
{
	struct sim_message *m = &s->messages[s->n_messages];
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	uint64_t key = sim_pick(s, (uint64_t)s->n_keys + 1);
	int64_t last;

	memset(m, 0, sizeof(*m));
	if (key)
		snprintf(m->key, sizeof(m->key), "k%d", (int)key);
	if (key_is_locked(s, w, m->key))
		return;
	choose_nature(s, m);
	snprintf(m->payload, sizeof(m->payload), "{\"n\":%zu}", s->n_messages);
	m->event_time = sim_now(s) - (outbox_time)sim_pick(s, 1000);
	m->type = s->paths.base.next(&s->paths.base) % 2 ? "a" : "b";
	m->published_at = sim_now(s);
	message.type = m->type;
	message.key = m->key[0] ? m->key : NULL;
	message.data = m->payload;
	message.size = strlen(m->payload);
	message.event_time = m->event_time;
	message.due_at = m->due_at;
	message.expires_at = m->expires_at;
	last = memory_log_last(s->db);
	if (memory_tx_publish(w->tx, &message, &m->seq, &err)) {
		sim_violation(s, "publish", "%s", err.message);
		return;
	}
	m->again = m->seq <= last;
	if (m->again)
		sim_premise(s, PREMISE_NUMBERED_AGAIN);
	snprintf(m->id, sizeof(m->id), "%s", memory_log_row(s->db, m->seq)->m.id);
	m->slot = key_hash(m->key[0] ? m->key : m->id);
	for (int t = 0; t < s->n_targets; t++)
		memset(&s->deliveries[t][s->n_messages], 0, sizeof(struct sim_delivery));
	w->messages[w->n++] = (int)s->n_messages++;
	sim_say(s, "writer %d publishes %d, key %s%s", (int)(w - s->writers), (int)m->seq,
		m->key[0] ? m->key : "-", m->nature == KILLS ? " (poison)" : "");
}

static void finish(struct sim *s, struct sim_writer *w, bool commit)
{
	for (size_t i = 0; i < w->n; i++) {
		struct sim_message *m = &s->messages[w->messages[i]];

		m->committed = commit;
		m->rolled_back = !commit;
		if (commit && m->seq < s->highest_settled)
			sim_premise(s, PREMISE_LATE_COMMIT);
	}
	w->tx = commit ? memory_tx_commit(w->tx) : memory_tx_rollback(w->tx);
	sim_say(s, "writer %d %s", (int)(w - s->writers), commit ? "commits" : "rolls back");
	memset(w, 0, sizeof(*w));
	check_states(s, BY_WRITER);
}

static void undo_to_savepoint(struct sim *s, struct sim_writer *w)
{
	memory_tx_rollback_to(w->tx, w->savepoint);
	for (size_t i = w->at_savepoint; i < w->n; i++)
		s->messages[w->messages[i]].rolled_back = true;
	w->n = w->at_savepoint;
	sim_say(s, "writer %d rolls back to its savepoint", (int)(w - s->writers));
}

void writers_act(struct sim *s)
{
	struct sim_writer *w = &s->writers[sim_pick(s, SIM_WRITERS)];
	bool more = !s->healing && s->n_messages < (size_t)s->n_messages_wanted;

	if (!w->tx && more) {
		w->tx = memory_tx_begin(s->db);
		publish(s, w);
		return;
	}
	if (!w->tx || (sim_now(s) < w->not_before && !s->healing))
		return;
	if (more && w->n < 4 && sim_chance(s, 40)) {
		if (sim_chance(s, 30)) {
			w->savepoint = memory_tx_savepoint(w->tx);
			w->at_savepoint = w->n;
			w->has_savepoint = true;
		}
		publish(s, w);
	} else if (w->has_savepoint && sim_fault(s, FAULT_WRITER_SAVEPOINT)) {
		undo_to_savepoint(s, w);
	} else if (!w->not_before && sim_fault(s, FAULT_WRITER_LATE)) {
		w->not_before = sim_now(s) + (outbox_time)sim_pick(s, HOLD_MAX);
	} else {
		finish(s, w, !sim_fault(s, FAULT_WRITER_ROLLBACK));
	}
}

bool writers_done(struct sim *s)
{
	for (int i = 0; i < SIM_WRITERS; i++)
		if (s->writers[i].tx)
			return false;
	return true;
}
