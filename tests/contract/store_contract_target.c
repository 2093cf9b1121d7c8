/* SPDX-License-Identifier: Apache-2.0 */

/* Targets: registering, routing and its versions, where one starts, pause, drop. */

#include "store/store.h"
#include "store_world.h"

static struct outbox_target_def routed(const char *name, const char *const *types, size_t n)
{
	struct outbox_target_def def = target_def(name);

	def.route.types = types;
	def.route.n_types = n;
	return def;
}

static const char *const orders[] = { "order.*" };
static const char *const orders_and_more[] = { "order.*", "invoice.?aid" };

static void the_same_routing_is_the_same_version(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders, 1);
	int64_t version = world_target_put(w, &def);

	assert_int_equal(world_target_put(w, &def), version);
	def.hold = true;
	def.start = OUTBOX_START_UNSET;
	assert_int_equal(world_target_put(w, &def), version);
	def.route.types = orders_and_more;
	def.route.n_types = 2;
	assert_int_equal(world_target_put(w, &def), version + 1);
	def.route.kind = OUTBOX_KIND_COMMAND;
	assert_int_equal(world_target_put(w, &def), version + 2);
	def.route.published_only = true;
	assert_int_equal(world_target_put(w, &def), version + 3);
	assert_int_equal(world_target_put(w, &def), version + 3);
}

static void routing_decides_who_gets_what(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders_and_more, 2);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t placed, paid, command, out;
	struct worker *k;

	world_target_put(w, &def);
	def = target_def("commands");
	def.route.kind = OUTBOX_KIND_COMMAND;
	world_target_put(w, &def);
	def = target_def("outside");
	def.route.published_only = true;
	world_target_put(w, &def);
	placed = world_publish_type(w, "order.placed");
	world_publish_type(w, "orders");
	world_publish_type(w, "Order.placed");
	paid = world_publish_type(w, "invoice.paid");
	world_publish_type(w, "invoice.prepaid");
	m.type = "x";
	m.kind = OUTBOX_KIND_COMMAND;
	command = world_publish_message(w, &m);
	m.kind = OUTBOX_KIND_EVENT;
	m.published = 2; /* anything but 0 */
	out = world_publish_message(w, &m);

	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, placed, paid);
	k = worker_start(w, "k", "commands", 0);
	assert_drains(k, 1, command);
	k = worker_start(w, "k", "outside", 0);
	assert_drains(k, 1, out);
	assert_null(world_find(w, "a", command));
	assert_null(world_find(w, "outside", placed));
	assert_state(w, "a", placed, OUTBOX_DELIVERED, 0);
}

/* Nothing but * and ? means anything, whatever the store makes of a glob. */
static void globs_have_two_wildcards_only(struct store_world *w)
{
	static const char *const odd[] = { "a_b%c\\.*", "?" };
	struct outbox_target_def def = routed("a", odd, 2);
	int64_t first, second, third;
	struct worker *k;

	world_target_put(w, &def);
	first = world_publish_type(w, "a_b%c\\.");
	world_publish_type(w, "aXb%c\\.x");
	world_publish_type(w, "a_bXXc\\.x");
	world_publish_type(w, "a_b%c.x");
	world_publish_type(w, "a_b%c\\\\.x");
	second = world_publish_type(w, "a_b%c\\.*?\xc3\xa9");
	third = world_publish_type(w, "\xc3\xa9"); /* one character */
	world_publish_type(w, "xy");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 3, first, second, third);
}

static void an_older_routing_gets_nothing(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders, 1);
	struct worker *old, *fresh;

	world_target(w, "a");
	world_publish_type(w, "order.placed");
	old = worker_new(w, "old", "a");
	fresh = worker_new(w, "fresh", "a");
	fresh->version = world_target_put(w, &def);
	assert_int_equal(fresh->version, old->version + 1);
	worker_lease(old);
	assert_true(old->lease.stale_route);
	assert_int_equal(old->lease.count, 0);
	worker_lease(fresh);
	assert_false(fresh->lease.stale_route);
	assert_int_equal(fresh->lease.count, 1); /* the old one takes part in no share */
	assert_int_equal(fresh->lease.share, 1);
}

static void a_claim_with_an_older_routing_settles_only(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders, 1);
	struct worker *k, *fresh;
	int64_t first, second;

	world_target(w, "a");
	first = world_publish_type(w, "order.placed");
	second = world_publish_type(w, "order.paid");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_false(k->claim.stale_route);
	world_target_put(w, &def);
	worker_advance(k, 1);
	assert_true(k->claim.stale_route);
	assert_claim(k, 0);
	assert_state(w, "a", first, OUTBOX_DELIVERED, 0);
	OK(store_release(w->store, "a", 0, "k", &w->err));
	fresh = worker_new(w, "fresh", "a");
	fresh->version = 2;
	worker_lease(fresh);
	assert_int_equal(fresh->lease.count, 1);
	worker_take(fresh, 0);
	assert_drains(fresh, 1, second);
}

static void what_was_settled_is_not_routed_anew(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders, 1), all = target_def("a");
	int64_t unrouted, order, fresh;
	struct worker *k;

	world_target_put(w, &def);
	unrouted = world_publish_type(w, "invoice.paid");
	order = world_publish_type(w, "order.placed");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, order);
	k->version = world_target_put(w, &all);
	fresh = world_publish_type(w, "invoice.paid");
	assert_drains(k, 1, fresh);
	assert_null(world_find(w, "a", unrouted));
}

static void what_is_unread_is_routed_by_the_new_routing(struct store_world *w)
{
	struct outbox_target_def def = routed("a", orders, 1);
	int64_t order, invoice;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	invoice = world_publish_type(w, "invoice.paid");
	order = world_publish_type(w, "order.placed");
	assert_state(w, "a", invoice, OUTBOX_PENDING, OUTBOX_NEW);
	k->version = world_target_put(w, &def);
	assert_null(world_find(w, "a", invoice));
	assert_drains(k, 1, order);
}

static void a_target_starts_at_the_oldest(struct store_world *w)
{
	struct outbox_target_def def = { .name = "a" };
	int64_t seq = world_publish(w, "x");
	struct worker *k;

	world_target_put(w, &def); /* unset: nothing was ever settled here */
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, seq);
	def = target_def("b");
	world_target_put(w, &def);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, seq);
}

static void a_target_starts_now(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	int64_t before = world_publish(w, "x"), after;
	struct worker *k;

	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	after = world_publish(w, "x");
	assert_null(world_find(w, "a", before));
	assert_int_equal(world_stats(w, "a")->pending, 1);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, after);
	assert_null(world_find(w, "a", before));
	assert_int_equal(world_stats(w, "a")->delivered_ever, 1);
}

static void a_later_target_says_where_it_starts(struct store_world *w)
{
	struct outbox_target_def def = { .name = "b" };
	struct outbox_stats stats;
	int64_t version = -1, seq;
	struct worker *k;

	world_target(w, "a");
	seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, seq);
	assert_int_not_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_OK);
	assert_non_null(strstr(w->err.message, "start"));
	assert_int_equal(version, -1);
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	assert_int_equal(stats.n_targets, 1);
	def.name = "a"; /* for one that is known it is not looked at */
	world_target_put(w, &def);
}

static void names_and_routes_are_checked(struct store_world *w)
{
	static const char *const names[] = { "", "A", "1a", "a b", "a.b", "a:b" };
	static const char *const bracket[] = { "order.[a-z]" };
	struct outbox_target_def def = target_def("a");
	int64_t version;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		def.name = names[i];
		assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ECONFIG);
	}
	def = routed("a", bracket, 1);
	assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ECONFIG);
}

static void a_paused_target_claims_nothing(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct worker *k;
	int64_t s, n;

	world_target(w, "a");
	s = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	OK(store_target_pause(w->store, "a", true, "anna", "their maintenance", &w->err));
	worker_advance(k, MANY);
	assert_true(k->claim.paused);
	assert_claim(k, 0);
	assert_state(w, "a", s, OUTBOX_DELIVERED, 0); /* what was in flight is settled */
	assert_state(w, "a", s + 1, OUTBOX_PENDING, OUTBOX_PAUSED);
	filter.why = OUTBOX_PAUSED;
	assert_int_equal(world_list(w, &filter).count, 2);
	assert_true(world_stats(w, "a")->paused);
	assert_string_equal(world_stats(w, "a")->paused_by, "anna");
	assert_string_equal(world_stats(w, "a")->paused_reason, "their maintenance");
	assert_int_equal(world_stats(w, "a")->pending, 2);
	n = k->n;
	worker_advance(k, MANY);
	assert_int_equal(k->n, n);
	OK(store_target_pause(w->store, "a", false, "anna", NULL, &w->err));
	assert_drains(k, 2, s + 1, s + 2);
	assert_false(k->claim.paused);
}

static void pause_leaves_an_audit_row_once(struct store_world *w)
{
	struct outbox_audit *rows;
	size_t count;

	world_target(w, "a");
	OK(store_target_pause(w->store, "a", false, "anna", "why not", &w->err)); /* it is not */
	OK(store_target_pause(w->store, "a", true, "anna", "first", &w->err));
	OK(store_target_pause(w->store, "a", true, "bert", "second", &w->err));
	assert_string_equal(world_stats(w, "a")->paused_by, "anna");
	OK(store_target_pause(w->store, "a", false, "bert", "done", &w->err));
	OK(store_audit(w->store, NULL, 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].action, "resume");
	assert_string_equal(rows[0].actor, "bert");
	assert_string_equal(rows[1].action, "pause");
	assert_string_equal(rows[1].reason, "first");
	assert_string_equal(rows[1].target, "a");
	assert_int_equal(store_target_pause(w->store, "b", true, "anna", NULL, &w->err),
			 OUTBOX_ENOTFOUND);
}

static void a_dropped_target_is_gone(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k, *b;
	int64_t s;

	world_target(w, "a");
	world_target(w, "b");
	s = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2);
	settle_fail(k, 0);
	worker_advance(k, 1);
	b = worker_start(w, "k", "b", 0);
	assert_drains(b, 3, s, s + 1, s + 2);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) - SEC };
	assert_int_equal(world_purge(w, &purge).messages, 1); /* a holds two */
	OK(store_target_drop(w->store, "a", "anna", "moved", &w->err));
	assert_null(world_find(w, "a", s));
	assert_int_not_equal(worker_try_advance(k, 1, BYTES), OUTBOX_OK);
	assert_int_equal(store_target_drop(w->store, "a", "anna", "moved", &w->err),
			 OUTBOX_ENOTFOUND);
	assert_int_equal(world_purge(w, &purge).messages, 2);

	world_target(w, "a"); /* the name is free: a new target with nothing of the old one */
	assert_int_equal(world_stats(w, "a")->delivered_ever, 0);
	assert_int_equal(world_stats(w, "a")->failed, 0);
}

/* Only when it is registered: whoever resumed it is not overruled by the next start of a relay. */
static void a_new_target_may_be_paused(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	struct outbox_audit *rows;
	struct worker *k;
	size_t count;
	int64_t seq;

	def.paused = true;
	world_target_put(w, &def);
	seq = world_publish(w, NULL);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 0);
	assert_true(world_stats(w, "a")->paused);
	assert_string_equal(world_stats(w, "a")->paused_by, OUTBOX_PAUSED_BY_CONFIGURATION);
	OK(store_audit(w->store, NULL, 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].action, "pause");
	assert_string_equal(rows[0].actor, OUTBOX_PAUSED_BY_CONFIGURATION);
	OK(store_target_pause(w->store, "a", false, "anna", NULL, &w->err));
	world_target_put(w, &def);
	assert_false(world_stats(w, "a")->paused);
	assert_drains(k, 1, seq);

	world_target(w, "b"); /* and a target that is there is not paused */
	def.name = "b";
	world_target_put(w, &def);
	assert_false(world_stats(w, "b")->paused);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case target_cases[] = {
	CASE(the_same_routing_is_the_same_version),
	CASE(routing_decides_who_gets_what),
	CASE(globs_have_two_wildcards_only),
	CASE(an_older_routing_gets_nothing),
	CASE(a_claim_with_an_older_routing_settles_only),
	CASE(what_was_settled_is_not_routed_anew),
	CASE(what_is_unread_is_routed_by_the_new_routing),
	CASE(a_target_starts_at_the_oldest),
	CASE(a_target_starts_now),
	CASE(a_later_target_says_where_it_starts),
	CASE(names_and_routes_are_checked),
	CASE(a_paused_target_claims_nothing),
	CASE(a_new_target_may_be_paused),
	CASE(pause_leaves_an_audit_row_once),
	CASE(a_dropped_target_is_gone),
	{ NULL, NULL, 0, 0 },
};
