/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bands of priority: as a condition of a route, and as a family of targets that is switched on and off while
 * relays are at work. What must hold: every message is delivered by one target of the family, whatever anybody
 * had in flight, and however often it is switched.
 */

#include "store/store.h"
#include "store_world.h"

static int64_t publish(struct store_world *w, int priority)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "x";
	m.priority = priority;
	return world_publish_message(w, &m);
}

static struct outbox_target_def banded(const char *name, unsigned bands, const char *family)
{
	struct outbox_target_def def = target_def(name);

	def.route.bands = bands;
	def.band_of = family;
	def.start = OUTBOX_START_UNSET;
	return def;
}

/* As a relay with `bands: true` registers a target. */
static void switch_on(struct store_world *w)
{
	struct outbox_target_def def = banded("a", OUTBOX_BAND_NORMAL, "a");

	world_target_put(w, &def);
	def = banded("a-high", OUTBOX_BAND_HIGH, "a");
	world_target_put(w, &def);
	def = banded("a-low", OUTBOX_BAND_LOW, "a");
	world_target_put(w, &def);
}

static void switch_off(struct store_world *w)
{
	struct outbox_target_def def = banded("a", 0, NULL);

	world_target_put(w, &def);
}

/* The version that a relay would have after its registration. */
static int64_t put_again(struct store_world *w, const char *name, unsigned bands, const char *family)
{
	struct outbox_target_def def = banded(name, bands, family);

	return world_target_put(w, &def);
}

static struct worker *start(struct store_world *w, const char *owner, const char *target,
			    int64_t version)
{
	struct worker *k = worker_new(w, owner, target);

	k->version = version;
	worker_lease(k);
	assert_false(k->lease.stale_route);
	worker_take(k, 0);
	return k;
}

static void a_route_asks_for_bands(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	int64_t high, low, normal, version;
	struct worker *k;

	def.route.bands = OUTBOX_BAND_HIGH | OUTBOX_BAND_LOW;
	version = world_target_put(w, &def);
	assert_int_equal(world_target_put(w, &def), version);
	def = target_def("b");
	def.route.bands = OUTBOX_BAND_NORMAL;
	world_target_put(w, &def);
	high = publish(w, 1);
	normal = publish(w, 0);
	low = publish(w, -100);
	assert_int_equal(world_stats(w, "a")->pending, 2);
	assert_int_equal(world_stats(w, "b")->pending, 1);
	assert_null(world_find(w, "a", normal));
	assert_null(world_find(w, "b", low));
	assert_state(w, "a", low, OUTBOX_PENDING, OUTBOX_NEW);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_claim(k, 1, high);
	assert_state(w, "a", high, OUTBOX_SENDING, 0);
	assert_drains(k, 2, high, low);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, normal);
	assert_state(w, "a", low, OUTBOX_DELIVERED, 0);
	assert_null(world_find(w, "a", normal));
	assert_null(world_find(w, "b", high));
	/* another band: another version, and what is unread is routed by it */
	normal = publish(w, 0);
	def = target_def("a");
	assert_int_equal(world_target_put(w, &def), version + 1);
	assert_state(w, "a", normal, OUTBOX_PENDING, OUTBOX_NEW);
}

static void a_new_family_splits_the_whole_log(struct store_world *w)
{
	int64_t high = publish(w, 5), normal = publish(w, 0), low = publish(w, -5);
	struct worker *k;

	switch_on(w);
	assert_drains(worker_start(w, "k", "a-high", 0), 1, high);
	assert_drains(worker_start(w, "k", "a-low", 0), 1, low);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, normal);
	normal = publish(w, 0);
	assert_drains(k, 1, normal);
}

/* What has a place in the log when bands come is the old target's: also what a relay has in flight then. */
static void switching_on_loses_nothing_and_repeats_nothing(struct store_world *w)
{
	int64_t s, high, low, normal;
	struct worker *old, *k;

	world_target(w, "a");
	s = publish(w, 1);
	publish(w, -1);
	publish(w, 1);
	publish(w, 0);
	publish(w, -1);
	old = worker_start(w, "old", "a", 0);
	worker_advance(old, 3);
	assert_claim(old, 3, s, s + 1, s + 2);
	settle_wait(old, 1, 60 * SEC);
	settle_return(old, 2); /* goes back to the log, and is high */
	switch_on(w);
	high = publish(w, 1);
	low = publish(w, -1);
	normal = publish(w, 0);
	worker_advance(old, 3);
	assert_true(old->claim.stale_route);
	assert_state(w, "a", s + 2, OUTBOX_PENDING, OUTBOX_NEW);
	assert_null(world_find(w, "a-high", s + 2));
	OK(store_release(w->store, "a", 0, "old", &w->err));

	k = start(w, "k", "a", put_again(w, "a", OUTBOX_BAND_NORMAL, "a"));
	assert_drains(k, 4, s + 2, s + 3, s + 4, normal);
	assert_drains(worker_start(w, "k", "a-high", 0), 1, high);
	assert_drains(worker_start(w, "k", "a-low", 0), 1, low);
	world_step(w, 61 * SEC);
	assert_drains(k, 1, s + 1);
	assert_null(world_find(w, "a", high));
	assert_null(world_find(w, "a-high", s));
}

/* Registered in three calls: who dies between two of them leaves nothing behind that somebody skips. */
static void a_family_may_be_completed_later(struct store_world *w)
{
	struct outbox_target_def def = banded("a", OUTBOX_BAND_NORMAL, "a");
	int64_t before = publish(w, 1), between, after;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, before);
	world_target_put(w, &def);
	between = publish(w, 1);
	world_step(w, 60 * SEC);
	switch_on(w);
	after = publish(w, 1);
	assert_drains(worker_start(w, "k", "a-high", 0), 2, between, after);
	assert_null(world_find(w, "a-high", before));
}

/* Of a family that starts now the second band gets what was published after the first one was there. */
static void start_family_now(struct store_world *w)
{
	struct outbox_target_def def = banded("a", OUTBOX_BAND_NORMAL, "a");
	int64_t high;

	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	high = publish(w, 1);
	def = banded("a-high", OUTBOX_BAND_HIGH, "a");
	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	assert_drains(worker_start(w, "k", "a-high", 0), 1, high);
}

static void a_family_that_starts_now_starts_together(struct store_world *w)
{
	publish(w, 1);
	publish(w, 0);
	start_family_now(w);
	assert_int_equal(world_stats(w, "a")->pending, 0);
}

static void a_family_that_starts_now_on_an_empty_log(struct store_world *w)
{
	start_family_now(w);
}

static void switching_off_loses_nothing_and_repeats_nothing(struct store_world *w)
{
	int64_t first, low, high, normal, next;
	struct worker *a, *h, *l;
	unsigned bands;

	switch_on(w);
	first = publish(w, 1);
	low = publish(w, -1);
	normal = publish(w, 0);
	h = worker_start(w, "k", "a-high", 0);
	l = worker_start(w, "k", "a-low", 0);
	a = worker_start(w, "k", "a", 0);
	assert_drains(h, 1, first); /* ahead of the others */
	worker_advance(l, 1);
	assert_claim(l, 1, low); /* in flight */
	high = publish(w, 1);
	switch_off(w);
	next = publish(w, 1);
	settle_return(l, 0);
	worker_advance(l, 1);
	assert_true(l->claim.stale_route);
	worker_advance(a, 1);
	assert_true(a->claim.stale_route);
	OK(store_bands(w->store, "a", &bands, &w->err));
	assert_int_equal(bands, OUTBOX_BAND_HIGH | OUTBOX_BAND_LOW);

	a->version = put_again(w, "a", 0, NULL);
	assert_drains(a, 2, normal, next);
	h->version = put_again(w, "a-high", OUTBOX_BAND_NONE, "a");
	assert_drains(h, 1, high);
	l->version = put_again(w, "a-low", OUTBOX_BAND_NONE, "a");
	assert_drains(l, 1, low);
	assert_null(world_find(w, "a", high));
	assert_null(world_find(w, "a-high", next));
	assert_int_equal(put_again(w, "a-low", OUTBOX_BAND_NONE, "a"), l->version);

	/* and on again */
	low = publish(w, -1);
	switch_on(w);
	next = publish(w, -1);
	a->version = put_again(w, "a", OUTBOX_BAND_NORMAL, "a");
	l->version = put_again(w, "a-low", OUTBOX_BAND_LOW, "a");
	assert_drains(a, 1, low);
	assert_drains(l, 1, next);
}

/* Nobody reads in between: each message is still with the target that it was published for. */
static void switching_often_loses_nothing(struct store_world *w)
{
	int64_t s[6];
	struct worker *k;

	world_target(w, "a");
	s[0] = publish(w, 1);
	switch_on(w);
	s[1] = publish(w, 1);
	switch_off(w);
	s[2] = publish(w, 1);
	switch_on(w);
	switch_off(w);
	switch_on(w);
	s[3] = publish(w, 1);
	switch_off(w);
	s[4] = publish(w, 1);
	s[5] = publish(w, 0);
	k = start(w, "k", "a", put_again(w, "a", 0, NULL));
	assert_drains(k, 4, s[0], s[2], s[4], s[5]);
	k = start(w, "k", "a-high", put_again(w, "a-high", OUTBOX_BAND_NONE, "a"));
	assert_drains(k, 2, s[1], s[3]);
	assert_int_equal(world_stats(w, "a-low")->pending, 0);
	assert_null(world_find(w, "a", s[1]));
	assert_null(world_find(w, "a-high", s[2]));
	assert_state(w, "a-high", s[3], OUTBOX_DELIVERED, 0);
}

static void names_of_bands_are_nobody_elses(struct store_world *w)
{
	struct outbox_target_def def = banded("a-high", OUTBOX_BAND_HIGH, "a");
	int64_t version;
	unsigned bands = 7;

	assert_int_equal(store_target_put(w->store, &def, &version, &w->err),
			 OUTBOX_ECONFIG); /* the family's first one is not there */
	world_target(w, "a-high");
	world_target(w, "a");
	OK(store_bands(w->store, "a", &bands, &w->err));
	assert_int_equal(bands, 0);
	def = banded("a", OUTBOX_BAND_NORMAL, "a");
	world_target_put(w, &def);
	def = banded("a-high", OUTBOX_BAND_HIGH, "a");
	assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ECONFIG);
	assert_non_null(strstr(w->err.message, "rename"));
	def = banded("a-low", OUTBOX_BAND_LOW, "a");
	world_target_put(w, &def);
	def = target_def("a-low");
	assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ECONFIG);
	assert_non_null(strstr(w->err.message, "band of target \"a\""));
	OK(store_bands(w->store, "a", &bands, &w->err));
	assert_int_equal(bands, OUTBOX_BAND_LOW);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case bands_cases[] = {
	CASE(a_route_asks_for_bands),
	CASE(a_new_family_splits_the_whole_log),
	CASE(switching_on_loses_nothing_and_repeats_nothing),
	CASE(a_family_may_be_completed_later),
	CASE(a_family_that_starts_now_starts_together),
	CASE(a_family_that_starts_now_on_an_empty_log),
	CASE(switching_off_loses_nothing_and_repeats_nothing),
	CASE(switching_often_loses_nothing),
	CASE(names_of_bands_are_nobody_elses),
	{ NULL, NULL, 0, 0 },
};
