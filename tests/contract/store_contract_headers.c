/* SPDX-License-Identifier: Apache-2.0 */

/* Routes by headers: everywhere where it matters which messages a target gets. */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>

static struct outbox_target_def wants(const char *target, const char *const *headers, size_t n)
{
	struct outbox_target_def def = target_def(target);

	def.route.headers = headers;
	def.route.n_headers = n;
	return def;
}

static const char *const acme[] = { "tenant=acme" };

static struct outbox_message headed(const struct outbox_header *headers, size_t n)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.headers = headers;
	m.n_headers = n;
	return m;
}

/* value NULL: without the header */
static int64_t publish(struct store_world *w, const char *name, const char *value)
{
	const struct outbox_header header = { name, value };
	struct outbox_message m = headed(&header, value != NULL);

	return world_publish_message(w, &m);
}

static int64_t tenant(struct store_world *w, const char *value)
{
	return publish(w, "tenant", value);
}

/* Pending ones are n, and these are the same however one looks. */
static void assert_pending(struct store_world *w, const char *target, int64_t n)
{
	struct outbox_filter filter = filter_of(target);

	filter.state = OUTBOX_PENDING;
	assert_int_equal(world_list(w, &filter).count, n);
	assert_int_equal(world_stats(w, target)->pending, n);
}

static void headers_decide_who_gets_what(struct store_world *w)
{
	static const char *const eu[] = { "Region=eu-*", "region=u?", "tenant=acme" };
	static const struct outbox_header full[] = { { "x", "y" },
						     { "REGION", "us" },
						     { "Tenant", "acme" } };
	struct outbox_target_def def = wants("a", eu, 3);
	struct outbox_message m = headed(full, 3);
	int64_t both, one, plain;
	struct worker *k;

	world_target_put(w, &def);
	def = wants("any", (const char *const[]){ "tenant=*" }, 1);
	world_target_put(w, &def);
	def = wants("orders", acme, 1);
	def.route.types = (const char *const[]){ "order.*" };
	def.route.n_types = 1;
	world_target_put(w, &def);
	plain = world_publish(w, NULL);
	one = tenant(w, "acme");
	tenant(w, "");
	publish(w, "tenant2", "acme");
	publish(w, "region", "eu-1");
	both = world_publish_message(w, &m);
	assert_pending(w, "a", 1);
	assert_pending(w, "any", 3);
	assert_pending(w, "orders", 0);
	assert_null(world_find(w, "a", one));
	assert_null(world_find(w, "any", plain));
	assert_state(w, "a", both, OUTBOX_PENDING, OUTBOX_NEW);
	k = worker_start(w, "k", "any", 0);
	worker_advance(k, 1);
	assert_claim(k, 1, one);
	assert_state(w, "any", one, OUTBOX_SENDING, 0);
	assert_drains(k, 3, one, one + 1, both);
	assert_state(w, "any", one, OUTBOX_DELIVERED, 0);
	assert_null(world_find(w, "any", plain));
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, both);
	assert_pending(w, "a", 0);
	assert_null(world_find(w, "a", one));
	assert_state(w, "a", both, OUTBOX_DELIVERED, 0);
	assert_drains(worker_start(w, "k", "orders", 0), 0);
}

/* Nothing but * and ? means anything, whatever the store makes of names, values and globs. */
static void values_are_taken_as_they_are(struct store_world *w)
{
	static const char *const odd[] = { "a_b=x_%\\y*\xc3\xa9=\"'?" };
	struct outbox_target_def def = wants("a", odd, 1);
	int64_t first, second;

	world_target_put(w, &def);
	first = publish(w, "a_b", "x_%\\y*\xc3\xa9=\"'z");
	publish(w, "aXb", "x_%\\y*\xc3\xa9=\"'z");
	publish(w, "a_b", "xX%\\y*\xc3\xa9=\"'z");
	publish(w, "a_b", "x_X\\y*\xc3\xa9=\"'z");
	publish(w, "a_b", "x_%y*\xc3\xa9=\"'z");
	publish(w, "a_b", "x_%\\y*\xc3\xa9=\"'");
	publish(w, "a_b", "X_%\\y*\xc3\xa9=\"'z");
	second = publish(w, "A_B", "x_%\\y and more\xc3\xa9=\"'\xe2\x82\xac");
	assert_drains(worker_start(w, "k", "a", 0), 2, first, second);
}

static void they_are_a_part_of_the_routing(struct store_world *w)
{
	static const char *const more[] = { "tenant=acme", "tenant=acme", "region=eu" };
	static const char *const same[] = { "region=eu", "tenant=acme" };
	struct outbox_target_def def = wants("a", acme, 1), all = target_def("a");
	int64_t version = world_target_put(w, &def), settled, fresh;
	struct worker *old, *k;

	assert_int_equal(world_target_put(w, &def), version);
	settled = tenant(w, "other");
	old = worker_start(w, "old", "a", 0);
	assert_drains(old, 1, tenant(w, "acme"));
	fresh = tenant(w, "other");
	def = wants("a", more, 3);
	assert_int_equal(world_target_put(w, &def), version + 1);
	def = wants("a", same, 2);
	assert_int_equal(world_target_put(w, &def), version + 1);
	worker_advance(old, MANY);
	assert_true(old->claim.stale_route);
	assert_claim(old, 0);
	OK(store_release(w->store, "a", 0, "old", &w->err));
	assert_null(world_find(w, "a", fresh));
	k = worker_new(w, "k", "a");
	k->version = world_target_put(w, &all);
	assert_int_equal(k->version, version + 2);
	worker_lease(k);
	worker_take(k, 0);
	assert_drains(k, 1, fresh);
	assert_null(world_find(w, "a", settled));
}

static void small_claims_go_on_where_they_ended(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	int64_t seqs[30];
	struct worker *k;

	world_target_put(w, &def);
	for (size_t i = 0; i < 30; i++) {
		tenant(w, "other");
		seqs[i] = tenant(w, "acme");
		world_publish(w, NULL);
	}
	k = worker_start(w, "k", "a", 0);
	for (size_t i = 0; i < 30; i += 3) {
		worker_advance(k, 3);
		assert_claim(k, 3, seqs[i], seqs[i + 1], seqs[i + 2]);
	}
	assert_int_equal(worker_advance(k, 3), 0);
	assert_state(w, "a", seqs[29], OUTBOX_DELIVERED, 0);
	assert_null(world_find(w, "a", seqs[29] - 1));
}

static void who_takes_over_gets_the_same(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	int64_t first, second;
	struct worker *k;

	world_target_put(w, &def);
	first = tenant(w, "acme");
	tenant(w, "other");
	second = tenant(w, "acme");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 2, first, second);
	assert_int_equal(worker_repeat(k), OUTBOX_OK); /* the answer was lost */
	assert_claim(k, 2, first, second);
	world_step(w, 2 * LEASE);
	worker_restart(k);
	assert_drains(k, 2, first, second);
}

static void late_commits_are_routed_too(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	const struct outbox_header yes = { "tenant", "acme" }, no = { "tenant", "other" };
	struct outbox_message wanted = headed(&yes, 1), unwanted = headed(&no, 1);
	struct outbox_target_def def = wants("a", acme, 1);
	int64_t low, not_low, high;
	struct worker *k;
	void *late;

	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	OK(f->publish(late, &unwanted, &not_low, &w->err));
	OK(f->publish(late, &wanted, &low, &w->err));
	high = tenant(w, "acme");
	assert_drains(k, 1, high);
	f->commit(late);
	assert_pending(w, "a", 1);
	assert_state(w, "a", low, OUTBOX_PENDING, OUTBOX_NEW);
	assert_null(world_find(w, "a", not_low));
	assert_drains(k, 1, low);
	assert_null(world_find(w, "a", not_low));
	assert_state(w, "a", low, OUTBOX_DELIVERED, 0);
}

/* What a target does not get holds nothing back; what it gets stays until it has it. */
static void retention_goes_by_them(struct store_world *w)
{
	struct outbox_target_def def = wants("part", acme, 1);
	struct outbox_purge purge;
	struct worker *a, *part;
	int64_t wanted;

	world_target(w, "a");
	world_target_put(w, &def);
	tenant(w, "other");
	wanted = tenant(w, "acme");
	world_publish(w, NULL);
	a = worker_start(w, "k", "a", 0);
	worker_drain(a, (int64_t[3]){ 0 }, 3);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) - SEC };
	assert_int_equal(world_purge(w, &purge).messages, 2);
	assert_state(w, "part", wanted, OUTBOX_PENDING, OUTBOX_NEW);
	part = worker_start(w, "k", "part", 0);
	assert_drains(part, 1, wanted);
	world_step(w, 10 * SEC);
	purge.delivered_before = world_now(w) - SEC;
	assert_int_equal(world_purge(w, &purge).messages, 1);
}

static void operators_reach_only_what_is_routed(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .filter = &filter, .action = OUTBOX_DISCARD, .reason = "test" };
	int64_t unwanted, wanted;
	struct worker *k;

	world_target_put(w, &def);
	unwanted = tenant(w, "other");
	wanted = tenant(w, "acme");
	tenant(w, "acme");
	filter.state = OUTBOX_PENDING;
	assert_int_equal(world_act_filter(w, &act).done, 2);
	assert_state(w, "a", wanted, OUTBOX_DISCARDED, 0);
	assert_null(world_find(w, "a", unwanted));
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 0);
}

static void the_tail_tells_of_no_others(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	struct outbox_page page = { 0 };
	int64_t wanted;
	struct worker *k;

	world_target_put(w, &def);
	OK(store_tail(w->store, NULL, 10, w->arena, &page, &w->err));
	tenant(w, "other");
	wanted = tenant(w, "acme");
	tenant(w, "other");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, wanted);
	OK(store_tail(w->store, page.cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].seq, wanted);
}

/* One look for many lanes names those that have something for this target. */
static void a_look_goes_by_them(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	struct worker *k;
	size_t n;

	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, MANY), 0);
	n = (size_t)world_receipts(w, "a", 0);
	tenant(w, "other");
	assert_int_equal(worker_advance(k, MANY), 0);
	assert_int_equal(world_receipts(w, "a", 0), n); /* nothing to write down */
	assert_drains(k, 1, tenant(w, "acme"));
}

/* The pieces of a target that was split by priority keep their other conditions when the split ends. */
static void they_outlive_bands(struct store_world *w)
{
	static const unsigned bands[] = { OUTBOX_BAND_NORMAL, OUTBOX_BAND_HIGH, OUTBOX_BAND_LOW };
	static const char *const names[] = { "a", "a-high", "a-low" };
	const struct outbox_header yes = { "tenant", "acme" }, no = { "tenant", "other" };
	struct outbox_message m = headed(&yes, 1);
	struct outbox_target_def def = wants("a", acme, 1);
	int64_t high, unwanted, later;
	struct worker *k;

	for (size_t i = 0; i < 3; i++) {
		def.name = names[i];
		def.route.bands = bands[i];
		def.band_of = "a";
		world_target_put(w, &def);
	}
	m.priority = 1;
	high = world_publish_message(w, &m);
	m.headers = &no;
	unwanted = world_publish_message(w, &m);
	def = wants("a", acme, 1);
	world_target_put(w, &def);
	m.headers = &yes;
	later = world_publish_message(w, &m);
	k = worker_new(w, "k", "a-high");
	k->version = 2;
	worker_lease(k);
	worker_take(k, 0);
	assert_drains(k, 1, high);
	assert_null(world_find(w, "a-high", unwanted));
	k = worker_new(w, "k", "a");
	k->version = 2;
	worker_lease(k);
	worker_take(k, 0);
	assert_drains(k, 1, later);
}

static int try_amend(struct store_world *w, int64_t seq, const char *value)
{
	const struct outbox_header header = { "TENANT", value };
	struct outbox_message m = headed(&header, 1);
	struct outbox_amend amend = { .struct_size = sizeof(amend),
				      .id = world_id(w, "all", seq),
				      .actor = "anna",
				      .reason = "test",
				      .message = &m };

	return store_amend(w->store, &amend, NULL, &w->err);
}

/* A lane may have passed it: it would seem delivered where it never was, or never to have been meant. */
static void a_correction_does_not_change_the_target(struct store_world *w)
{
	struct outbox_target_def def = wants("a", acme, 1);
	int64_t s;

	world_target(w, "all");
	world_target_put(w, &def);
	s = tenant(w, "other");
	world_target_put(w, &def);
	assert_drains(worker_start(w, "k", "a", 0), 0);
	assert_int_equal(try_amend(w, s, "acme"), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "whether a gets it goes by its headers"));
	assert_null(world_find(w, "a", s));
	assert_int_equal(try_amend(w, s, "another"), OUTBOX_OK);
	s = tenant(w, "acme");
	assert_int_equal(try_amend(w, s, "acme"), OUTBOX_OK);
	assert_int_equal(try_amend(w, s, "other"), OUTBOX_ECONFLICT);
	assert_state(w, "a", s, OUTBOX_PENDING, OUTBOX_NEW);
}

const struct store_case headers_cases[] = {
	{ "headers_decide_who_gets_what", headers_decide_who_gets_what, 0, 0 },
	{ "header_values_are_taken_as_they_are", values_are_taken_as_they_are, 0, 0 },
	{ "headers_are_a_part_of_the_routing", they_are_a_part_of_the_routing, 0, 0 },
	{ "small_claims_by_headers_go_on_where_they_ended", small_claims_go_on_where_they_ended, 0,
	  0 },
	{ "who_takes_over_gets_the_same_by_headers", who_takes_over_gets_the_same, 0, 0 },
	{ "late_commits_are_routed_by_headers", late_commits_are_routed_too, 0, STORE_LATE_COMMITS },
	{ "retention_goes_by_headers", retention_goes_by_them, 0, 0 },
	{ "operators_reach_only_what_is_routed_by_headers", operators_reach_only_what_is_routed, 0,
	  0 },
	{ "the_tail_goes_by_headers", the_tail_tells_of_no_others, 0, 0 },
	{ "a_look_goes_by_headers", a_look_goes_by_them, 0, 0 },
	{ "headers_outlive_bands", they_outlive_bands, 0, 0 },
	{ "a_correction_does_not_change_the_target", a_correction_does_not_change_the_target, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
