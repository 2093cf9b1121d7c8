/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one call costs the server when there is little to do: looking for work where there is none, and one message that
 * is claimed and settled, through the store as a relay uses it. Measured is the CPU of the connection's own process, to
 * the nanosecond, so that waiting for the disk does not count. In turn with "SELECT 1" and with a message that the SKIP
 * LOCKED loop claims and marks.
 */

#include "../latency.h"
#include "base/random.h"
#include "bench.h"
#include "relay/registry.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 4
#define DONE 10000 /* messages before: statements are not planned for empty tables */
#define OWNER "bench"
#define WANTED 150 /* microseconds */

/* What a relay's worker has, with all lanes of its target. */
struct worker {
	struct outbox_store *store;
	struct random_state random;
	struct outbox_arena *arena;
	char target[32];
	int64_t version;
	int lanes[LANES], count;
	int64_t n[LANES], tokens[LANES];
	int pid; /* of the server's process */
};

static void take_lanes(struct worker *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease lease = { 0 };

	if (store_lease(w->store,
			&(struct outbox_lease_request){ .target = w->target,
							.owner = OWNER,
							.duration = OUTBOX_HOURS,
							.route_version = w->version },
			&lease, &err))
		die("lease", err.message);
	for (int i = 0; i < lease.count; i++) {
		struct outbox_head head;

		if (store_take_over(w->store, w->target, lease.lanes[i], OWNER, 1, &head, &err))
			die("take over", err.message);
		w->lanes[i] = lease.lanes[i];
		w->n[i] = head.n;
		w->tokens[i] = head.fence_token;
	}
	w->count = lease.count;
}

static void open_worker(struct worker *w, const struct place *place)
{
	struct outbox_target_def target = { .name = w->target, .start = OUTBOX_START_NOW };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	*w = (struct worker){ .arena = outbox_arena_new((size_t)1 << 20) };
	snprintf(w->target, sizeof(w->target), "%s", place_target());
	random_init(&w->random, random_system_seed());
	if (registry_open_store(NULL, place->url, false, outbox_clock_system(), &w->random.base,
				&w->store, &err) ||
	    store_target_put(w->store, &target, &w->version, &err))
		die("store", err.message);
	take_lanes(w);
	w->pid = (int)pg_number(place->db,
				"SELECT pid FROM pg_stat_activity WHERE"
				" datname = current_database() AND application_name = 'outbox'");
}

static void close_worker(struct worker *w)
{
	store_close(w->store);
	outbox_arena_free(w->arena);
}

static void look_at_lanes(struct worker *w)
{
	struct outbox_look look = { .target = w->target,
				    .route_version = w->version,
				    .count = (size_t)w->count,
				    .lanes = w->lanes,
				    .n = w->n,
				    .fence_tokens = w->tokens };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_looked looked;

	if (store_look(w->store, &look, &looked, &err))
		die("look", err.message);
	for (int i = 0; i < w->count; i++)
		if (looked.work[i])
			die("look", "there was something");
}

/* Settle this message as delivered, if it is not 0, and claim in the first lane. Returns what was claimed, or 0. */
static int64_t settle_and_claim(struct worker *w, int64_t seq)
{
	struct outbox_settlement settled = { .seq = seq, .outcome = OUTBOX_OUT_DELIVERED };
	struct outbox_settle_and_claim request = { .target = w->target,
						   .lane = w->lanes[0],
						   .owner = OWNER,
						   .n = w->n[0],
						   .fence_token = w->tokens[0],
						   .new_token = w->tokens[0] + 1,
						   .route_version = w->version,
						   .settled = &settled,
						   .n_settled = seq ? 1 : 0,
						   .max_messages = 500,
						   .max_bytes = (size_t)8 << 20 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_claim claim;

	outbox_arena_reset(w->arena);
	if (store_settle_and_claim(w->store, &request, w->arena, &claim, &err))
		die("settle and claim", err.message);
	w->n[0] = claim.n;
	w->tokens[0] = claim.fence_token;
	return claim.count ? claim.items[0].seq : 0;
}

/* What the variants work with. */
struct calls {
	struct worker one, four; /* with so many lanes */
	PGconn *plain;
	struct latency_store ours,
		peer; /* to publish into the log and into the table of SKIP LOCKED */
	void *our_publisher, *peer_publisher;
};

static void run_select(struct calls *calls)
{
	pg_run(calls->plain, "SELECT 1");
}

static void run_look(struct calls *calls)
{
	look_at_lanes(&calls->one);
}

static void run_look_at_four(struct calls *calls)
{
	look_at_lanes(&calls->four);
}

static void run_claim_of_nothing(struct calls *calls)
{
	if (settle_and_claim(&calls->one, 0))
		die("settle and claim", "there was something");
}

static void run_ours(struct calls *calls)
{
	int64_t seq;

	calls->ours.publish(calls->our_publisher, "key");
	seq = settle_and_claim(&calls->one, 0);
	if (!seq || settle_and_claim(&calls->one, seq))
		die("settle and claim", "it did not find the one message");
}

static void run_peer(struct calls *calls)
{
	calls->peer.publish(calls->peer_publisher, "key");
	if (peer_cycle(calls->plain, NULL) != 1)
		die("SKIP LOCKED", "it did not find the one message");
}

enum who { PLAIN, ONE, FOUR };

static const struct variant {
	const char *what; /* NULL: only beside others */
	void (*run)(struct calls *calls);
	enum who who;
	int calls; /* of the server, in each run */
	int beside;
	const char *beside_what;
} variants[] = {
	{ NULL, run_select, PLAIN, 1, 0, NULL },
	{ NULL, run_peer, PLAIN, 2, 0, NULL },
	{ "server CPU, one look, nothing to do, 1 lane", run_look, ONE, 1, 0, "SELECT 1" },
	{ "server CPU, one look, nothing to do, 4 lanes", run_look_at_four, FOUR, 1, 0, "SELECT 1" },
	{ "server CPU, one claim, nothing to do", run_claim_of_nothing, ONE, 1, 0, "SELECT 1" },
	{ "server CPU, claim or settlement of one message", run_ours, ONE, 2, 1, "SKIP LOCKED" },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* CPU of the server in microseconds a call. */
static double measure(struct calls *calls, const struct variant *variant, int runs)
{
	int pids[] = {
		[PLAIN] = PQbackendPID(calls->plain), [ONE] = calls->one.pid, [FOUR] = calls->four.pid
	};
	int pid = pids[variant->who];
	double start;

	variant->run(calls); /* whatever the first one prepares */
	start = process_cpu(pid);
	for (int i = 0; i < runs; i++)
		variant->run(calls);
	return (process_cpu(pid) - start) * 1e6 / runs / variant->calls;
}

static void measure_all(struct calls *calls, const struct sizes *sizes)
{
	struct series costs[VARIANTS] = { 0 };

	for (int i = 0; i < sizes->repeats; i++)
		for (size_t v = 0; v < VARIANTS; v++)
			series_add(&costs[v], measure(calls, &variants[v], sizes->calls));
	for (size_t v = 0; v < VARIANTS; v++)
		if (variants[v].what)
			report(&(struct line){ .bench = "call",
					       .what = variants[v].what,
					       .value = series_median(&costs[v]),
					       .unit = "us",
					       .beside = series_median(&costs[variants[v].beside]),
					       .beside_what = variants[v].beside_what,
					       .want = AT_MOST,
					       .wanted = WANTED });
}

void bench_call(const struct bench *bench)
{
	static struct calls calls;
	struct place one, four;

	place_make(&one, bench, "call1", 1);
	place_make(&four, bench, "call4", LANES);
	place_fill(&one, DONE);
	place_fill(&four, DONE);
	open_worker(&calls.one, &one);
	open_worker(&calls.four, &four);
	calls.plain = pg_open(one.url);
	peer_make_done(calls.plain, DONE);
	peer_prepare(calls.plain);
	calls.ours = latency_postgres(one.url);
	calls.peer = latency_peer(one.url);
	calls.our_publisher = calls.ours.open(one.url);
	calls.peer_publisher = calls.peer.open(one.url);
	measure_all(&calls, &bench->sizes);
	calls.ours.close(calls.our_publisher);
	calls.peer.close(calls.peer_publisher);
	PQfinish(calls.plain);
	close_worker(&calls.four);
	close_worker(&calls.one);
	place_end(&four);
	place_end(&one);
}
