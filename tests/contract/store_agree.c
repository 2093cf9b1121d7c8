/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reference and another store are given the same random calls and must give the same answers:
 * the same claims, in the same order, and the same picture of every delivery. Whatever the cases of
 * the contract forgot, a difference shows here. A failure prints its seed and step; run it again with
 *
 *     store_agree [FIRST-SEED [SEEDS [STEPS]]]
 *
 * Out of the comparison: caution (both keep it, not both for equally long) and the times and owners of
 * deliveries that are not finished.
 */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>
#include <stdlib.h>

#define SIDES 2
#define TARGETS 2
#define LANES 2

static const char *const target_names[TARGETS] = { "free", "held" };
static const char *const keys[] = { NULL, "x", "y", "z", "w" };

struct pair {
	struct store_world *w[SIDES];
	struct worker *k[SIDES][TARGETS][LANES];
	bool crashed[TARGETS][LANES]; /* nothing settled since: no second crash, that would be caution */
	bool paused[TARGETS];
	bool purging; /* then nothing is done to unread messages: see do_purge() */
	struct random_state random;
	int64_t messages; /* published so far */
	const char *doing;
};

static int64_t draw(struct pair *p, int64_t below)
{
	return random_between(&p->random.base, 0, below - 1);
}

static struct worker *start_worker(struct store_world *w, const char *target, int lane)
{
	struct worker *k = worker_new(w, "k", target);

	worker_lease(k);
	assert_int_equal(k->lease.count, LANES);
	worker_take(k, lane);
	return k;
}

static void pair_start(struct pair *p, const struct store_fixture *const *fixtures, uint64_t seed)
{
	random_init(&p->random, seed);
	p->purging = seed % 2;
	for (int side = 0; side < SIDES; side++) {
		p->w[side] = world_new(fixtures[side], LANES);
		for (int t = 0; t < TARGETS; t++) {
			struct outbox_target_def def = target_def(target_names[t]);

			def.hold = t == 1;
			world_target_put(p->w[side], &def);
			for (int lane = 0; lane < LANES; lane++)
				p->k[side][t][lane] =
					start_worker(p->w[side], target_names[t], lane);
		}
	}
}

static void do_publish(struct pair *p)
{
	int64_t n = 1 + draw(p, 4);

	for (; n > 0; n--) {
		const char *key = keys[draw(p, (int64_t)ARRAY_SIZE(keys))];
		struct outbox_message m = OUTBOX_MESSAGE_INIT;
		char id[32], data[64];
		int64_t seqs[SIDES];

		snprintf(id, sizeof(id), "m-%lld", (long long)++p->messages);
		memset(data, 'd', sizeof(data));
		m.type = "t";
		m.key = key;
		m.id = id;
		m.content_type = "text/plain";
		m.data = data;
		m.size = (size_t)draw(p, 64);
		for (int side = 0; side < SIDES; side++)
			seqs[side] = world_publish_message(p->w[side], &m);
		assert_int_equal(seqs[0], seqs[1]);
	}
}

static void compare_claims(const struct worker *a, const struct worker *b)
{
	const struct outbox_claim *x = &a->claim, *y = &b->claim;

	assert_int_equal(x->count, y->count);
	assert_int_equal(x->paused, y->paused);
	assert_int_equal(x->next_due, y->next_due);
	assert_int_equal(x->store_now, y->store_now);
	for (size_t i = 0; i < x->count; i++) {
		const struct outbox_claimed *c = &x->items[i], *d = &y->items[i];

		assert_int_equal(c->seq, d->seq);
		assert_int_equal(c->attempts, d->attempts);
		assert_int_equal(c->failing_since, d->failing_since);
		assert_int_equal(c->ready_at, d->ready_at);
		assert_int_equal(c->detour, d->detour);
		assert_int_equal(c->blocked, d->blocked);
		assert_int_equal(c->suspect, d->suspect);
		assert_int_equal(c->message.size, d->message.size);
		assert_string_equal(c->message.id, d->message.id);
	}
}

/* A store that reads by windows ends a claim at the end of its window, which the reference has not. Where
 * every claim takes all there is and nothing goes back to the log, a window is as long as a claim. */
static bool has_windows(void)
{
	return FIXTURE.has & STORE_LATE_COMMITS;
}

/* One outcome for both; behind one of its key that did not go through a message is not sent. */
static void choose(struct pair *p, struct worker *const *k, size_t i, bool held_back)
{
	outbox_time delay = draw(p, 6) * SEC, due = world_now(p->w[0]) + draw(p, 10) * SEC;
	int64_t kind = draw(p, 20);

	for (int side = 0; side < SIDES; side++) {
		if (k[side]->claim.items[i].blocked || (held_back && (kind < 12 || has_windows())))
			settle_park(k[side], i);
		else if (!has_windows() && (held_back || kind < 2))
			settle_return(k[side], i);
		else if (kind < 5)
			settle_wait(k[side], i, delay);
		else if (!has_windows() && kind < 6) /* a suspect ends a claim, too */
			settle_suspect(k[side], i, delay);
		else if (kind < 8)
			settle_fail(k[side], i);
		else if (kind < 9)
			settle_defer(k[side], i, due);
	}
}

static bool went_through(int outcome)
{
	return outcome == OUTBOX_OUT_DELIVERED || outcome == OUTBOX_OUT_DEFERRED;
}

static bool is_held_back(const struct worker *k, size_t i)
{
	const char *key = k->claim.items[i].message.key;

	for (size_t j = 0; key && j < i; j++) {
		const char *before = k->claim.items[j].message.key;

		if (before && !strcmp(before, key) && !went_through(k->settled[j].outcome))
			return true;
	}
	return false;
}

/* Which of several due detours come first when not all fit is the store's own choice. */
static bool has_detours(struct pair *p, const char *target)
{
	const struct outbox_target_stats *stats = world_stats(p->w[0], target);

	return stats->waiting + stats->deferred + stats->parked + stats->sending > 0;
}

static void do_advance(struct pair *p)
{
	int t = (int)draw(p, TARGETS), lane = (int)draw(p, LANES);
	struct worker *k[SIDES] = { p->k[0][t][lane], p->k[1][t][lane] };
	size_t max = (size_t)draw(p, 7), bytes = (size_t)draw(p, 200);
	int64_t n[SIDES] = { k[0]->n, k[1]->n };

	if (max && (has_windows() || has_detours(p, target_names[t]))) {
		max = MANY;
		bytes = BYTES;
	}
	for (size_t i = 0; i < k[0]->claim.count; i++)
		choose(p, k, i, is_held_back(k[0], i));
	if (k[0]->claim.count)
		p->crashed[t][lane] = false;
	for (int side = 0; side < SIDES; side++) {
		struct store_world *w = p->w[side];
		int status = worker_try_advance(k[side], max, bytes);

		w->err = k[side]->err;
		OK(status);
	}
	assert_int_equal(k[0]->n - n[0], k[1]->n - n[1]);
	compare_claims(k[0], k[1]);
	if (draw(p, 6))
		return;
	for (int side = 0; side < SIDES; side++) { /* the reply was lost */
		struct store_world *w = p->w[side];

		if (k[side]->n > n[side])
			OK(worker_repeat(k[side]));
	}
	compare_claims(k[0], k[1]);
}

static void do_crash(struct pair *p)
{
	int t = (int)draw(p, TARGETS), lane = (int)draw(p, LANES);
	struct worker *k[SIDES] = { p->k[0][t][lane], p->k[1][t][lane] };

	if (p->crashed[t][lane])
		return;
	p->crashed[t][lane] = true;
	for (int side = 0; side < SIDES; side++)
		worker_restart(k[side]);
	assert_int_equal(k[0]->head.takeovers, k[1]->head.takeovers);
	assert_int_equal(k[0]->head.suspect_seq, k[1]->head.suspect_seq);
	assert_false(k[0]->head.cautious);
}

static void do_act(struct pair *p)
{
	char id[32];
	const char *ids[] = { id };
	struct outbox_filter filter = filter_of(target_names[draw(p, TARGETS)]);
	struct outbox_act act = { .action = (int)(1 + draw(p, 3)),
				  .actor = "anna",
				  .reason = "because",
				  .filter = &filter };
	struct outbox_acted acted[SIDES];

	act.until = world_now(p->w[0]) + draw(p, 20) * SEC;
	if (!p->purging && draw(p, 3)) {
		snprintf(id, sizeof(id), "m-%lld", 1 + (long long)draw(p, p->messages + 1));
		filter.ids = ids;
		filter.n_ids = 1;
	} else {
		filter.key = keys[1 + draw(p, (int64_t)ARRAY_SIZE(keys) - 1)];
		filter.limit = (size_t)(1 + draw(p, 3));
		filter.why = p->purging ? (int)draw(p, 3) + OUTBOX_WAITING : 0;
	}
	if (p->purging && !draw(p, 3)) {
		filter.why = 0;
		filter.state = OUTBOX_FAILED;
	}
	for (int side = 0; side < SIDES; side++) {
		/* Leases are renewed before, so that what is in flight is refused by both. */
		for (int t = 0; t < TARGETS; t++)
			worker_lease(p->k[side][t][0]);
		acted[side] = world_act_filter(p->w[side], &act);
	}
	assert_int_equal(acted[0].done, acted[1].done);
	assert_int_equal(acted[0].refused, acted[1].refused);
	assert_int_equal(acted[0].more, acted[1].more);
	assert_int_equal(acted[0].oldest, acted[1].oldest);
}

/* What was discarded or deferred ahead of its lane may go at once or when the lane has passed it. */
static void do_purge(struct pair *p)
{
	outbox_time now = world_now(p->w[0]);
	struct outbox_purge purge = { .delivered_before = now - draw(p, 30) * SEC - OUTBOX_MINUTES,
				      .limit = (size_t)(1 + draw(p, 10)) };
	struct outbox_purged purged[SIDES];

	if (!p->purging)
		return;
	if (!draw(p, 3))
		purge.failed_before = now - draw(p, 60) * SEC;
	for (int side = 0; side < SIDES; side++)
		purged[side] = world_purge(p->w[side], &purge);
	assert_int_equal(purged[0].messages, purged[1].messages);
	assert_int_equal(purged[0].failed, purged[1].failed);
}

static void do_pause(struct pair *p)
{
	int t = (int)draw(p, TARGETS);

	p->paused[t] = !p->paused[t] && !draw(p, 3);
	for (int side = 0; side < SIDES; side++) {
		struct store_world *w = p->w[side];

		OK(store_target_pause(w->store, target_names[t], p->paused[t], "anna", "why",
				      &w->err));
	}
}

static void do_time(struct pair *p)
{
	outbox_time step = draw(p, 8) * (draw(p, 4) ? SEC / 2 : 7 * SEC);

	for (int side = 0; side < SIDES; side++)
		world_step(p->w[side], step);
}

static const struct {
	const char *name;
	void (*run)(struct pair *p);
	int weight;
} steps[] = {
	{ "publish", do_publish, 6 }, { "advance", do_advance, 14 }, { "crash", do_crash, 1 },
	{ "act", do_act, 2 },         { "purge", do_purge, 1 },      { "pause", do_pause, 1 },
	{ "time", do_time, 5 },
};

static void one_step(struct pair *p)
{
	int64_t choice = draw(p, 30);
	size_t i = 0;

	while (choice >= steps[i].weight)
		choice -= steps[i++].weight;
	p->doing = steps[i].name;
	steps[i].run(p);
	p->doing = "looking";
	compare_outlines(world_outline(p->w[0]), world_outline(p->w[1]));
}

static uint64_t first_seed = 1, seeds = 12, n_steps = 150;
static uint64_t now_seed, now_step;
static struct pair current;

static void they_agree(void **state)
{
	const struct store_fixture *const fixtures[] = { &memory_store_fixture, &FIXTURE };

	(void)state;
	for (now_seed = first_seed; now_seed < first_seed + seeds; now_seed++) {
		current = (struct pair){ 0 };
		pair_start(&current, fixtures, now_seed);
		for (now_step = 0; now_step < n_steps; now_step++)
			one_step(&current);
		for (int side = 0; side < SIDES; side++) {
			world_free(current.w[side]);
			current.w[side] = NULL;
		}
	}
}

static int clean_up(void **state)
{
	(void)state;
	for (int side = 0; side < SIDES; side++) {
		if (!current.w[side])
			continue;
		print_error("seed %llu, step %llu, %s\n", (unsigned long long)now_seed,
			    (unsigned long long)now_step, current.doing ? current.doing : "start");
		world_free(current.w[side]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(they_agree, clean_up) };
	uint64_t *const numbers[] = { &first_seed, &seeds, &n_steps };

	for (int i = 1; i < argc && i <= 3; i++)
		*numbers[i - 1] = strtoull(argv[i], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
