/* SPDX-License-Identifier: Apache-2.0 */

/* Several lanes: who reads what, and lanes that have nothing to read. */

#include "store_world.h"

#include "core/key_hash.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>

static void lanes_partition_all_messages(struct store_world *w)
{
	int seen[400] = { 0 };
	int64_t first = 0, seqs[CLAIM_MAX];
	struct worker *k = worker_new(w, "k", "a");

	for (int i = 0; i < 200; i++) {
		char key[24];
		int64_t seq;

		snprintf(key, sizeof(key), "order-%d", i % 67);
		seq = world_publish(w, i % 4 ? key : NULL);
		first = first ? first : seq;
	}
	world_target(w, "a");
	worker_lease(k);
	assert_int_equal(k->lease.count, 4);
	for (int lane = 0; lane < 4; lane++) {
		size_t count;

		worker_take(k, lane);
		count = worker_drain(k, seqs, CLAIM_MAX);
		assert_true(count > 0);
		for (size_t i = 0; i < count; i++) {
			const struct outbox_delivery *row = world_row(w, "a", seqs[i]);

			seen[seqs[i] - first]++;
			assert_int_equal(row->lane, lane);
			assert_int_equal(key_hash(row->key ? row->key : row->id) % 4, lane);
		}
	}
	for (int i = 0; i < 200; i++)
		assert_int_equal(seen[i], 1);
}

static void a_key_stays_in_its_lane(struct store_world *w)
{
	int64_t mine[3], seq;
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 2);
	for (int i = 0; i < 3; i++) {
		mine[i] = world_publish(w, key_in_lane(w, 2, 5));
		world_publish(w, key_in_lane(w, 1, 0));
		world_publish(w, key_in_lane(w, 3, 0));
	}
	assert_drains(k, 3, mine[0], mine[1], mine[2]);
	seq = world_publish(w, key_in_lane(w, 2, 5));
	assert_drains(k, 1, seq);
}

static void an_idle_lane_follows_the_log(struct store_world *w)
{
	const char *other = key_in_lane(w, 0, 0), *own = key_in_lane(w, 1, 0);
	struct worker *k;
	int64_t n, seq;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 1);
	n = k->n;
	world_publish_run(w, other, 990);
	assert_int_equal(worker_advance(k, MANY), 0);
	assert_int_equal(k->n, n); /* not yet */
	world_publish_run(w, other, 30);
	assert_int_equal(worker_advance(k, MANY), 0);
	assert_int_equal(k->n, n + 1);
	assert_int_equal(k->fence_token, k->last.new_token);
	assert_int_equal(worker_advance(k, MANY), 0);
	assert_int_equal(k->n, n + 1); /* once is enough */

	seq = world_publish(w, own);
	assert_drains(k, 1, seq);
	assert_int_equal(world_stats(w, "a")->pending, 1020); /* the other lane's */
}

static void an_idle_target_follows_the_log(struct store_world *w)
{
	static const char *const types[] = { "wanted" };
	struct outbox_target_def def = target_def("a");
	struct worker *k;
	int64_t n, seq;

	def.route.types = types;
	def.route.n_types = 1;
	world_target_put(w, &def);
	k = worker_start(w, "k", "a", 0);
	n = k->n;
	world_publish_many(w, 1100);
	assert_int_equal(worker_advance(k, MANY), 0);
	assert_int_equal(k->n, n + 1);
	seq = world_publish_type(w, "wanted");
	world_publish_many(w, 1100);
	assert_drains(k, 1, seq);
}

static void a_lane_that_follows_can_be_taken_over(struct store_world *w)
{
	const char *other = key_in_lane(w, 0, 0), *own = key_in_lane(w, 1, 0);
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 1);
	world_publish_run(w, other, 1100);
	worker_advance(k, MANY);
	OK(worker_repeat(k)); /* the reply was lost: done once */
	assert_int_equal(k->claim.count, 0);
	seq = world_publish(w, own);
	worker_restart(k);
	assert_int_equal(k->head.takeovers, 0);
	assert_drains(k, 1, seq);
}

/* ---- threads ------------------------------------------------------------------------------- */

#define THREADS 4
#define PER_THREAD 150

struct reader {
	struct store_world *w;
	struct outbox_store *store;
	struct random_state random;
	int lane;
	int64_t seqs[THREADS * PER_THREAD];
	size_t count;
	int status;
	struct outbox_error err;
};

/* No assertion of cmocka's here: they may only fail on the main thread. */
static int read_lane(struct reader *r, struct outbox_arena *arena)
{
	struct outbox_settlement settled[16];
	struct outbox_claim claim = { 0 };
	struct outbox_head head;
	int idle = 0, status;

	status = store_take_over(r->store, "a", r->lane, "k", 7 + r->lane, &head, &r->err);
	if (status)
		return status;
	claim.n = head.n;
	claim.fence_token = head.fence_token;
	while (idle < 3) {
		struct outbox_settle_and_claim request = { .target = "a",
							   .lane = r->lane,
							   .owner = "k",
							   .n = claim.n,
							   .fence_token = claim.fence_token,
							   .route_version = 1,
							   .settled = settled,
							   .n_settled = claim.count,
							   .max_messages = 16,
							   .max_bytes = BYTES };

		request.new_token = (int64_t)(r->random.base.next(&r->random.base) >> 1);
		for (size_t i = 0; i < claim.count; i++)
			settled[i] = (struct outbox_settlement){
				.seq = r->seqs[r->count - claim.count + i],
				.outcome = OUTBOX_OUT_DELIVERED
			};
		do {
			outbox_arena_reset(arena);
			status = store_settle_and_claim(r->store, &request, arena, &claim, &r->err);
		} while (status == OUTBOX_EBUSY);
		if (status)
			return status;
		idle = claim.count ? 0 : idle + 1;
		for (size_t i = 0; i < claim.count && r->count < THREADS * PER_THREAD; i++)
			r->seqs[r->count++] = claim.items[i].seq;
	}
	return OUTBOX_OK;
}

static void *reader_run(void *argument)
{
	struct outbox_arena *arena = outbox_arena_new((size_t)16 << 20);
	struct reader *r = argument;

	r->status = arena ? read_lane(r, arena) : OUTBOX_ENOMEM;
	outbox_arena_free(arena);
	return NULL;
}

static void threads_never_share_a_message(struct store_world *w)
{
	static struct reader readers[THREADS];
	int seen[THREADS * PER_THREAD] = { 0 };
	struct worker *k = worker_new(w, "k", "a");
	pthread_t threads[THREADS];
	int64_t first;

	world_target(w, "a");
	worker_lease(k);
	assert_int_equal(k->lease.count, THREADS);
	first = world_publish_many(w, THREADS * PER_THREAD);
	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){ .w = w, .lane = i };
		random_init(&readers[i].random, 900 + (uint64_t)i);
		readers[i].store = world_open(w, &readers[i].random.base);
		assert_int_equal(pthread_create(&threads[i], NULL, reader_run, &readers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		store_close(readers[i].store);
		w->err = readers[i].err;
		OK(readers[i].status);
		for (size_t j = 0; j < readers[i].count; j++)
			seen[readers[i].seqs[j] - first]++;
	}
	for (int i = 0; i < THREADS * PER_THREAD; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(world_stats(w, "a")->delivered_ever, THREADS * PER_THREAD);
}

const struct store_case lanes_cases[] = {
	{ "lanes_partition_all_messages", lanes_partition_all_messages, 4, 0 },
	{ "a_key_stays_in_its_lane", a_key_stays_in_its_lane, 4, 0 },
	{ "an_idle_lane_follows_the_log", an_idle_lane_follows_the_log, 2, 0 },
	{ "an_idle_target_follows_the_log", an_idle_target_follows_the_log, 0, 0 },
	{ "a_lane_that_follows_can_be_taken_over", a_lane_that_follows_can_be_taken_over, 2, 0 },
	{ "threads_never_share_a_message", threads_never_share_a_message, THREADS, 0 },
	{ NULL, NULL, 0, 0 },
};
