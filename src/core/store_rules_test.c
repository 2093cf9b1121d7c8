/* SPDX-License-Identifier: Apache-2.0 */

/* What stores derive, against the cases that the contract suite asks every store for. */

#include "base/unit_test.h"

#include "base/cleanup.h"
#include "core/caution.h"
#include "core/retention.h"
#include "core/settlement.h"

#include "caution_cases.h"
#include "retention_cases.h"
#include "settlement_cases.h"

#include <string.h>

#define BASE (1000000 * OUTBOX_SECONDS)

/* ---- settling ------------------------------------------------------------------------------ */

static outbox_time at(int seconds)
{
	return seconds == NONE ? 0 : BASE + seconds * OUTBOX_SECONDS;
}

static struct settlement_effect apply(const struct settlement_case *c)
{
	struct outbox_settlement first = { .outcome = c->first.outcome,
					   .attempts = c->first.attempts,
					   .delay = c->first.delay * OUTBOX_SECONDS,
					   .due_at = at(c->first.due),
					   .suspect = c->first.suspect,
					   .error = c->first.error };
	struct outbox_settlement given = { .outcome = c->given.outcome,
					   .attempts = c->given.attempts,
					   .delay = c->given.delay * OUTBOX_SECONDS,
					   .due_at = at(c->given.due),
					   .suspect = c->given.suspect,
					   .error = c->given.error };
	struct settlement_effect before = { 0 }, effect = { 0 };

	if (first.outcome) {
		assert_ok(settlement_apply(NULL, &first, at(FIRST_AT), &before, err));
		before.detour.state = OUTBOX_SENDING;
	}
	assert_ok(settlement_apply(first.outcome ? &before.detour : NULL, &given, at(NOW), &effect,
				   err));
	if (!effect.error)
		effect.error = before.error;
	return effect;
}

static void the_settlement_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(settlement_cases); i++) {
		const struct settlement_case *c = &settlement_cases[i];
		struct settlement_effect got = apply(c);

		if (got.covered != c->then.covered || got.settles != c->then.settles ||
		    got.frees_key != c->then.frees_key || got.detour.state != c->then.state ||
		    got.detour.why != c->then.why || got.detour.attempts != c->then.attempts ||
		    got.detour.suspect != c->then.suspect ||
		    got.detour.next_attempt_at != at(c->then.next_attempt) ||
		    got.detour.failing_since != at(c->then.failing_since) ||
		    got.detour.ready_at != at(c->then.ready) || !got.error != !c->then.error ||
		    (got.error && strcmp(got.error, c->then.error) != 0))
			fail_msg("%s", c->name);
	}
}

static void an_unknown_outcome_is_refused(void **state)
{
	struct outbox_settlement s = { .seq = 7, .outcome = 9 };
	struct settlement_effect effect;

	(void)state;
	assert_fails(settlement_apply(NULL, &s, BASE, &effect, err), OUTBOX_EINVAL,
		     "message 7: outcome 9 is unknown");
}

static void receipts_count_what_was_settled(void **state)
{
	struct settlement_counts c = { 0 };

	(void)state;
	for (int outcome = OUTBOX_OUT_DELIVERED; outcome <= OUTBOX_OUT_FAILED; outcome++) {
		for (int n = 0; n < outcome; n++)
			settlement_count(&c, outcome);
	}
	assert_true(c.delivered == 1 && c.retried == 3 && c.deferred == 4 && c.parked == 5 &&
		    c.failed == 6);
	assert_int_equal(settlement_progress(&c), 19);
}

/* ---- taking over --------------------------------------------------------------------------- */

#define LOG 20

/* A lane as small as can be: a log of numbers, some of which are detours. */
struct lane {
	struct caution caution;
	int pos;
	int detour[LOG + 1]; /* 1: one that is due; 2: a suspect, too */
	int claim[LOG], count, detours;
};

static void add_claim(struct lane *lane, int seq)
{
	lane->claim[lane->count++] = seq;
	lane->detours += lane->detour[seq] != 0;
}

static void claim(struct lane *lane, int max)
{
	if (max > 1 && caution_applies(&lane->caution, lane->pos))
		max = 1;
	lane->count = lane->detours = 0;
	for (int seq = 1; seq <= LOG && lane->count < max; seq++) {
		if (!lane->detour[seq] && seq <= lane->pos)
			continue;
		if (lane->detour[seq] == 2 && lane->count)
			return;
		add_claim(lane, seq);
		if (lane->detour[seq] == 2)
			return;
	}
}

static void settle(struct lane *lane, enum caution_step_kind kind)
{
	for (int i = 0; i < lane->count && kind != RETURN; i++) {
		int seq = lane->claim[i];

		lane->detour[seq] = kind == WAIT ? 1 : kind == SUSPICION ? 2 : 0;
		lane->pos = seq > lane->pos ? seq : lane->pos;
	}
	lane->caution = caution_settle(&lane->caution, lane->pos, kind == RETURN ? 0 : lane->count);
}

static void take_over(struct lane *lane)
{
	struct caution_claim left = { .count = lane->count, .detours = lane->detours };

	if (lane->count) {
		left.first = lane->claim[0];
		left.last = lane->claim[lane->count - 1];
		left.first_is_suspect = lane->detour[lane->claim[0]] == 2;
	}
	lane->caution = caution_take_over(&lane->caution, lane->pos, &left);
	lane->count = lane->detours = 0;
}

static void play(const struct caution_case *c)
{
	struct lane lane = { 0 };

	for (const struct caution_step *s = c->steps; s->kind; s++) {
		bool cautious;

		if (s->kind == DIE) {
			take_over(&lane);
		} else {
			settle(&lane, s->kind);
			claim(&lane, s->max);
		}
		cautious = caution_applies(&lane.caution, lane.pos);
		if (cautious != s->cautious ||
		    (s->kind == DIE ? lane.caution.takeovers : lane.count) != s->n ||
		    (s->kind == DIE && lane.caution.suspect_seq != s->suspect))
			fail_msg("%s: step %zu", c->name, (size_t)(s - c->steps) + 1);
	}
}

static void the_lives_of_a_lane(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(caution_table); i++)
		play(&caution_table[i]);
}

/* ---- retention ----------------------------------------------------------------------------- */

#define LIMIT (BASE - 30 * OUTBOX_SECONDS)

static outbox_time time_of(enum age age)
{
	return age == LONG_AGO ? LIMIT - 1 : LIMIT;
}

static struct retention_delivery delivery_of(enum stand stand, enum age age, bool delivered)
{
	static const int states[] = {
		[WAITS] = OUTBOX_PENDING, [DELIVERED] = OUTBOX_DELIVERED, [FAILED] = OUTBOX_FAILED, [DISCARDED] = OUTBOX_DISCARDED
	};
	bool old = delivered && age == LONG_AGO;

	switch (stand) {
	case UNROUTED:
	case BEFORE:
		return (struct retention_delivery){ .wanted = retention_is_wanted(false, false,
										  false) };
	case PASSED:
		return (struct retention_delivery){
			.covered = old, .wanted = retention_is_wanted(true, false, true)
		};
	case UNREAD:
		return (struct retention_delivery){ .wanted = retention_is_wanted(false, false,
										  true) };
	case IN_FLIGHT:
		return (struct retention_delivery){ .wanted = retention_is_wanted(false, true,
										  false) };
	case STRAIGHT:
		return (struct retention_delivery){
			.covered = old, .wanted = retention_is_wanted(true, true, false)
		};
	default:
		return (struct retention_delivery){ .state = states[stand], .at = time_of(age) };
	}
}

static void what_a_purge_may_take(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(retention_cases); i++) {
		const struct retention_case *c = &retention_cases[i];
		struct outbox_purge purge = { .delivered_before = c->delivered ? LIMIT : 0,
					      .failed_before = c->failed ? LIMIT : 0 };
		struct retention retention = { 0 };

		for (size_t t = 0; t < ARRAY_SIZE(c->targets) && c->targets[t].stand; t++) {
			struct retention_delivery d =
				delivery_of(c->targets[t].stand, c->targets[t].age, c->delivered);

			retention_add(&retention, &purge, &d);
		}
		if (retention_is_over(&retention, &purge, time_of(c->published)) != c->goes)
			fail_msg("%s", c->name);
	}
}

static void a_purge_goes_on_where_it_ended(void **state)
{
	struct outbox_purge purge = { .delivered_before = 7 };
	struct retention_progress progress = { 0 };

	(void)state;
	assert_int_equal(retention_go_on(&progress, &purge), 0);
	progress.seen_seq = 40;
	assert_int_equal(retention_go_on(&progress, &purge), 40);
	purge.failed_before = 3; /* another one */
	assert_int_equal(retention_go_on(&progress, &purge), 0);
}

static void the_bounds_of_a_purge(void **state)
{
	static const int64_t only[] = { 3, 5, 8 };
	struct outbox_purge purge = { 0 };

	(void)state;
	assert_int_equal(retention_limit(&purge), 5000);
	assert_true(retention_is_listed(&purge, 4));
	purge = (struct outbox_purge){ .limit = 10, .only = only, .n_only = 3 };
	assert_int_equal(retention_limit(&purge), 10);
	assert_true(retention_is_listed(&purge, 3) && retention_is_listed(&purge, 8));
	assert_false(retention_is_listed(&purge, 4));
	purge.limit = SIZE_MAX;
	assert_int_equal(retention_limit(&purge), 100000);
	purge.n_only = 0; /* none, not all */
	assert_false(retention_is_listed(&purge, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_settlement_table),
		cmocka_unit_test(an_unknown_outcome_is_refused),
		cmocka_unit_test(receipts_count_what_was_settled),
		cmocka_unit_test(the_lives_of_a_lane),
		cmocka_unit_test(what_a_purge_may_take),
		cmocka_unit_test(a_purge_goes_on_where_it_ended),
		cmocka_unit_test(the_bounds_of_a_purge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
