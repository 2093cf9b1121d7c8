/* SPDX-License-Identifier: Apache-2.0 */

/* Cancelling: a message that is scheduled and was sent nowhere is never sent, whoever comes to read it. */

#include "store/store.h"
#include "store_world.h"

static int try_cancel(struct store_world *w, const char *id, bool *ret_done)
{
	struct outbox_cancel cancel = { .struct_size = sizeof(cancel),
					.id = id,
					.actor = "anna",
					.reason = "the order was paid" };

	return store_cancel(w->store, &cancel, ret_done, &w->err);
}

static bool cancel(struct store_world *w, const char *id)
{
	bool done = false;

	OK(try_cancel(w, id, &done));
	return done;
}

static int64_t publish_due(struct store_world *w, const char *id, const char *key, outbox_time due_at)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.id = id;
	m.key = key;
	m.due_at = due_at;
	m.data = "{}";
	m.size = 2;
	return world_publish_message(w, &m);
}

static int64_t publish(struct store_world *w, const char *id)
{
	return publish_due(w, id, "k", world_now(w) + 60 * SEC);
}

static void assert_refused(struct store_world *w, const char *id, const char *why)
{
	const char *before = world_picture(w);

	assert_int_equal(try_cancel(w, id, NULL), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, why));
	assert_string_equal(world_picture(w), before);
}

static void one_that_nobody_has_read(struct store_world *w)
{
	struct worker *k;
	int64_t seq, other;

	world_target(w, "a");
	seq = publish(w, "m1");
	other = publish(w, "m2");
	k = worker_start(w, "k", "a", 0);
	assert_true(cancel(w, "m1"));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_string_equal(world_row(w, "a", seq)->reason, "the order was paid");
	world_step(w, 100 * SEC);
	worker_lease(k);
	assert_drains(k, 1, other);
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_int_equal(world_stats(w, "a")->discarded, 1);
}

/* It waits in a detour for its time; the key goes on without it. */
static void one_that_was_read(struct store_world *w)
{
	struct worker *k;
	int64_t seq, next;

	world_target(w, "a");
	seq = publish(w, "m1");
	next = publish_due(w, "m2", "k", 0);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, MANY), 2);
	settle_defer(k, 0, world_now(w) + 60 * SEC);
	worker_advance(k, 0);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_DEFERRED);
	assert_true(cancel(w, "m1"));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	world_step(w, 100 * SEC);
	worker_lease(k);
	assert_drains(k, 0);
	assert_state(w, "a", next, OUTBOX_DELIVERED, 0);
}

static void every_target_that_takes_it(struct store_world *w)
{
	struct outbox_target_def def = target_def("c");
	const char *types[] = { "other" };
	int64_t seq;

	world_target(w, "a");
	world_target(w, "b");
	def.route.types = types;
	def.route.n_types = 1;
	world_target_put(w, &def);
	seq = publish(w, "m1");
	assert_true(cancel(w, "m1"));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_state(w, "b", seq, OUTBOX_DISCARDED, 0);
	assert_null(world_find(w, "c", seq));
	/* it takes it from now on, and has not read it */
	world_target(w, "c");
	assert_state(w, "c", seq, OUTBOX_DISCARDED, 0);
	assert_string_equal(world_row(w, "c", seq)->reason, "the order was paid");
}

static void targets_that_come_later(struct store_world *w)
{
	struct outbox_target_def def = target_def("now");
	struct worker *k;
	int64_t seq, other;

	seq = publish(w, "m1");
	other = publish(w, "m2");
	assert_true(cancel(w, "m1")); /* there is none yet */
	world_target(w, "a");
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	def.start = OUTBOX_START_NOW;
	world_target_put(w, &def);
	assert_null(world_find(w, "now", seq));
	world_step(w, 100 * SEC);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, other);
	OK(store_target_drop(w->store, "a", "me", "gone", &w->err));
	def = target_def("a");
	def.start = OUTBOX_START_OLDEST;
	k = worker_new(w, "l", "a");
	k->version = world_target_put(w, &def);
	worker_lease(k);
	worker_take(k, 0);
	assert_drains(k, 1, other);
}

static void a_target_that_starts_at_a_time(struct store_world *w)
{
	struct outbox_target_def def = target_def("late");
	int64_t first, second;

	first = publish(w, "m1");
	world_step(w, SEC);
	def.start = OUTBOX_START_TIME;
	def.start_time = world_now(w);
	second = publish(w, "m2");
	assert_true(cancel(w, "m1"));
	assert_true(cancel(w, "m2"));
	world_target_put(w, &def);
	assert_null(world_find(w, "late", first));
	assert_state(w, "late", second, OUTBOX_DISCARDED, 0);
}

static void nothing_that_is_not_scheduled(struct store_world *w)
{
	world_target(w, "a");
	assert_int_equal(try_cancel(w, "nobody", NULL), OUTBOX_ENOTFOUND);
	publish_due(w, "m1", NULL, 0);
	assert_refused(w, "m1", "is not scheduled");
	publish(w, "m2");
	world_step(w, 60 * SEC);
	assert_refused(w, "m2", "it was due at");
	publish(w, "m3");
	assert_int_equal(store_cancel(w->store,
				      &(struct outbox_cancel){ .struct_size =
								       sizeof(struct outbox_cancel),
							       .id = "m3" },
				      NULL, &w->err),
			 OUTBOX_EINVAL);
}

static void nothing_that_is_being_read(struct store_world *w)
{
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	assert_refused(w, "m1", "being sent to a right now; try again");
	/* its owner is dead: it is fenced, and must not undo it */
	world_step(w, 2 * LEASE);
	assert_true(cancel(w, "m1"));
	settle_defer(k, 0, world_now(w) + SEC);
	assert_int_equal(worker_try_advance(k, 0, BYTES), OUTBOX_EFENCED);
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
}

/* An operator wants it earlier than its publisher. */
static void nothing_that_is_due_somewhere(struct store_world *w)
{
	struct outbox_act act = { .action = OUTBOX_DEFER, .actor = "anna" };
	struct outbox_filter filter = filter_of("a");
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	world_target(w, "b");
	seq = publish(w, "m1");
	act.filter = &filter;
	act.until = world_now(w) + 10 * SEC;
	assert_int_equal(world_act_filter(w, &act).done, 1);
	world_step(w, 10 * SEC);
	assert_refused(w, "m1", "due at a already");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, seq);
	assert_refused(w, "m1", "to a is delivered");
}

static void nothing_that_failed(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0); /* malformed, say */
	worker_advance(k, 0);
	assert_refused(w, "m1", "to a is failed");
}

static void what_is_discarded_stays_so(struct store_world *w)
{
	int64_t seq;

	world_target(w, "a");
	world_target(w, "b");
	seq = publish(w, "m1");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	assert_true(cancel(w, "m1"));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_state(w, "b", seq, OUTBOX_DISCARDED, 0);
	assert_string_not_equal(world_row(w, "a", seq)->reason, "the order was paid");
}

static void twice_is_once(struct store_world *w)
{
	struct outbox_audit *rows;
	const char *before;
	size_t count;

	world_target(w, "a");
	publish(w, "m1");
	assert_true(cancel(w, "m1"));
	before = world_picture(w);
	assert_false(cancel(w, "m1"));
	world_step(w, 100 * SEC);
	assert_false(cancel(w, "m1"));
	assert_string_equal(world_picture(w), before);
	OK(store_audit(w->store, "m1", 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].action, "cancel");
	assert_null(rows[0].target);
	assert_string_equal(rows[0].actor, "anna");
	assert_string_equal(rows[0].reason, "the order was paid");
	assert_string_equal(rows[1].action, "discard");
	assert_string_equal(rows[1].target, "a");
	assert_int_equal(rows[0].at, rows[1].at);
}

/* A paused target sends nothing, and a cancelled message is not held for it. */
static void at_a_paused_target(struct store_world *w)
{
	int64_t seq;

	world_target(w, "a");
	OK(store_target_pause(w->store, "a", true, "anna", "maintenance", &w->err));
	seq = publish(w, "m1");
	assert_true(cancel(w, "m1"));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
}

/* With its message it is forgotten: the id may come again. */
static void retention_takes_it(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	publish(w, "m1");
	assert_true(cancel(w, "m1"));
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) };
	assert_int_equal(world_purge(w, &purge).messages, 1);
	seq = publish_due(w, "m1", "k", 0);
	world_target(w, "b");
	worker_lease(k);
	assert_drains(k, 1, seq);
	assert_drains(worker_start(w, "l", "b", 0), 1, seq);
}

/* ---- in an application's transaction --------------------------------------------------------- */

#define FAR (4102444800 * SEC) /* later than the real time and the test's */

static void a_rollback_brings_it_back(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	bool done = false;
	int64_t seq;
	void *tx;

	world_target(w, "a");
	seq = publish_due(w, "m1", NULL, FAR);
	tx = f->begin(w->place);
	OK(f->cancel(tx, "m1", &done, &w->err));
	assert_true(done);
	OK(f->cancel(tx, "m1", &done, &w->err));
	assert_false(done);
	f->rollback(tx);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_DEFERRED);

	tx = f->begin(w->place);
	f->savepoint(tx);
	OK(f->cancel(tx, "m1", &done, &w->err));
	f->rollback_to(tx);
	f->commit(tx);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_DEFERRED);

	tx = f->begin(w->place);
	OK(f->cancel(tx, "m1", &done, &w->err));
	f->commit(tx);
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
}

static void one_of_the_same_transaction(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq;
	void *tx;

	world_target(w, "a");
	m.type = "t";
	m.id = "m1";
	m.due_at = FAR;
	m.data = "{}";
	m.size = 2;
	tx = f->begin(w->place);
	OK(f->publish(tx, &m, &seq, &w->err));
	OK(f->cancel(tx, "m1", NULL, &w->err));
	f->commit(tx);
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_drains(worker_start(w, "k", "a", 0), 0);
}

static void a_refusal_says_why(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	void *tx;

	world_target(w, "a");
	publish_due(w, "m1", NULL, 0);
	tx = f->begin(w->place);
	assert_int_equal(f->cancel(tx, "m1", NULL, &w->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "is not scheduled"));
	f->rollback(tx);
	tx = f->begin(w->place);
	assert_int_equal(f->cancel(tx, "nobody", NULL, &w->err), OUTBOX_ENOTFOUND);
	f->rollback(tx);
}

/* A relay reads it between the call and the commit: the commit must not take it out of the relay's hands. */
static void one_that_is_read_before_the_commit(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *k;
	int64_t seq;
	void *tx;

	world_target(w, "a");
	seq = publish_due(w, "m1", NULL, FAR);
	k = worker_start(w, "k", "a", 0);
	tx = f->begin(w->place);
	OK(f->cancel(tx, "m1", NULL, &w->err));
	assert_int_equal(worker_advance(k, 1), 1);
	/* the lease lives by the real time, too */
	OK(store_lease(k->store,
		       &(struct outbox_lease_request){ .target = "a",
						       .owner = "k",
						       .duration = FAR - world_now(w),
						       .route_version = k->version },
		       &k->lease, &w->err));
	assert_int_equal(f->try_commit(tx, &w->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "being sent to a right now; try again"));
	settle_defer(k, 0, FAR);
	worker_advance(k, 0);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_DEFERRED);

	tx = f->begin(w->place);
	OK(f->cancel(tx, "m1", NULL, &w->err));
	OK(f->try_commit(tx, &w->err));
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
}

/* clang-format off */
#define CASE(name) { #name, name, 0, 0 }
#define APPLICATION(name) { #name, name, 0, STORE_CANCELS }
/* clang-format on */

const struct store_case cancel_cases[] = {
	CASE(one_that_nobody_has_read),
	CASE(one_that_was_read),
	CASE(every_target_that_takes_it),
	CASE(targets_that_come_later),
	CASE(a_target_that_starts_at_a_time),
	CASE(nothing_that_is_not_scheduled),
	CASE(nothing_that_is_being_read),
	CASE(nothing_that_is_due_somewhere),
	CASE(nothing_that_failed),
	CASE(what_is_discarded_stays_so),
	CASE(twice_is_once),
	CASE(at_a_paused_target),
	CASE(retention_takes_it),
	APPLICATION(a_rollback_brings_it_back),
	APPLICATION(one_of_the_same_transaction),
	APPLICATION(a_refusal_says_why),
	{ "one_that_is_read_before_the_commit", one_that_is_read_before_the_commit, 0,
	  STORE_COMMIT_FAILS },
	{ NULL, NULL, 0, 0 },
};
