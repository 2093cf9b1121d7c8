/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_stores.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "frozen_clock.h"
#include "fuzz.h"
#include "memory_store/memory.h"
#include "store/sqlite/ops.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#define MESSAGES 40
#define CLAIM 12

static struct frozen_clock frozen;
static struct random_state randoms[2];
static struct memory_db *memory;
static struct fuzz_store made[2];

static void must(int status, const struct outbox_error *err)
{
	if (status == OUTBOX_OK)
		return;
	fprintf(stderr, "%s\n", err->message);
	abort();
}

static void fill(struct outbox_store *store)
{
	static const char *const types[] = { "order.placed", "order.paid", "user.\xc3\xa9", "x" };
	static const char *const keys[] = { NULL, "1", "2", "k*", "\xc3\xa9" };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	for (int i = 0; i < MESSAGES; i++) {
		struct outbox_message m = OUTBOX_MESSAGE_INIT;
		char id[16];

		snprintf(id, sizeof(id), "m-%d", i + 1);
		m.id = id;
		m.type = types[i % (int)ARRAY_SIZE(types)];
		m.key = keys[i % (int)ARRAY_SIZE(keys)];
		m.kind = i % 7 == 0 ? OUTBOX_KIND_COMMAND : OUTBOX_KIND_EVENT;
		m.event_time = FUZZ_START;
		m.data = "{}";
		m.size = 2;
		must(store_append(store, &m, 1, NULL, NULL, &err), &err);
	}
}

static int outcome_of(const struct outbox_claimed *claimed)
{
	static const int outcomes[] = { OUTBOX_OUT_DELIVERED, OUTBOX_OUT_WAITING,
					OUTBOX_OUT_DELIVERED, OUTBOX_OUT_FAILED,
					OUTBOX_OUT_DEFERRED };

	return claimed->blocked ? OUTBOX_OUT_PARKED : outcomes[claimed->seq % 5];
}

/* Claim, settle with everything there is, claim again: that stays in flight. */
static void work(struct fuzz_store *s, const char *target, int64_t version)
{
	struct outbox_lease_request lease = {
		.target = target, .owner = "me", .duration = OUTBOX_HOURS, .route_version = version
	};
	struct outbox_settlement settled[CLAIM] = { 0 };
	struct outbox_settle_and_claim request = { .target = target,
						   .owner = "me",
						   .route_version = version,
						   .max_messages = CLAIM,
						   .max_bytes = (size_t)1 << 20,
						   .settled = settled };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease held;
	struct outbox_head head;
	struct outbox_claim claim = { 0 };

	must(store_lease(s->store, &lease, &held, &err), &err);
	CHECK(held.count == 1);
	must(store_take_over(s->store, target, 0, "me", 1, &head, &err), &err);
	claim.n = head.n;
	claim.fence_token = head.fence_token;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < claim.count; i++)
			settled[i] = (struct outbox_settlement){
				.seq = claim.items[i].seq,
				.outcome = outcome_of(&claim.items[i]),
				.attempts = 1,
				.delay = OUTBOX_HOURS,
				.due_at = FUZZ_START + OUTBOX_DAYS,
				.error = "no",
			};
		request.n_settled = claim.count;
		request.n = claim.n;
		request.fence_token = claim.fence_token;
		request.new_token = round + 2;
		must(store_settle_and_claim(s->store, &request, s->arena, &claim, &err), &err);
		CHECK(claim.count > 0);
	}
}

static void discard(struct outbox_store *store)
{
	const char *id = "m-2";
	struct outbox_filter filter = { .struct_size = sizeof(filter), .ids = &id, .n_ids = 1 };
	struct outbox_act act = { .action = OUTBOX_DISCARD,
				  .actor = "somebody",
				  .reason = "no longer wanted",
				  .filter = &filter };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_acted acted;

	must(store_act(store, &act, &acted, &err), &err);
}

static void make(struct fuzz_store *s, const struct outbox_store_config *config)
{
	const struct outbox_store_ops *ops = config->context ? &memory_store_ops : &sqlite_store_ops;
	struct outbox_init_options options = { .struct_size = sizeof(options), .lanes = 1 };
	struct outbox_target_def all = { .name = "events", .start = OUTBOX_START_OLDEST };
	struct outbox_target_def some = { .name = "partner", .start = OUTBOX_START_OLDEST };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int64_t version;

	some.route.kind = OUTBOX_KIND_EVENT;
	s->arena = outbox_arena_new((size_t)64 << 20);
	CHECK(s->arena);
	must(store_open(ops, config, true, &s->store, &err), &err);
	must(store_init(s->store, &options, &err), &err);
	fill(s->store);
	must(store_target_put(s->store, &all, &version, &err), &err);
	work(s, "events", version);
	must(store_target_put(s->store, &some, &version, &err), &err);
	work(s, "partner", version);
	discard(s->store);
	must(store_target_pause(s->store, "partner", true, "somebody", "why not", &err), &err);
}

static void unmake(void)
{
	for (int i = 0; i < 2; i++) {
		store_close(made[i].store);
		outbox_arena_free(made[i].arena);
	}
	memory_db_free(memory);
}

void fuzz_stores(struct fuzz_store stores[2])
{
	struct outbox_store_config config = { .struct_size = sizeof(config) };
	char url[128];

	if (!made[0].store) {
		snprintf(url, sizeof(url), "sqlite:%s/app.db", fuzz_folder());
		frozen_clock_init(&frozen, FUZZ_START);
		memory = memory_db_new("fuzz", &frozen.base, 1);
		for (int i = 0; i < 2; i++) {
			random_init(&randoms[i], 1);
			config.url = i ? url : "memory:fuzz";
			config.clock = &frozen.base;
			config.random = &randoms[i].base;
			config.context = i ? NULL : memory;
			make(&made[i], &config);
		}
		CHECK(atexit(unmake) == 0);
	}
	stores[0] = made[0];
	stores[1] = made[1];
}
