/* SPDX-License-Identifier: Apache-2.0 */
/* The memory store behind a decorator: calls that fail, lose their reply, are slow, or become ghosts. */
#include "store/store.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_store {
	struct outbox_store base;
	struct outbox_store *inner;
	struct sim *sim;
};

static struct sim_store *downcast(struct outbox_store *store)
{
	return (struct sim_store *)store;
}

/* A lost connection does not always come back. Only who leaves must not wait for it for ever. */
static int reach(struct sim *s, struct outbox_error *err)
{
	if (!s->current || !s->current->draining || !sim_fault(s, FAULT_STORE_FAIL))
		return OUTBOX_OK;
	sim_say(s, "relay-%d cannot reach the store", s->current->number);
	return outbox_fail(err, OUTBOX_ECONN, "open: no connection");
}

static int sim_open(const struct outbox_store_config *config, bool create,
		    struct outbox_store **ret_store, struct outbox_error *err)
{
	struct outbox_store_config inner = *config;
	struct sim_store *store = calloc(1, sizeof(*store));
	int r;

	store->sim = config->context;
	store->base.ops = &sim_store_ops;
	inner.context = store->sim->db;
	inner.url = "memory:sim";
	r = reach(store->sim, err);
	if (!r)
		r = store_open(&memory_store_ops, &inner, create, &store->inner, err);
	if (r) {
		free(store);
		return r;
	}
	*ret_store = &store->base;
	return OUTBOX_OK;
}

static void sim_close(struct outbox_store *base)
{
	struct sim_store *store = downcast(base);

	store_close(store->inner);
	free(store);
}

/* Before the call reaches the store. */
static int before(struct sim *s, const char *op, struct outbox_error *err)
{
	if (sim_fault(s, FAULT_STORE_SLOW))
		sim_interlude(s, s->current);
	if (sim_fault(s, FAULT_STORE_BUSY))
		return outbox_fail(err, OUTBOX_EBUSY, "%s: busy", op);
	if (sim_fault(s, FAULT_STORE_FAIL)) {
		sim_say(s, "%s does not reach the store", op);
		return outbox_fail(err, OUTBOX_ECONN, "%s: connection lost", op);
	}
	return OUTBOX_OK;
}

/* After it was applied, before its client hears of it. */
static int after(struct sim *s, const char *op, int r, struct outbox_error *err)
{
	if (sim_fault(s, FAULT_RELAY_CRASH_CALL)) {
		s->current->doomed = true;
		sim_say(s, "%s is applied, its client dies", op);
		return outbox_fail(err, OUTBOX_ECONN, "dead");
	}
	if (!r && sim_fault(s, FAULT_STORE_LOST)) {
		sim_say(s, "%s is applied, the reply is lost", op);
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer", op);
	}
	return r;
}

static int sim_target_put(struct outbox_store *base, const struct outbox_target_def *def,
			  int64_t *ret_version, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	struct sim *s = store->sim;
	int t = sim_target(def->name), r = before(s, "target_put", err);
	bool is_new;

	if (r)
		return r;
	is_new = !sim_db_target(s, t);
	r = store_target_put(store->inner, def, ret_version, err);
	for (size_t i = 0; is_new && sim_db_target(s, t) && i < s->n_messages; i++)
		s->messages[i].before[t] = s->starts_now[t] && s->messages[i].committed;
	for (int lane = 0; !r && lane < s->lanes; lane++)
		s->holders[t][lane] =
			memory_receipt_last(&sim_db_target(s, t)->lanes[lane])->fence_token;
	if (!r)
		check_states(s, BY_RELAY); /* what was cancelled before is finished there from now on */
	return after(s, "target_put", r, err);
}

static int sim_lease(struct outbox_store *base, const struct outbox_lease_request *request,
		     struct outbox_lease *ret_lease, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	int r = before(store->sim, "lease", err);

	if (r)
		return r;
	r = store_lease(store->inner, request, ret_lease, err);
	return after(store->sim, "lease", r, err);
}

static int sim_release(struct outbox_store *base, const char *target, int lane, const char *owner,
		       struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	int r = before(store->sim, "release", err);

	if (r)
		return r;
	r = store_release(store->inner, target, lane, owner, err);
	return after(store->sim, "release", r, err);
}

/* What was alone in flight when a lane is taken may be charged for it. */
static void note_alone(struct sim *s, int t, const struct memory_lane *lane)
{
	struct sim_delivery *d = lane->n_claim == 1 ? sim_delivery(s, t, lane->claim[0].seq) : NULL;

	if (lane->n_claim)
		sim_premise(s, PREMISE_TAKEOVER);
	if (d)
		d->died_alone = true;
}

static int sim_take_over(struct outbox_store *base, const char *target, int lane, const char *owner,
			 int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	struct sim *s = store->sim;
	int t = sim_target(target), r = before(s, "take_over", err);
	bool again;

	if (r)
		return r;
	again = s->holders[t][lane] == new_token;
	if (!again)
		note_alone(s, t, &sim_db_target(s, t)->lanes[lane]);
	r = store_take_over(store->inner, target, lane, owner, new_token, ret_head, err);
	check_refusal(s, t, lane, r);
	if (!r && !again) {
		s->holders[t][lane] = new_token;
		check_lost(s, t, lane);
		check_states(s, BY_RELAY);
		if (ret_head->cautious)
			sim_premise(s, PREMISE_CAUTIOUS);
		sim_say(s, "%s takes lane %d of %s%s", owner, lane, target,
			ret_head->takeovers ? " with messages in flight" : "");
	}
	return after(s, "take_over", r, err);
}

/* Is this the owner's next receipt, the same again, or somebody's who is owner no more? */
static int apply(struct sim *s, struct outbox_store *inner,
		 const struct outbox_settle_and_claim *request, struct outbox_arena *arena,
		 struct outbox_claim *ret_claim, struct outbox_error *err)
{
	int t = sim_target(request->target), r;
	int64_t *holder = &s->holders[t][request->lane];
	bool mine = request->fence_token == *holder, again = request->new_token == *holder;

	s->again = again;
	if (mine && !memory_lane_is_refused(s->db, &sim_db_target(s, t)->lanes[request->lane]))
		check_settlement(s, request);
	r = store_settle_and_claim(inner, request, arena, ret_claim, err);
	check_refusal(s, t, request->lane, r);
	if (!r && !mine && !again)
		sim_violation(s, "fence", "%s settled lane %d of %s, which is not its own",
			      request->owner, request->lane, request->target);
	if (r == OUTBOX_EFENCED && (mine || again))
		sim_violation(s, "fence", "%s was refused lane %d of %s, which is its own",
			      request->owner, request->lane, request->target);
	if (r == OUTBOX_EFENCED)
		sim_premise(s, PREMISE_FENCED);
	if (!r && again)
		sim_premise(s, PREMISE_REPEATED);
	if (!r) {
		*holder = ret_claim->fence_token;
		check_claim(s, request, ret_claim);
		check_states(s, BY_RELAY);
	}
	sim_say(s, "%s settles %zu of lane %d of %s: %s, claims %zu", request->owner,
		request->n_settled, request->lane, request->target, outbox_status_name(r),
		r ? 0 : ret_claim->count);
	return r;
}

/* Keep the request; it will reach the store when its client has long given up. */
static bool become_ghost(struct sim *s, const struct outbox_settle_and_claim *request)
{
	struct sim_ghost *g = s->ghosts;

	while (g < s->ghosts + SIM_GHOSTS && g->waiting)
		g++;
	if (g == s->ghosts + SIM_GHOSTS || request->n_settled > SIM_MESSAGES)
		return false;
	*g = (struct sim_ghost){ .waiting = true, .request = *request };
	for (size_t i = 0; i < request->n_settled; i++)
		g->settled[i] = request->settled[i];
	for (size_t i = 0; i < request->n_settled; i++)
		g->settled[i].error = g->settled[i].error ? "from a ghost" : NULL;
	strcpy(g->target, request->target);
	strcpy(g->owner, request->owner);
	g->request.settled = g->settled;
	g->request.target = g->target;
	g->request.owner = g->owner;
	sim_say(s, "%s's settlement is under way when it gives up", request->owner);
	return true;
}

void ghosts_act(struct sim *s, bool all)
{
	for (struct sim_ghost *g = s->ghosts; g < s->ghosts + SIM_GHOSTS; g++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_claim claim;

		if (!g->waiting || (!all && sim_chance(s, 50)))
			continue;
		g->waiting = false;
		outbox_arena_reset(s->arena);
		sim_say(s, "a ghost of %s arrives", g->owner);
		apply(s, s->store, &g->request, s->arena, &claim, &err);
	}
}

/* Only its own receipt can be in its way: then it did not repeat what it had asked for. */
static bool wrote_last(struct sim *s, const struct outbox_settle_and_claim *request)
{
	const struct memory_target *target = sim_db_target(s, sim_target(request->target));

	return !strcmp(memory_receipt_last(&target->lanes[request->lane])->owner, request->owner);
}

static int sim_settle_and_claim(struct outbox_store *base,
				const struct outbox_settle_and_claim *request,
				struct outbox_arena *arena, struct outbox_claim *ret_claim,
				struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	struct sim *s = store->sim;
	int r = before(s, "settle_and_claim", err);

	if (r)
		return r;
	if (sim_fault(s, FAULT_STORE_GHOST) && become_ghost(s, request))
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "advance: no answer");
	r = apply(s, store->inner, request, arena, ret_claim, err);
	if (r == OUTBOX_EFENCED && wrote_last(s, request))
		sim_violation(s, "repeat", "%s locked itself out of lane %d of %s", request->owner,
			      request->lane, request->target);
	return after(s, "settle_and_claim", r, err);
}

/* Several lanes in one call. It fails as a whole, and then nobody knows how far it came. */
static int sim_settle_and_claim_lanes(struct outbox_store *base,
				      const struct outbox_settle_and_claim *requests, size_t count,
				      struct outbox_arena *const *arenas,
				      struct outbox_claim *ret_claims, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	struct sim *s = store->sim;
	int r = before(s, "settle_and_claim_lanes", err);

	if (r)
		return r;
	sim_premise(s, PREMISE_JOINED);
	for (size_t i = 0; !r && i < count; i++)
		r = apply(s, store->inner, &requests[i], arenas[i], &ret_claims[i], err);
	return after(s, "settle_and_claim_lanes", r, err);
}

static int sim_look(struct outbox_store *base, const struct outbox_look *look,
		    struct outbox_looked *ret_looked, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	int r = before(store->sim, "look", err);

	return r ? r : store_look(store->inner, look, ret_looked, err);
}

static int sim_purge(struct outbox_store *base, const struct outbox_purge *purge,
		     struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct sim_store *store = downcast(base);
	int r = before(store->sim, "purge", err);

	if (r)
		return r;
	r = store_purge(store->inner, purge, ret_purged, err);
	if (!r)
		check_purge(store->sim, purge);
	return after(store->sim, "purge", r, err);
}

static const char *const schemes[] = { "sim", NULL };

const struct outbox_store_ops sim_store_ops = {
	.contract = OUTBOX_STORE_CONTRACT,
	.name = "sim",
	.schemes = schemes,
	.open = sim_open,
	.close = sim_close,
	.lane = {
		.target_put = sim_target_put,
		.lease = sim_lease,
		.release = sim_release,
		.take_over = sim_take_over,
		.settle_and_claim = sim_settle_and_claim,
		.settle_and_claim_lanes = sim_settle_and_claim_lanes,
		.look = sim_look,
	},
	.operate = {
		.purge = sim_purge,
	},
};

const struct outbox_store_ops *sim_full_ops(void)
{
	static struct outbox_store_ops ops;

	ops = memory_store_ops;
	ops.name = sim_store_ops.name;
	ops.schemes = sim_store_ops.schemes;
	ops.open = sim_store_ops.open;
	ops.close = sim_store_ops.close;
	ops.lane.target_put = sim_store_ops.lane.target_put;
	ops.lane.lease = sim_store_ops.lane.lease;
	ops.lane.release = sim_store_ops.lane.release;
	ops.lane.take_over = sim_store_ops.lane.take_over;
	ops.lane.settle_and_claim = sim_store_ops.lane.settle_and_claim;
	ops.lane.settle_and_claim_lanes = sim_store_ops.lane.settle_and_claim_lanes;
	ops.lane.look = sim_store_ops.lane.look;
	ops.operate.purge = sim_store_ops.operate.purge;
	ops.lane.maintain = NULL;
	return &ops;
}
