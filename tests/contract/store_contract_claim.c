/* SPDX-License-Identifier: Apache-2.0 */

/* Claiming new messages and settling them. */

#include "store_world.h"

static void claims_come_in_seq_order(struct store_world *w)
{
	int64_t first = world_publish_many(w, 100), last = first - 1;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	while (worker_advance(k, 7)) {
		assert_true(k->claim.count <= 7);
		for (size_t i = 0; i < k->claim.count; i++) {
			assert_true(k->claim.items[i].seq > last);
			last = k->claim.items[i].seq;
		}
	}
	assert_int_equal(last, first + 99);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 100);
}

static void a_claim_is_cut_by_count(struct store_world *w)
{
	struct worker *k;

	world_publish_many(w, 5);
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 2), 2);
	assert_int_equal(worker_advance(k, 2), 2);
	assert_int_equal(worker_advance(k, 2), 1);
	assert_int_equal(worker_advance(k, 2), 0);
}

static void a_claim_is_cut_by_bytes(struct store_world *w)
{
	int64_t s[4];
	struct worker *k;

	for (size_t i = 0; i < 4; i++)
		s[i] = world_publish_size(w, 100);
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	OK(worker_try_advance(k, MANY, 200)); /* exactly two fit */
	assert_claim(k, 2, s[0], s[1]);
	OK(worker_try_advance(k, MANY, 199));
	assert_claim(k, 1, s[2]);
	OK(worker_try_advance(k, MANY, 199));
	assert_claim(k, 1, s[3]);
}

static void headers_count_for_the_bytes(struct store_world *w)
{
	struct outbox_header headers[] = { { "tenant", "12345678901234567890" } };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t s[4];
	struct worker *k;

	m.type = "t";
	m.data = "{}";
	m.size = 2;
	m.headers = headers;
	m.n_headers = 1;
	for (size_t i = 0; i < 4; i++)
		s[i] = world_publish_message(w, &m);
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	OK(worker_try_advance(k, MANY, 2 * (2 + strlen("{\"tenant\":\"12345678901234567890\"}"))));
	assert_claim(k, 2, s[0], s[1]);
	OK(worker_try_advance(k, MANY, 60));
	assert_claim(k, 1, s[2]);
	OK(worker_try_advance(k, MANY, 60));
	assert_claim(k, 1, s[3]);
}

static void the_first_message_is_always_taken(struct store_world *w)
{
	int64_t small = world_publish_size(w, 10), large = world_publish_size(w, 5000);
	int64_t after = world_publish_size(w, 10);
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	OK(worker_try_advance(k, MANY, 100));
	assert_claim(k, 1, small);
	OK(worker_try_advance(k, MANY, 100));
	assert_claim(k, 1, large);
	assert_int_equal(k->claim.items[0].message.size, 5000);
	OK(worker_try_advance(k, MANY, 100));
	assert_claim(k, 1, after);
	OK(worker_try_advance(k, MANY, 0));
	assert_claim(k, 0);
}

static void a_claim_hides_nothing_from_other_targets(struct store_world *w)
{
	int64_t x = world_publish(w, "x"), y = world_publish(w, "x");
	struct worker *a, *b;

	world_target(w, "a");
	world_target(w, "b");
	a = worker_start(w, "k", "a", 0);
	b = worker_start(w, "k", "b", 0);
	worker_advance(a, MANY);
	assert_claim(a, 2, x, y);
	worker_advance(b, 1);
	assert_claim(b, 1, x);
	settle_fail(a, 0);
	worker_advance(a, 0);
	assert_state(w, "a", x, OUTBOX_FAILED, 0);
	assert_state(w, "b", x, OUTBOX_SENDING, 0);
	assert_state(w, "b", y, OUTBOX_PENDING, OUTBOX_NEW);
	assert_drains(b, 2, x, y);
}

static void an_idle_lane_writes_nothing(struct store_world *w)
{
	struct worker *k;
	int64_t n, token;
	const char *picture;

	world_target(w, "a");
	world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_drain(k, (int64_t[4]){ 0 }, 4);
	n = k->n;
	token = k->fence_token;
	picture = world_picture(w);
	for (int i = 0; i < 5; i++) {
		world_step(w, 0);
		assert_int_equal(worker_advance(k, MANY), 0);
		assert_int_equal(k->n, n);
		assert_int_equal(k->fence_token, token);
	}
	assert_string_equal(world_picture(w), picture);
	assert_int_equal(world_receipts(w, "a", 0), n);
}

static void a_receipt_is_one_further(struct store_world *w)
{
	struct worker *k;
	int64_t n;

	world_target(w, "a");
	world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	n = k->n;
	for (int i = 0; i < 3; i++) {
		worker_advance(k, 1);
		assert_int_equal(k->n, ++n);
		assert_int_equal(k->fence_token, k->last.new_token);
		assert_int_equal(world_receipts(w, "a", 0), n);
	}
	worker_advance(k, 1); /* settles the last one */
	assert_int_equal(k->n, n + 1);
}

static void settling_without_claiming(struct store_world *w)
{
	int64_t x = world_publish(w, "x"), y = world_publish(w, "y");
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_int_equal(worker_advance(k, 0), 0);
	assert_state(w, "a", x, OUTBOX_DELIVERED, 0);
	assert_state(w, "a", y, OUTBOX_PENDING, OUTBOX_NEW);
	assert_drains(k, 1, y);
}

static void sending_and_delivered_are_visible(struct store_world *w)
{
	int64_t seq = world_publish(w, "x");
	const struct outbox_delivery *row;
	struct worker *k;

	world_target(w, "a");
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_PENDING);
	assert_int_equal(row->last_status_at, 0);
	assert_int_equal(row->created_at, world_now(w));
	k = worker_start(w, "worker-1", "a", 0);
	world_step(w, SEC);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.store_now, world_now(w));
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_SENDING);
	assert_string_equal(row->owner, "worker-1");
	world_step(w, SEC);
	worker_advance(k, MANY);
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_DELIVERED);
	assert_string_equal(row->owner, "worker-1");
	assert_int_equal(row->last_status_at, world_now(w));
	assert_string_equal(row->key, "x");
	assert_string_equal(row->type, "t");
	assert_string_equal(row->target, "a");
	assert_int_equal(row->attempts, 0);
}

static void a_returned_tail_leaves_no_trace(struct store_world *w)
{
	int64_t a = world_publish(w, "x"), b = world_publish(w, "y"), c = world_publish(w, "z");
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_return(k, 1);
	settle_return(k, 2);
	worker_advance(k, 0);
	assert_state(w, "a", a, OUTBOX_DELIVERED, 0);
	assert_state(w, "a", b, OUTBOX_PENDING, OUTBOX_NEW);
	assert_state(w, "a", c, OUTBOX_PENDING, OUTBOX_NEW);
	assert_int_equal(world_row(w, "a", b)->last_status_at, 0);
	worker_advance(k, MANY);
	assert_claim(k, 2, b, c);
	assert_false(k->claim.items[0].detour);
}

static void a_whole_returned_claim_comes_again(struct store_world *w)
{
	int64_t first = world_publish_many(w, 5);
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 5; i++)
			settle_return(k, i);
		worker_advance(k, MANY);
		assert_claim(k, 5, first, first + 1, first + 2, first + 3, first + 4);
		assert_int_equal(k->claim.items[0].attempts, 0);
		assert_false(k->claim.items[0].detour);
	}
	assert_int_equal(world_stats(w, "a")->delivered_ever, 0);
}

static void a_returned_hole_becomes_a_due_detour(struct store_world *w)
{
	int64_t a = world_publish(w, "x"), b = world_publish(w, "y");
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_return(k, 0);
	worker_advance(k, 0);
	assert_state(w, "a", a, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_state(w, "a", b, OUTBOX_DELIVERED, 0);
	worker_advance(k, MANY); /* at once: the clock stands still */
	assert_claim(k, 1, a);
	assert_true(k->claim.items[0].detour);
	assert_int_equal(k->claim.items[0].attempts, 0);
	assert_int_equal(k->claim.items[0].failing_since, 0);
	settle_return(k, 0); /* a detour stays one, and is due again */
	worker_advance(k, MANY);
	assert_claim(k, 1, a);
}

static void an_unknown_lane_is_told(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	k->lane = 1;
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_ENOTFOUND);
	k->lane = 0;
	strcpy(k->target, "nobody");
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_ENOTFOUND);
	assert_non_null(strstr(k->err.message, "nobody"));
	assert_int_equal(worker_try_take(k, 0), OUTBOX_ENOTFOUND);
}

const struct store_case claim_cases[] = {
	{ "claims_come_in_seq_order", claims_come_in_seq_order, 0, 0 },
	{ "a_claim_is_cut_by_count", a_claim_is_cut_by_count, 0, 0 },
	{ "a_claim_is_cut_by_bytes", a_claim_is_cut_by_bytes, 0, 0 },
	{ "headers_count_for_the_bytes", headers_count_for_the_bytes, 0, 0 },
	{ "the_first_message_is_always_taken", the_first_message_is_always_taken, 0, 0 },
	{ "a_claim_hides_nothing_from_other_targets", a_claim_hides_nothing_from_other_targets, 0, 0 },
	{ "an_idle_lane_writes_nothing", an_idle_lane_writes_nothing, 0, 0 },
	{ "a_receipt_is_one_further", a_receipt_is_one_further, 0, 0 },
	{ "settling_without_claiming", settling_without_claiming, 0, 0 },
	{ "sending_and_delivered_are_visible", sending_and_delivered_are_visible, 0, 0 },
	{ "a_returned_tail_leaves_no_trace", a_returned_tail_leaves_no_trace, 0, 0 },
	{ "a_whole_returned_claim_comes_again", a_whole_returned_claim_comes_again, 0, 0 },
	{ "a_returned_hole_becomes_a_due_detour", a_returned_hole_becomes_a_due_detour, 0, 0 },
	{ "an_unknown_lane_is_told", an_unknown_lane_is_told, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
