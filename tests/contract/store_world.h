/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

/* What the cases of the store contract share: one database, a clock that stands still, workers. */

#include "base/cleanup.h"
#include "base/random.h"
#include "frozen_clock.h"
#include "store_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CLAIM_MAX 2048
#define SEC OUTBOX_SECONDS
#define LEASE (15 * SEC)
#define MANY ((size_t)500)
#define BYTES ((size_t)8 << 20)

/* The world of one case. */
struct store_world {
	const struct store_fixture *fixture;
	void *place;
	struct frozen_clock clock;
	struct random_state random;
	struct outbox_arena *arena; /* of everything looked at; lives as long as the case */
	struct outbox_store *store; /* the test's own connection */
	struct outbox_error err;
	int lanes;
	struct worker *workers; /* all that were made, freed with the world */
	uint64_t seeds;
};

typedef void (*store_case_fn)(struct store_world *w);

struct store_case {
	const char *name;
	store_case_fn run;
	int lanes;      /* initialised with so many; 0: 1; -1: not initialised */
	unsigned needs; /* STORE_* */
};

/* Each ends with { NULL }. */
extern const struct store_case schema_cases[], publish_cases[], fields_cases[], late_cases[],
	claim_cases[], lanes_cases[], fence_cases[], caution_cases[], lease_cases[], detour_cases[],
	order_cases[], parking_cases[], act_cases[], operator_cases[], list_cases[], look_cases[],
	stats_cases[], purge_cases[], interest_cases[], target_cases[], dead_cases[], start_cases[],
	bands_cases[], redact_cases[], amend_cases[], keys_cases[], bulk_cases[], rules_cases[],
	waiting_cases[], joined_cases[], attempt_cases[], cancel_cases[], headers_cases[],
	inbox_cases[];

/* The call must succeed; its message is told when it does not. */
#define OK(call) world_ok(w, (call), #call, __FILE__, __LINE__)
void world_ok(struct store_world *w, int status, const char *what, const char *file, int line);

struct store_world *world_new(const struct store_fixture *fixture, int lanes);
void world_free(struct store_world *w);
/* Another connection. In threads: random of its own. */
struct outbox_store *world_open(struct store_world *w, struct outbox_random *random);
outbox_time world_now(struct store_world *w);
void world_step(struct store_world *w, outbox_time step);

/* ---- publishing ---------------------------------------------------------------------------- */

/* One message of type "t" with {} as payload, by the op append. */
int64_t world_publish(struct store_world *w, const char *key);
int64_t world_publish_type(struct store_world *w, const char *type);
int64_t world_publish_size(struct store_world *w, size_t size);
int64_t world_publish_message(struct store_world *w, const struct outbox_message *m);
/* n messages of one key, or without; the seq of the first, the others follow without a gap. */
int64_t world_publish_run(struct store_world *w, const char *key, size_t n);
int64_t world_publish_many(struct store_world *w, size_t n);
/* The i-th key of a lane, in a static buffer that lives until the 16th call. */
const char *key_in_lane(const struct store_world *w, int lane, int i);

/* ---- targets ------------------------------------------------------------------------------- */

/* Gets everything, from the oldest message on. */
int64_t world_target(struct store_world *w, const char *name);
struct outbox_target_def target_def(const char *name);
int64_t world_target_put(struct store_world *w, const struct outbox_target_def *def);

/* ---- workers ------------------------------------------------------------------------------- */

/* A worker with a connection of its own that works on one lane. */
struct worker {
	struct store_world *w;
	struct worker *next;
	struct outbox_store *store;
	struct random_state random;
	struct outbox_arena *arena;
	char owner[32], target[OUTBOX_TARGET_NAME_MAX + 1];
	int64_t version;
	struct outbox_lease lease;
	int lane;
	struct outbox_head head; /* as take_over() told it */
	int64_t n, fence_token;
	struct outbox_claim claim;
	struct outbox_settlement settled[CLAIM_MAX]; /* prepared as DELIVERED: change what you want */
	struct outbox_settle_and_claim last;         /* the last request, for repeating it */
	struct outbox_settlement last_settled[CLAIM_MAX];
	struct outbox_error err;
};

struct worker *worker_new(struct store_world *w, const char *owner, const char *target);
void worker_lease(struct worker *k); /* into k->lease */
int worker_try_take(struct worker *k, int lane);
void worker_take(struct worker *k, int lane);
/* All three; the lane must be among those leased. */
struct worker *worker_start(struct store_world *w, const char *owner, const char *target, int lane);
/* Start again, without a trace of what was claimed: as after a crash and a new process. */
void worker_restart(struct worker *k);

/* Settle what is in flight with k->settled and claim up to max. */
int worker_try_advance(struct worker *k, size_t max, size_t max_bytes);
size_t worker_advance(struct worker *k, size_t max);
/* What an advance asks, kept as k->last; and what its answer does to k. */
struct outbox_settle_and_claim worker_request(struct worker *k, size_t max, size_t max_bytes);
void worker_answered(struct worker *k, const struct outbox_claim *claim);
/* The very same request again; the claim replaces k->claim. */
int worker_repeat(struct worker *k);

void settle_wait(struct worker *k, size_t i, outbox_time delay);    /* charged */
void settle_suspect(struct worker *k, size_t i, outbox_time delay); /* not charged */
void settle_fail(struct worker *k, size_t i);
void settle_defer(struct worker *k, size_t i, outbox_time due_at);
void settle_park(struct worker *k, size_t i);
void settle_return(struct worker *k, size_t i);
/* PARKED for every blocked one, as the engine does. */
void settle_blocked(struct worker *k);

/* Deliver everything that can be claimed now, blocked ones parked; the seqs in their order. */
size_t worker_drain(struct worker *k, int64_t *seqs, size_t capacity);
/* The claim is exactly these. */
void assert_claim(const struct worker *k, size_t count, ...);
/* Draining now gives exactly these, in this order. */
void assert_drains(struct worker *k, size_t count, ...);

/* ---- looking ------------------------------------------------------------------------------- */

struct outbox_filter filter_of(const char *target);
struct outbox_page world_list(struct store_world *w, const struct outbox_filter *filter);
/* NULL when there is none. */
const struct outbox_delivery *world_find(struct store_world *w, const char *target, int64_t seq);
const struct outbox_delivery *world_row(struct store_world *w, const char *target, int64_t seq);
const char *world_id(struct store_world *w, const char *target, int64_t seq);
void assert_state(struct store_world *w, const char *target, int64_t seq, int state, int why);
/* Of this target and of all deliveries of all targets, as text: to see that nothing changed. */
const char *world_picture(struct store_world *w);
/* Without owners and the times of what is not finished. Forgets what was looked at before. */
const char *world_outline(struct store_world *w);
void compare_outlines(const char *reference, const char *other);
const struct outbox_target_stats *world_stats(struct store_world *w, const char *target);
int64_t world_receipts(struct store_world *w, const char *target, int lane);
int64_t world_messages(struct store_world *w);

/* act() on one delivery by id, or by filter */
struct outbox_acted world_act(struct store_world *w, int action, const char *target, int64_t seq);
struct outbox_acted world_act_filter(struct store_world *w, const struct outbox_act *act);
struct outbox_purged world_purge(struct store_world *w, const struct outbox_purge *purge);

#endif
