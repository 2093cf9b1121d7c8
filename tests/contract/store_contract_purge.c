/* SPDX-License-Identifier: Apache-2.0 */

/* Retention: what is finished goes in its time, nothing else ever. */

#include "store/store.h"
#include "store_world.h"

static struct outbox_purge before(struct store_world *w, outbox_time delivered_age)
{
	return (struct outbox_purge){ .delivered_before = world_now(w) - delivered_age };
}

static void delivered_ones_go_after_their_retention(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_purged purged;
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 3, s, s + 1, s + 2);
	world_step(w, 10 * SEC);
	purge = before(w, 11 * SEC);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	purge = (struct outbox_purge){ 0 }; /* 0: never */
	assert_int_equal(world_purge(w, &purge).messages, 0);
	purge = before(w, 9 * SEC);
	purged = world_purge(w, &purge);
	assert_int_equal(purged.messages, 3);
	assert_int_equal(purged.failed, 0);
	assert_false(purged.more);
	assert_int_equal(world_messages(w), 0);
	assert_null(world_find(w, "a", s));
}

static void unfinished_ones_stay(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k;
	int64_t s, t;

	world_target(w, "a");
	s = world_publish_many(w, 5);
	world_publish_run(w, "x", 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 7);
	settle_fail(k, 1);
	settle_defer(k, 2, world_now(w) + 100 * OUTBOX_DAYS);
	settle_wait(k, 3, 100 * OUTBOX_DAYS);
	settle_wait(k, 5, 100 * OUTBOX_DAYS);
	settle_park(k, 6);
	worker_advance(k, 0);
	t = world_publish_many(w, 2);
	worker_advance(k, 1); /* one sending, one new */
	world_step(w, 10 * OUTBOX_DAYS);
	purge = before(w, OUTBOX_DAYS);
	assert_int_equal(world_purge(w, &purge).messages, 2); /* s and s + 4 */
	assert_null(world_find(w, "a", s));
	assert_null(world_find(w, "a", s + 4));
	assert_state(w, "a", s + 1, OUTBOX_FAILED, 0);
	assert_state(w, "a", s + 2, OUTBOX_PENDING, OUTBOX_DEFERRED);
	assert_state(w, "a", s + 3, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_state(w, "a", s + 6, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_state(w, "a", t, OUTBOX_SENDING, 0);
	assert_state(w, "a", t + 1, OUTBOX_PENDING, OUTBOX_NEW);
	worker_advance(k, 0); /* and the owner settles what is still there */
	assert_state(w, "a", t, OUTBOX_DELIVERED, 0);
}

static void failed_ones_have_a_retention_of_their_own(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_purged purged;
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_fail(k, 0);
	worker_advance(k, 0);
	world_step(w, 10 * OUTBOX_DAYS);
	purge = before(w, OUTBOX_DAYS);
	purge.failed_before = world_now(w) - 11 * OUTBOX_DAYS;
	purged = world_purge(w, &purge);
	assert_int_equal(purged.messages, 1);
	assert_int_equal(purged.failed, 0);
	purge.failed_before = world_now(w) - 9 * OUTBOX_DAYS;
	purged = world_purge(w, &purge);
	assert_int_equal(purged.messages, 1);
	assert_int_equal(purged.failed, 1);
	assert_int_equal(purged.detours, 1);
	assert_int_equal(world_messages(w), 0);
}

static void what_another_target_needs_stays(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *a, *b;
	int64_t s;

	world_target(w, "a");
	world_target(w, "b");
	s = world_publish_many(w, 3);
	a = worker_start(w, "k", "a", 0);
	b = worker_start(w, "k", "b", 0);
	assert_drains(a, 3, s, s + 1, s + 2);
	worker_advance(b, 1);
	worker_advance(b, 0);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 1);
	assert_drains(b, 2, s + 1, s + 2);
	assert_int_equal(world_purge(w, &purge).messages, 0); /* b settled them just now */
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 2);
}

static void unrouted_ones_go_too(struct store_world *w)
{
	static const char *const types[] = { "wanted" };
	struct outbox_target_def def = target_def("a");
	struct outbox_purge purge;
	struct worker *k;

	def.route.types = types;
	def.route.n_types = 1;
	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	world_publish_many(w, 2);
	world_publish_type(w, "wanted");
	worker_drain(k, (int64_t[1]){ 0 }, 1);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 3);
}

static void a_purge_is_bounded(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_purged purged;
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 7);
	k = worker_start(w, "k", "a", 0);
	worker_drain(k, (int64_t[7]){ 0 }, 7);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	purge.limit = 3;
	for (int left = 7; left > 0; left -= 3) {
		purged = world_purge(w, &purge);
		assert_int_equal(purged.messages, left < 3 ? left : 3);
		assert_int_equal(purged.more, left > 3);
		assert_int_equal(world_messages(w), left > 3 ? left - 3 : 0);
	}
}

static void a_purge_stops_at_the_archive(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 5);
	k = worker_start(w, "k", "a", 0);
	worker_drain(k, (int64_t[5]){ 0 }, 5);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	purge.through_seq = s + 1;
	assert_int_equal(world_purge(w, &purge).messages, 2);
	assert_null(world_find(w, "a", s + 1));
	assert_state(w, "a", s + 2, OUTBOX_DELIVERED, 0);
}

static void only_what_was_archived_goes(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k;
	int64_t s, archived[2];

	world_target(w, "a");
	s = world_publish_many(w, 5);
	k = worker_start(w, "k", "a", 0);
	worker_drain(k, (int64_t[5]){ 0 }, 5);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	purge.only = archived;
	assert_int_equal(world_purge(w, &purge).messages, 0); /* none of them */
	archived[0] = s;
	archived[1] = s + 3;
	purge.n_only = 2;
	purge.through_seq = s + 3;
	assert_int_equal(world_purge(w, &purge).messages, 2);
	assert_null(world_find(w, "a", s + 3));
	assert_state(w, "a", s + 1, OUTBOX_DELIVERED, 0);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 3);
}

static void the_last_receipt_never_goes(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_purged purged;
	int64_t n, seq;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 5; i++) {
		world_publish_many(w, 2);
		worker_drain(k, (int64_t[2]){ 0 }, 2);
		world_step(w, SEC);
	}
	n = world_receipts(w, "a", 0);
	world_step(w, OUTBOX_DAYS);
	purge = before(w, SEC);
	purged = world_purge(w, &purge);
	assert_int_equal(purged.messages, 10);
	assert_true(purged.receipts > 0 && purged.receipts < n + 1);
	assert_int_equal(world_receipts(w, "a", 0), n);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 10);
	assert_int_equal(world_purge(w, &purge).receipts, 0); /* nothing left but the last */

	seq = world_publish(w, "x"); /* the owner goes on, and so does a new one */
	assert_drains(k, 1, seq);
	worker_restart(k);
	seq = world_publish(w, "x");
	assert_drains(k, 1, seq);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 12);
}

static void nothing_goes_without_a_target(struct store_world *w)
{
	struct outbox_claimed *messages;
	struct outbox_purge purge;
	size_t count = 1;

	world_publish_many(w, 3);
	world_step(w, OUTBOX_DAYS);
	purge = before(w, SEC);
	purge.failed_before = world_now(w);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	OK(store_purgeable(w->store, &purge, 0, w->arena, &messages, &count, &w->err));
	assert_int_equal(count, 0);
	assert_int_equal(world_messages(w), 3);
}

static void purgeable_is_what_purge_removes(struct store_world *w)
{
	struct outbox_claimed *messages;
	int64_t s, archived[8] = { 0 };
	struct outbox_purge purge;
	struct worker *k;
	size_t count, total = 0;

	world_target(w, "a");
	s = world_publish_run(w, "x", 6);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 5);
	settle_fail(k, 1);
	settle_fail(k, 3);
	worker_advance(k, 0);
	world_act(w, OUTBOX_DISCARD, "a", s + 3);
	world_step(w, OUTBOX_DAYS);
	purge = before(w, SEC); /* s, s + 2, s + 3, s + 4; s + 1 failed, s + 5 is new */
	purge.limit = 3;
	do {
		int64_t after = total ? archived[total - 1] : 0;

		OK(store_purgeable(w->store, &purge, after, w->arena, &messages, &count, &w->err));
		for (size_t i = 0; i < count; i++) {
			assert_true(total < 8 && messages[i].seq > after);
			assert_int_equal(messages[i].message.size, 2);
			assert_string_equal(messages[i].message.key, "x");
			archived[total++] = messages[i].seq;
		}
	} while (count);
	assert_int_equal(total, 4);
	assert_int_equal(archived[0], s);
	assert_int_equal(archived[1], s + 2);
	assert_int_equal(archived[2], s + 3);
	assert_int_equal(archived[3], s + 4);
	purge.limit = 0;
	assert_int_equal(world_purge(w, &purge).messages, 4);
	for (size_t i = 0; i < total; i++)
		assert_null(world_find(w, "a", archived[i]));
	assert_int_equal(world_messages(w), 2);
}

static void an_id_is_free_again_after_purge(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_purge purge;
	bool repeated = true;
	struct worker *k;
	int64_t seq;

	m.type = "t";
	m.id = "mine";
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	seq = world_publish_message(w, &m);
	assert_drains(k, 1, seq);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 1);
	OK(store_append(w->store, &m, 1, &seq, &repeated, &w->err));
	assert_false(repeated);
	assert_drains(k, 1, seq);
}

static void a_log_that_was_emptied_goes_on(struct store_world *w)
{
	struct outbox_purge purge;
	struct worker *k;
	int64_t last = 0;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	for (int round = 0; round < 4; round++) {
		int64_t first = world_publish_many(w, 100), seqs[100];

		assert_true(first > last); /* a number is never given twice */
		assert_int_equal(worker_drain(k, seqs, 100), 100);
		last = seqs[99];
		world_step(w, 10 * SEC);
		purge = before(w, SEC);
		assert_int_equal(world_purge(w, &purge).messages, 100);
		worker_restart(k);
	}
}

static void an_operators_purge_is_audited(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_audit *rows;
	struct worker *k;
	size_t count;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 3, s, s + 1, s + 2);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	purge.limit = 1;
	assert_int_equal(world_purge(w, &purge).messages, 1); /* a relay's own: no row */
	purge.actor = "olga";
	purge.limit = 10;
	assert_int_equal(world_purge(w, &purge).messages, 2);
	assert_int_equal(world_purge(w, &purge).messages, 0); /* nothing done, nothing told */
	OK(store_audit(w->store, NULL, 100, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].actor, "olga");
	assert_string_equal(rows[0].action, "purge");
	assert_non_null(strstr(rows[0].detail, "2 messages"));
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case purge_cases[] = {
	CASE(delivered_ones_go_after_their_retention),
	CASE(unfinished_ones_stay),
	CASE(failed_ones_have_a_retention_of_their_own),
	CASE(what_another_target_needs_stays),
	CASE(unrouted_ones_go_too),
	CASE(a_purge_is_bounded),
	CASE(a_purge_stops_at_the_archive),
	CASE(only_what_was_archived_goes),
	CASE(the_last_receipt_never_goes),
	CASE(nothing_goes_without_a_target),
	CASE(purgeable_is_what_purge_removes),
	CASE(an_id_is_free_again_after_purge),
	CASE(a_log_that_was_emptied_goes_on),
	CASE(an_operators_purge_is_audited),
	{ NULL, NULL, 0, 0 },
};
