/* SPDX-License-Identifier: Apache-2.0 */
/* What a relay calls. */

#include "cases.h"
#include "store/sqlite/ops.h"

static int call_target_put(struct world *w, struct outbox_error *err)
{
	static const char *const types[] = { "order.*", "invoice.?" };
	struct outbox_target_def def = {
		.name = "partner",
		.route = { .types = types, .n_types = 2, .kind = OUTBOX_KIND_EVENT },
		.hold = true,
		.start = OUTBOX_START_OLDEST,
	};
	int64_t version = 0;
	int r = sqlite_target_put(w->store, &def, &version, err);

	if (r == OUTBOX_OK)
		world_say(w, "version %lld", (long long)version);
	return r;
}

static int call_target_change(struct world *w, struct outbox_error *err)
{
	struct outbox_target_def def = { .name = "events", .route = { .published_only = true } };
	int64_t version = 0;
	int r = sqlite_target_put(w->store, &def, &version, err);

	if (r == OUTBOX_OK)
		world_say(w, "version %lld", (long long)version);
	return r;
}

static int call_lease(struct world *w, struct outbox_error *err)
{
	struct outbox_lease_request request = {
		.target = "events", .owner = "me", .duration = OUTBOX_MINUTES, .route_version = 1
	};
	struct outbox_lease lease;
	int r = sqlite_lease(w->store, &request, &lease, err);

	if (r == OUTBOX_OK)
		world_say(w, "%d of %d, share %d, stale %d", lease.count, lease.total, lease.share,
			  lease.stale_route);
	return r;
}

static int call_release(struct world *w, struct outbox_error *err)
{
	return sqlite_release(w->store, "events", 0, "me", err);
}

static int call_take_over(struct world *w, struct outbox_error *err)
{
	struct outbox_head head;
	int r = sqlite_take_over(w->store, "events", 0, "me", 500, &head, err);

	if (r == OUTBOX_OK)
		world_say(w, "%lld %lld %d %d %lld", (long long)head.n, (long long)head.fence_token,
			  head.takeovers, head.cautious, (long long)head.suspect_seq);
	return r;
}

static int call_settle_and_claim(struct world *w, struct outbox_error *err)
{
	struct outbox_claim claim;
	int r;

	outbox_arena_reset(w->arena);
	r = settle_each(w, 8, &claim, err);
	if (r != OUTBOX_OK)
		return r;
	world_say(w, "%lld %lld %lld %d%d%d due %lld\n", (long long)claim.n,
		  (long long)claim.fence_token, (long long)claim.store_now, claim.paused,
		  claim.stale_route, claim.cautious, (long long)claim.next_due);
	for (size_t i = 0; i < claim.count; i++)
		world_say_message(w, &claim.items[i]);
	return OUTBOX_OK;
}

/* A lane with nothing left to do. */
static void prepare_idle(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	prepare_schema(w);
	must(call_target_put(w, &err), &err, "target");
	must(sqlite_target_put(w->store,
			       &(struct outbox_target_def){ .name = "events",
							    .start = OUTBOX_START_OLDEST },
			       NULL, &err),
	     &err, "target");
	w->n_seqs = 0;
	must(sqlite_take_over(w->store, "events", 0, "me", 100, &(struct outbox_head){ 0 }, &err),
	     &err, "take over");
	w->n = 2;
	w->token = 100;
}

/* The waiting one, the parked one behind it and the returned one are due now: they are claimed and next
 * settled, each with an outcome of its own. */
static void prepare_detours_claimed(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_claim claim;

	prepare_trouble(w);
	must(settle_each(w, 8, &claim, &err), &err, "claim");
	w->n = claim.n;
	w->token = claim.fence_token;
	w->n_seqs = claim.count;
	for (size_t i = 0; i < claim.count; i++)
		w->seqs[i] = claim.items[i].seq;
}

/* A WAL that is worth a checkpoint. */
static void grow_wal(struct world *w)
{
	static char data[1200 * 1024];
	struct outbox_message m = { .type = "large",
				    .id = "large",
				    .data = data,
				    .size = sizeof(data),
				    .content_type = "a/b" };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	must(sqlite_append(w->store, &m, 1, NULL, NULL, &err), &err, "append");
}

static int call_maintain(struct world *w, struct outbox_error *err)
{
	return sqlite_maintain(w->store, err);
}

const struct store_case lane_cases[] = {
	{ "target_put, new", prepare_log, NULL, call_target_put, CASE_AGAIN, 40, 12 },
	{ "target_put, changed", prepare_log, NULL, call_target_change, CASE_AGAIN, 40, 12 },
	{ "lease", prepare_log, NULL, call_lease, CASE_AGAIN, 40, 12 },
	{ "release", prepare_taken, NULL, call_release, CASE_AGAIN, 20, 12 },
	{ "take over", prepare_claim, NULL, call_take_over, CASE_AGAIN, 40, 12 },
	{ "settle and claim, new ones", prepare_taken, NULL, call_settle_and_claim,
	  CASE_AGAIN | CASE_SHORT, 60, 12 },
	{ "settle and claim, each outcome", prepare_claim, NULL, call_settle_and_claim,
	  CASE_AGAIN | CASE_SHORT, 60, 12 },
	{ "settle and claim, detours", prepare_trouble, NULL, call_settle_and_claim,
	  CASE_AGAIN | CASE_SHORT, 60, 12 },
	{ "settle and claim, outcomes of detours", prepare_detours_claimed, NULL,
	  call_settle_and_claim, CASE_AGAIN | CASE_SHORT, 60, 12 },
	{ "settle and claim, idle", prepare_idle, NULL, call_settle_and_claim,
	  CASE_AGAIN | CASE_SHORT, 20, 5 },
	{ "maintain", prepare_log, grow_wal, call_maintain, CASE_AGAIN, 1, 12 },
	{ NULL },
};
