/* SPDX-License-Identifier: Apache-2.0 */

/* Operators and the owner of the lane; actions on many deliveries; who did what. */

#include "store_world.h"

#include "store/store.h"

#include <pthread.h>

static void what_is_being_sent_is_refused(struct store_world *w)
{
	struct worker *k;
	const char *picture;
	int64_t log_row, detour;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	detour = world_publish(w, "x");
	worker_advance(k, MANY);
	settle_wait(k, 0, 0);
	worker_advance(k, 0);
	log_row = world_publish(w, "y");
	worker_advance(k, MANY);
	assert_claim(k, 2, detour, log_row);
	world_step(w, LEASE - 1);
	picture = world_picture(w);
	for (int action = OUTBOX_DISCARD; action <= OUTBOX_DEFER; action++) {
		struct outbox_acted acted = world_act(w, action, "a", log_row);

		assert_int_equal(acted.done, 0);
		assert_int_equal(acted.refused, 1);
		assert_non_null(strstr(acted.why, "is being sent right now; try again"));
		acted = world_act(w, action, "a", detour);
		assert_int_equal(acted.refused, 1);
		assert_non_null(strstr(acted.why, "is being sent right now; try again"));
	}
	assert_string_equal(world_picture(w), picture);
	worker_advance(k, 0); /* and the owner settles as if nothing had been */
	assert_state(w, "a", log_row, OUTBOX_DELIVERED, 0);
	assert_state(w, "a", detour, OUTBOX_DELIVERED, 0);
}

static void after_the_lease_it_is_allowed_and_fences(struct store_world *w)
{
	struct worker *dead, *alive;
	int64_t a, b;

	world_target(w, "a");
	a = world_publish(w, "x");
	b = world_publish(w, "y");
	dead = worker_start(w, "dead", "a", 0);
	worker_advance(dead, MANY);
	world_step(w, LEASE);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", a).done, 1);
	assert_state(w, "a", a, OUTBOX_DISCARDED, 0);
	assert_int_equal(worker_try_advance(dead, 0, BYTES), OUTBOX_EFENCED);
	assert_state(w, "a", a, OUTBOX_DISCARDED, 0);
	assert_state(w, "a", b, OUTBOX_PENDING, OUTBOX_NEW);
	alive = worker_start(w, "alive", "a", 0);
	assert_drains(alive, 1, b);
}

static void what_is_not_in_flight_fences_nobody(struct store_world *w)
{
	struct worker *k;
	int64_t a, b, c;

	world_target(w, "a");
	a = world_publish(w, "x");
	b = world_publish(w, "y");
	c = world_publish(w, "z");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_claim(k, 1, a);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", b).done, 1);
	worker_advance(k, MANY);
	assert_claim(k, 1, c);
	assert_state(w, "a", a, OUTBOX_DELIVERED, 0);
}

static void requeue_of_a_returned_one_is_refused(struct store_world *w)
{
	struct worker *dead;
	int64_t a;

	world_target(w, "a");
	a = world_publish(w, "x");
	dead = worker_start(w, "dead", "a", 0);
	worker_advance(dead, MANY);
	world_step(w, LEASE);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", a).refused, 1); /* never failed */
	worker_advance(dead, 0); /* nobody took the lane: still the owner */
	assert_state(w, "a", a, OUTBOX_DELIVERED, 0);
}

/* n messages, all failed. */
static int64_t fail_many(struct store_world *w, size_t n)
{
	int64_t first;
	struct worker *k;

	world_target(w, "a");
	first = world_publish_many(w, n);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.count, n);
	for (size_t i = 0; i < n; i++)
		settle_fail(k, i);
	worker_advance(k, 0);
	return first;
}

static void a_filter_acts_in_portions(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_REQUEUE, .actor = "anna", .filter = &filter };
	int64_t first = fail_many(w, 5), other = world_publish(w, "x");
	struct outbox_acted acted;

	filter.limit = 2;
	for (size_t left = 5; left > 0; left -= left > 2 ? 2 : left) {
		acted = world_act_filter(w, &act);
		assert_int_equal(acted.done, left > 2 ? 2 : left);
		assert_int_equal(acted.more, left > 2);
		assert_int_equal(acted.refused, 0);
		assert_int_equal(acted.oldest, world_now(w));
	}
	acted = world_act_filter(w, &act);
	assert_int_equal(acted.done, 0);
	assert_int_equal(acted.oldest, 0);
	assert_false(acted.more);
	assert_state(w, "a", first, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_state(w, "a", other, OUTBOX_PENDING, OUTBOX_NEW);
	assert_int_equal(world_row(w, "a", other)->last_status_at, 0);
}

static void a_dry_run_only_counts(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_REQUEUE, .dry_run = true, .filter = &filter };
	struct outbox_audit *rows;
	const char *picture;
	size_t count = 1;

	fail_many(w, 3);
	picture = world_picture(w);
	assert_int_equal(world_act_filter(w, &act).done, 3);
	assert_string_equal(world_picture(w), picture);
	OK(store_audit(w->store, NULL, 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 0);
}

static void deferring_by_filter_comes_to_an_end(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_DEFER, .filter = &filter };
	size_t done = 0;
	bool more = true;

	world_target(w, "a");
	world_publish_many(w, 5);
	act.until = world_now(w) + OUTBOX_HOURS;
	filter.limit = 2;
	for (int i = 0; more && i < 10; i++) {
		struct outbox_acted acted = world_act_filter(w, &act);

		done += acted.done;
		more = acted.more;
	}
	assert_false(more);
	assert_int_equal(done, 5);
	assert_int_equal(world_stats(w, "a")->deferred, 5);
}

static void a_filter_narrows_the_selection(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_DISCARD, .reason = "test", .filter = &filter };
	int64_t a, b;

	world_target(w, "a");
	world_target(w, "b");
	a = world_publish_type(w, "order.placed");
	b = world_publish_type(w, "order.paid");
	filter.type = "order.pl*";
	filter.state = OUTBOX_FAILED;
	assert_int_equal(world_act_filter(w, &act).done, 0); /* none is failed */
	filter.state = OUTBOX_PENDING;
	assert_int_equal(world_act_filter(w, &act).done, 1);
	assert_state(w, "a", a, OUTBOX_DISCARDED, 0);
	assert_state(w, "a", b, OUTBOX_PENDING, OUTBOX_NEW);
	assert_state(w, "b", a, OUTBOX_PENDING, OUTBOX_NEW);
}

static void an_unknown_id_is_told(struct store_world *w)
{
	const char *ids[] = { "no such id", NULL };
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_act act = { .action = OUTBOX_DISCARD, .reason = "r", .filter = &filter };
	struct outbox_acted acted;
	int64_t seq;

	world_target(w, "a");
	seq = world_publish(w, "x");
	ids[1] = world_id(w, "a", seq);
	filter.ids = ids;
	filter.n_ids = 2;
	acted = world_act_filter(w, &act);
	assert_int_equal(acted.done, 1); /* the other one is done all the same */
	assert_int_equal(acted.refused, 1);
	assert_non_null(strstr(acted.why, "no such id"));
}

static void audit_rows_are_newest_first(struct store_world *w)
{
	struct outbox_audit *rows;
	int64_t a, b;
	size_t count;

	world_target(w, "a");
	a = world_publish(w, "x");
	b = world_publish(w, "y");
	world_act(w, OUTBOX_DEFER, "a", a);
	world_step(w, SEC);
	world_act(w, OUTBOX_DISCARD, "a", b);
	world_step(w, SEC);
	world_act(w, OUTBOX_DISCARD, "a", a);
	world_act(w, OUTBOX_REQUEUE, "a", a); /* refused: no row */
	OK(store_audit(w->store, NULL, 2, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].action, "discard");
	assert_string_equal(rows[0].id, world_id(w, "a", a));
	assert_string_equal(rows[1].id, world_id(w, "a", b));
	assert_true(rows[0].number > rows[1].number);
	assert_int_equal(rows[0].at, rows[1].at + SEC);
	OK(store_audit(w->store, world_id(w, "a", a), 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[1].action, "defer");
}

/* ---- threads ------------------------------------------------------------------------------- */

struct requeuer {
	struct outbox_store *store;
	struct random_state random;
	pthread_barrier_t *barrier;
	const char *id;
	struct outbox_acted acted;
	struct outbox_error err;
	int status;
};

static void *requeue(void *argument)
{
	struct requeuer *r = argument;
	struct outbox_filter filter = { .struct_size = sizeof(filter), .ids = &r->id, .n_ids = 1 };
	struct outbox_act act = { .action = OUTBOX_REQUEUE, .actor = "anna", .filter = &filter };

	pthread_barrier_wait(r->barrier);
	do {
		r->status = store_act(r->store, &act, &r->acted, &r->err);
	} while (r->status == OUTBOX_EBUSY);
	return NULL;
}

static void threads_requeue_and_one_wins(struct store_world *w)
{
	const char *id = world_id(w, "a", fail_many(w, 1));
	static struct requeuer r[3];
	pthread_barrier_t barrier;
	struct outbox_audit *rows;
	pthread_t threads[3];
	size_t count, done = 0, refused = 0;

	pthread_barrier_init(&barrier, NULL, 3);
	for (size_t i = 0; i < 3; i++) {
		r[i] = (struct requeuer){ .barrier = &barrier, .id = id };
		random_init(&r[i].random, 70 + i);
		r[i].store = world_open(w, &r[i].random.base);
		assert_int_equal(pthread_create(&threads[i], NULL, requeue, &r[i]), 0);
	}
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	for (size_t i = 0; i < 3; i++) {
		store_close(r[i].store);
		w->err = r[i].err;
		OK(r[i].status);
		done += r[i].acted.done;
		refused += r[i].acted.refused;
	}
	assert_int_equal(done, 1);
	assert_int_equal(refused, 2);
	OK(store_audit(w->store, id, 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 1);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case operator_cases[] = {
	CASE(what_is_being_sent_is_refused),
	CASE(after_the_lease_it_is_allowed_and_fences),
	CASE(what_is_not_in_flight_fences_nobody),
	CASE(requeue_of_a_returned_one_is_refused),
	CASE(a_filter_acts_in_portions),
	CASE(a_dry_run_only_counts),
	CASE(deferring_by_filter_comes_to_an_end),
	CASE(a_filter_narrows_the_selection),
	CASE(an_unknown_id_is_told),
	CASE(audit_rows_are_newest_first),
	CASE(threads_requeue_and_one_wins),
	{ NULL, NULL, 0, 0 },
};
