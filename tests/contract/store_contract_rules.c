/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What core says of settling, taking over and purging (core/settlement.h, caution.h, retention.h), asked of
 * a store: the same cases, whether it calls those functions or derives it all in SQL. Each case has a
 * target and types of its own.
 */

#include "store_world.h"

#include "caution_cases.h"
#include "retention_cases.h"
#include "settlement_cases.h"
#include "store/store.h"

#include <stdio.h>

static int64_t publish(struct store_world *w, const char *type, const char *key, const char *id)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.id = id;
	m.type = type;
	m.key = key;
	m.data = "{}";
	m.size = 2;
	return world_publish_message(w, &m);
}

/* A target that gets this type alone. */
static int64_t put_target(struct store_world *w, const char *name, const char *type, int start)
{
	const char *const types[] = { type };
	struct outbox_target_def def = target_def(name);

	def.route.types = types;
	def.route.n_types = 1;
	def.start = start;
	return world_target_put(w, &def);
}

static struct worker *work(struct store_world *w, const char *target, int64_t version)
{
	struct worker *k = worker_new(w, "k", target);

	k->version = version;
	worker_lease(k);
	worker_take(k, 0);
	return k;
}

/* ---- settling ------------------------------------------------------------------------------ */

/* Three messages of a key: the one that is settled, one before it and one behind it. */
struct settled {
	struct store_world *w;
	const struct settlement_case *c;
	struct worker *k;
	const char *target;
	int64_t before, seq, behind;
	outbox_time now; /* when it is settled */
};

static outbox_time at(const struct settled *s, int seconds)
{
	return seconds == NONE ? 0 : s->now + seconds * SEC;
}

/* Until the claim in flight has it; others are delivered. Its place in the claim. */
static size_t claim_until(struct settled *s, size_t max)
{
	for (int tries = 0; tries < 5; tries++) {
		worker_advance(s->k, max);
		for (size_t i = 0; i < s->k->claim.count; i++) {
			if (s->k->claim.items[i].seq == s->seq)
				return i;
		}
	}
	fail_msg("%s: it is not claimed", s->c->name);
	return 0;
}

static void make_detour(struct settled *s)
{
	const struct settlement_case *c = s->c;
	struct worker *k = s->k;

	worker_advance(k, MANY);
	assert_claim(k, 3, s->before, s->seq, s->behind);
	settle_wait(k, 0, 60 * SEC);
	k->settled[1] = (struct outbox_settlement){ .seq = s->seq,
						    .outcome = c->first.outcome,
						    .attempts = c->first.attempts,
						    .delay = c->first.delay * SEC,
						    .due_at = at(s, c->first.due),
						    .suspect = c->first.suspect,
						    .error = c->first.error };
	settle_park(k, 2);
	worker_advance(k, 0);
}

static void settle_given(struct settled *s, size_t place)
{
	const struct settlement_case *c = s->c;
	struct worker *k = s->k;

	if (place > 0 && c->given.outcome == OUTBOX_OUT_PARKED)
		settle_wait(k, 0, 3600 * SEC); /* that is what it waits for */
	k->settled[place] = (struct outbox_settlement){ .seq = s->seq,
							.outcome = c->given.outcome,
							.attempts = c->given.attempts,
							.delay = c->given.delay * SEC,
							.due_at = at(s, c->given.due),
							.suspect = c->given.suspect,
							.error = c->given.error };
	worker_advance(k, 0);
}

static void check_row(struct settled *s)
{
	const struct outbox_delivery *row = world_row(s->w, s->target, s->seq);
	const struct settlement_case *c = s->c;

	if (row->state != c->then.state || row->why != c->then.why ||
	    row->attempts != c->then.attempts ||
	    row->next_attempt_at != at(s, c->then.next_attempt) || !row->error != !c->then.error ||
	    (row->error && strcmp(row->error, c->then.error) != 0))
		fail_msg("%s: state %d, why %d, attempts %d, next attempt after %lld, error %s",
			 c->name, row->state, row->why, row->attempts,
			 (long long)(row->next_attempt_at - s->now),
			 row->error ? row->error : "none");
}

static void check_item(struct settled *s, size_t place)
{
	const struct outbox_claimed *item = &s->k->claim.items[place];
	const struct settlement_case *c = s->c;

	if (!item->detour || item->suspect != c->then.suspect ||
	    item->failing_since != at(s, c->then.failing_since) ||
	    item->ready_at != at(s, c->then.ready))
		fail_msg("%s: suspect %d, failing since %lld, ready at %lld", c->name,
			 item->suspect, (long long)(item->failing_since - s->now),
			 (long long)(item->ready_at - s->now));
}

/* What only the next claims tell: whether the one behind it may go, and the rest of its row. */
static void check_claims(struct settled *s)
{
	const struct settlement_case *c = s->c;
	int64_t next = worker_advance(s->k, 1) ? s->k->claim.items[0].seq : 0;

	if (c->first.outcome && c->given.outcome != OUTBOX_OUT_PARKED &&
	    (next == s->behind) != c->then.frees_key)
		fail_msg("%s: the one behind it", c->name);
	if (c->then.state != OUTBOX_PENDING || c->then.next_attempt == NONE)
		return;
	world_step(s->w, c->then.next_attempt * SEC);
	check_item(s, next == s->seq ? 0 : claim_until(s, 1));
}

static void every_settlement_has_its_effect(struct store_world *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(settlement_cases); i++) {
		const struct settlement_case *c = &settlement_cases[i];
		char name[16], key[16];
		struct settled s = { .w = w, .c = c, .target = name };

		snprintf(name, sizeof(name), "s%zu", i);
		snprintf(key, sizeof(key), "key-%zu", i);
		s.now = world_now(w) + (c->first.outcome ? 60 * SEC : 0);
		s.k = work(w, name, put_target(w, name, name, OUTBOX_START_OLDEST));
		s.before = publish(w, name, key, NULL);
		s.seq = publish(w, name, key, NULL);
		s.behind = publish(w, name, key, NULL);
		if (c->first.outcome) {
			make_detour(&s);
			world_step(w, 60 * SEC);
		}
		settle_given(&s, claim_until(&s, c->first.outcome ? 2 : 3));
		check_row(&s);
		check_claims(&s);
	}
}

/* ---- taking over --------------------------------------------------------------------------- */

static void settle_all(struct worker *k, enum caution_step_kind kind)
{
	for (size_t i = 0; i < k->claim.count; i++) {
		if (kind == RETURN)
			settle_return(k, i);
		else if (kind == WAIT)
			settle_wait(k, i, 0);
		else if (kind == SUSPICION)
			settle_suspect(k, i, 0);
	}
}

static void live(struct worker *k, const struct caution_case *c, int64_t first)
{
	for (const struct caution_step *s = c->steps; s->kind; s++) {
		int64_t suspect = s->suspect ? first + s->suspect - 1 : 0;
		bool same;

		if (s->kind == DIE) {
			worker_restart(k);
			same = k->head.takeovers == s->n && k->head.cautious == s->cautious &&
			       k->head.suspect_seq == suspect;
		} else {
			settle_all(k, s->kind);
			worker_advance(k, (size_t)s->max);
			same = k->claim.count == (size_t)s->n && k->claim.cautious == s->cautious;
		}
		if (!same)
			fail_msg("%s: step %zu: %zu claimed, %d take-overs, cautious %d, suspect %lld",
				 c->name, (size_t)(s - c->steps) + 1, k->claim.count,
				 k->head.takeovers,
				 s->kind == DIE ? k->head.cautious : k->claim.cautious,
				 (long long)k->head.suspect_seq);
	}
}

static void every_take_over_is_as_cautious(struct store_world *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(caution_table); i++) {
		int64_t first = 0;
		char name[16];

		snprintf(name, sizeof(name), "c%zu", i);
		for (int n = 0; n < 20; n++)
			first = publish(w, name, NULL, NULL) - n;
		live(work(w, name, put_target(w, name, name, OUTBOX_START_OLDEST)),
		     &caution_table[i], first);
	}
}

/* ---- retention ----------------------------------------------------------------------------- */

/* One target of a case. */
struct holder {
	char name[32];
	enum stand stand;
	enum age age;
	int64_t version;
};

static bool is_routed(const struct holder *h)
{
	return h->stand != UNROUTED && h->stand != PASSED;
}

static void hold(struct store_world *w, struct holder *h, const char *type, int64_t seq)
{
	struct worker *k;

	switch (h->stand) {
	case BEFORE:
		h->version = put_target(w, h->name, type, OUTBOX_START_NOW);
		return;
	case DISCARDED:
		world_act(w, OUTBOX_DISCARD, h->name, seq);
		return;
	case PASSED: /* a lane moves when it has something to do */
		publish(w, "other", NULL, NULL);
		break;
	case IN_FLIGHT:
	case WAITS:
	case STRAIGHT:
	case DELIVERED:
	case FAILED:
		break;
	default:
		return;
	}
	k = work(w, h->name, h->version);
	assert_int_equal(worker_advance(k, 1), 1);
	if (h->stand == IN_FLIGHT)
		return;
	if (h->stand == WAITS)
		settle_wait(k, 0, 3600 * SEC);
	else if (h->stand == DELIVERED)
		settle_wait(k, 0, 0);
	else if (h->stand == FAILED)
		settle_fail(k, 0);
	if (worker_advance(k, h->stand == DELIVERED))
		worker_advance(k, 0);
}

static bool is_there(struct store_world *w, const char *id)
{
	struct outbox_claimed message;
	int r = store_get(w->store, id, w->arena, &message, &w->err);

	if (r != OUTBOX_ENOTFOUND)
		OK(r);
	return r == OUTBOX_OK;
}

/* Targets, the message, those that begin later, and what became of it at each. Its id is its type. */
static size_t set_scene(struct store_world *w, const struct retention_case *c, const char *type,
			struct holder holders[2])
{
	int64_t seq = 0;
	size_t n = 0;

	for (; n < 2 && c->targets[n].stand; n++) {
		struct holder *h = &holders[n];

		*h = (struct holder){ .stand = c->targets[n].stand, .age = c->targets[n].age };
		snprintf(h->name, sizeof(h->name), "%s-%zu", type, n);
		if (h->stand != BEFORE)
			h->version = put_target(w, h->name, is_routed(h) ? type : "other",
						OUTBOX_START_OLDEST);
	}
	for (enum age age = LONG_AGO; age <= JUST_NOW; age++) {
		if (c->published == age)
			seq = publish(w, type, NULL, type);
		world_step(w, SEC);
		for (size_t i = 0; i < n; i++) {
			if (holders[i].age == age)
				hold(w, &holders[i], type, seq);
		}
		world_step(w, age == LONG_AGO ? 60 * SEC : SEC);
	}
	return n;
}

static void purge_case(struct store_world *w, const struct retention_case *c, const char *type)
{
	struct outbox_purge purge = { 0 };
	struct holder holders[2];
	size_t n = set_scene(w, c, type, holders);

	if (c->delivered)
		purge.delivered_before = world_now(w) - 30 * SEC;
	if (c->failed)
		purge.failed_before = world_now(w) - 30 * SEC;
	world_purge(w, &purge);
	if (is_there(w, type) == c->goes)
		fail_msg("%s: it %s", c->name, c->goes ? "stays" : "is gone");
	world_step(w, 60 * SEC);
	for (size_t i = 0; i < n; i++)
		OK(store_target_drop(w->store, holders[i].name, "anna", "done", &w->err));
}

static void a_purge_takes_what_it_may(struct store_world *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(retention_cases); i++) {
		char type[16];

		snprintf(type, sizeof(type), "r%zu", i);
		purge_case(w, &retention_cases[i], type);
	}
}

const struct store_case rules_cases[] = {
	{ "every_settlement_has_its_effect", every_settlement_has_its_effect, 0, 0 },
	{ "every_take_over_is_as_cautious", every_take_over_is_as_cautious, 0, 0 },
	{ "a_purge_takes_what_it_may", a_purge_takes_what_it_may, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
