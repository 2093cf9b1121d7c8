/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"
#include "store_world.h"

#include <stdio.h>
#include <stdlib.h>

static int64_t new_token(struct worker *k)
{
	return (int64_t)(k->random.base.next(&k->random.base) >> 1);
}

struct worker *worker_new(struct store_world *w, const char *owner, const char *target)
{
	struct worker *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->w = w;
	k->next = w->workers;
	w->workers = k;
	snprintf(k->owner, sizeof(k->owner), "%s", owner);
	snprintf(k->target, sizeof(k->target), "%s", target);
	k->version = 1;
	random_init(&k->random, 100 + w->seeds++);
	k->arena = outbox_arena_new((size_t)64 << 20);
	assert_non_null(k->arena);
	k->store = world_open(w, &k->random.base);
	return k;
}

void worker_lease(struct worker *k)
{
	struct outbox_lease_request request = { .target = k->target,
						.owner = k->owner,
						.duration = LEASE,
						.route_version = k->version };
	struct store_world *w = k->w;

	OK(store_lease(k->store, &request, &k->lease, &w->err));
}

int worker_try_take(struct worker *k, int lane)
{
	int status = store_take_over(k->store, k->target, lane, k->owner, new_token(k), &k->head,
				     &k->err);

	if (status == OUTBOX_OK) {
		k->lane = lane;
		k->n = k->head.n;
		k->fence_token = k->head.fence_token;
		k->claim.count = 0;
	}
	return status;
}

void worker_take(struct worker *k, int lane)
{
	struct store_world *w = k->w;
	int status = worker_try_take(k, lane);

	w->err = k->err;
	OK(status);
}

struct worker *worker_start(struct store_world *w, const char *owner, const char *target, int lane)
{
	struct worker *k = worker_new(w, owner, target);
	bool leased = false;

	worker_lease(k);
	for (int i = 0; i < k->lease.count; i++)
		leased |= k->lease.lanes[i] == lane;
	assert_true(leased);
	worker_take(k, lane);
	return k;
}

void worker_restart(struct worker *k)
{
	worker_lease(k);
	worker_take(k, k->lane);
}

static void prepare(struct worker *k)
{
	assert_true(k->claim.count <= CLAIM_MAX);
	for (size_t i = 0; i < k->claim.count; i++)
		k->settled[i] = (struct outbox_settlement){ .seq = k->claim.items[i].seq,
							    .outcome = OUTBOX_OUT_DELIVERED,
							    .attempts = k->claim.items[i].attempts };
}

void worker_answered(struct worker *k, const struct outbox_claim *claim)
{
	k->claim = *claim;
	k->n = claim->n;
	k->fence_token = claim->fence_token;
	prepare(k);
}

static int send_request(struct worker *k)
{
	struct outbox_claim claim = { 0 };
	int status;

	outbox_arena_reset(k->arena);
	status = store_settle_and_claim(k->store, &k->last, k->arena, &claim, &k->err);
	if (status == OUTBOX_OK)
		worker_answered(k, &claim);
	return status;
}

struct outbox_settle_and_claim worker_request(struct worker *k, size_t max, size_t max_bytes)
{
	memcpy(k->last_settled, k->settled, k->claim.count * sizeof(k->settled[0]));
	k->last = (struct outbox_settle_and_claim){ .target = k->target,
						    .lane = k->lane,
						    .owner = k->owner,
						    .n = k->n,
						    .fence_token = k->fence_token,
						    .new_token = new_token(k),
						    .route_version = k->version,
						    .settled = k->last_settled,
						    .n_settled = k->claim.count,
						    .max_messages = max,
						    .max_bytes = max_bytes };
	return k->last;
}

int worker_try_advance(struct worker *k, size_t max, size_t max_bytes)
{
	worker_request(k, max, max_bytes);
	return send_request(k);
}

size_t worker_advance(struct worker *k, size_t max)
{
	struct store_world *w = k->w;
	int status = worker_try_advance(k, max, BYTES);

	w->err = k->err;
	OK(status);
	return k->claim.count;
}

int worker_repeat(struct worker *k)
{
	return send_request(k);
}

void settle_wait(struct worker *k, size_t i, outbox_time delay)
{
	k->settled[i].outcome = OUTBOX_OUT_WAITING;
	k->settled[i].attempts = k->claim.items[i].attempts + 1;
	k->settled[i].delay = delay;
	k->settled[i].error = "try again";
}

void settle_suspect(struct worker *k, size_t i, outbox_time delay)
{
	settle_wait(k, i, delay);
	k->settled[i].attempts = k->claim.items[i].attempts;
	k->settled[i].suspect = true;
}

void settle_fail(struct worker *k, size_t i)
{
	k->settled[i].outcome = OUTBOX_OUT_FAILED;
	k->settled[i].attempts = k->claim.items[i].attempts + 1;
	k->settled[i].error = "will never do";
}

void settle_defer(struct worker *k, size_t i, outbox_time due_at)
{
	k->settled[i].outcome = OUTBOX_OUT_DEFERRED;
	k->settled[i].due_at = due_at;
}

void settle_park(struct worker *k, size_t i)
{
	k->settled[i].outcome = OUTBOX_OUT_PARKED;
}

void settle_return(struct worker *k, size_t i)
{
	k->settled[i].outcome = OUTBOX_OUT_RETURNED;
}

void settle_blocked(struct worker *k)
{
	for (size_t i = 0; i < k->claim.count; i++) {
		if (k->claim.items[i].blocked)
			settle_park(k, i);
	}
}

size_t worker_drain(struct worker *k, int64_t *seqs, size_t capacity)
{
	size_t count = 0;

	if (!k->claim.count)
		worker_advance(k, MANY);
	while (k->claim.count) {
		for (size_t i = 0; i < k->claim.count; i++) {
			if (k->claim.items[i].blocked)
				continue;
			assert_true(count < capacity);
			seqs[count++] = k->claim.items[i].seq;
		}
		settle_blocked(k);
		worker_advance(k, MANY);
	}
	return count;
}

static void assert_seqs(const int64_t *seqs, size_t found, size_t count, va_list expected)
{
	for (size_t i = 0; i < count; i++) {
		int64_t seq = va_arg(expected, int64_t);

		if (i < found && seqs[i] != seq)
			print_error("place %zu: seq %lld, expected %lld\n", i, (long long)seqs[i],
				    (long long)seq);
		assert_true(i < found && seqs[i] == seq);
	}
	assert_int_equal(found, count);
}

void assert_claim(const struct worker *k, size_t count, ...)
{
	int64_t seqs[CLAIM_MAX];
	va_list expected;

	for (size_t i = 0; i < k->claim.count; i++)
		seqs[i] = k->claim.items[i].seq;
	va_start(expected, count);
	assert_seqs(seqs, k->claim.count, count, expected);
	va_end(expected);
}

void assert_drains(struct worker *k, size_t count, ...)
{
	int64_t seqs[CLAIM_MAX];
	size_t found = worker_drain(k, seqs, CLAIM_MAX);
	va_list expected;

	va_start(expected, count);
	assert_seqs(seqs, found, count, expected);
	va_end(expected);
}
