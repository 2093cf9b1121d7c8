/* SPDX-License-Identifier: Apache-2.0 */
/* What changes deliveries, messages and targets, audited with the admin's actor. */
#include "base/sized.h"
#include "base/wait.h"
#include "operate/act.h"
#include "operate/admin.h"
#include "operate/purge.h"
#include "store/store.h"

#define PAGE 1000
#define STATS_MAX ((size_t)16 << 20)

/* Lets those who write take their turn. */
static void rest(outbox_time duration)
{
	struct waiting waiting;

	if (duration <= 0 || waiting_init(&waiting, NULL))
		return;
	waiting_lock(&waiting);
	waiting_wait(&waiting, duration);
	waiting_unlock(&waiting);
	waiting_deinit(&waiting);
}

/* ---- which ones ---------------------------------------------------------------------------- */

static bool selects(const struct outbox_filter *f)
{
	return f->n_ids || f->state || f->why || f->target || f->type || f->key ||
	       f->created_before || f->changed_before;
}

static int check_state(int action, struct outbox_filter *filter, struct outbox_error *err)
{
	int only = action == OUTBOX_REQUEUE ? OUTBOX_FAILED : OUTBOX_PENDING;

	if (!filter->state && filter->why)
		filter->state = OUTBOX_PENDING;
	if (action == OUTBOX_DISCARD) {
		if (filter->state == OUTBOX_FAILED || filter->state == OUTBOX_PENDING)
			return OUTBOX_OK;
		return outbox_fail(err, OUTBOX_EINVAL,
				   "state: say which ones to discard: OUTBOX_FAILED or OUTBOX_PENDING");
	}
	if (!filter->state)
		filter->state = only;
	if (filter->state == only)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "state: only %s deliveries can be %s; leave it out",
			   outbox_state_name(only),
			   action == OUTBOX_REQUEUE ? "requeued" : "deferred");
}

static int check_filter(int action, struct outbox_filter *filter, struct outbox_error *err)
{
	if (filter->n_ids && (filter->state || filter->why || filter->type || filter->key))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "ids: give them or a filter, not both (target goes with ids)");
	if (filter->n_ids > PAGE)
		return outbox_fail(err, OUTBOX_EINVAL, "ids: %zu are too many, at most %d in a call",
				   filter->n_ids, PAGE);
	if (!selects(filter))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "what? the filter is empty: set ids, state, target, type or key");
	return filter->n_ids ? OUTBOX_OK : check_state(action, filter, err);
}

/* ---- doing it ------------------------------------------------------------------------------ */

struct work {
	struct outbox_admin *admin;
	struct outbox_filter filter;
	struct outbox_act act;
	bool all; /* page after page */
};

/* Names and times come from one look at the store. */
static int settle_what(struct work *work, const struct outbox_stats *stats, struct outbox_error *err)
{
	int r = act_check_target(stats, work->filter.target, err);

	if (r)
		return r;
	if (!work->filter.n_ids) {
		act_bound(work->act.action, stats->store_now, &work->filter);
		return OUTBOX_OK;
	}
	work->filter.limit = work->filter.n_ids;
	r = act_choose_target(stats, "target", &work->filter, err);
	return r ? r : act_check_ids(work->admin->store, &work->filter, err);
}

static int pages(struct work *work, struct outbox_acted *total, struct outbox_error *err)
{
	struct outbox_store *store = work->admin->store;
	char cursor[ACT_CURSOR_MAX];
	struct outbox_acted one;
	int r = act_page(store, &work->act, total, err);

	if (r || !work->all)
		return r;
	one = *total;
	while (act_next(&one, &work->filter, cursor)) {
		rest(one.rest);
		r = act_page(store, &work->act, &one, err);
		if (r) {
			outbox_wrap(err, "after %zu deliveries, which are done", total->done);
			return r;
		}
		total->done += one.done;
		if (!total->oldest || (one.oldest && one.oldest < total->oldest))
			total->oldest = one.oldest;
	}
	total->more = false;
	total->cursor[0] = '\0';
	return OUTBOX_OK;
}

static int act(struct work *work, const struct outbox_filter *filter,
	       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct outbox_acted total = { 0 };
	struct outbox_arena *arena;
	struct outbox_stats stats;
	int r;

	if (!filter || !ret_acted)
		return outbox_fail(err, OUTBOX_EINVAL, "filter and ret_acted must not be NULL");
	sized_copy(&work->filter, sizeof(work->filter), filter, filter->struct_size);
	work->filter.struct_size = sizeof(work->filter);
	work->act.filter = &work->filter;
	work->all = work->filter.limit == 0 && !work->act.dry_run && !work->filter.n_ids;
	if (work->filter.limit == 0)
		work->filter.limit = PAGE;
	r = check_filter(work->act.action, &work->filter, err);
	if (r == OUTBOX_OK)
		r = admin_enter(work->admin, NEED_READY, err);
	if (r)
		return r;
	work->act.actor = work->admin->actor;
	arena = outbox_arena_new(STATS_MAX);
	if (!arena)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = work->admin->store->ops->stats(work->admin->store, arena, &stats, err);
	if (r == OUTBOX_OK)
		r = settle_what(work, &stats, err);
	if (r == OUTBOX_OK)
		r = pages(work, &total, err);
	if (r == OUTBOX_OK)
		r = act_check_refused(&total, &work->filter, err);
	if (r == OUTBOX_OK)
		*ret_acted = total;
	outbox_arena_free(arena);
	return admin_leave(work->admin, r);
}

int outbox_admin_requeue(struct outbox_admin *admin, const struct outbox_filter *filter,
			 const char *reason, struct outbox_acted *ret_acted,
			 struct outbox_error *err)
{
	struct work work = { .admin = admin, .act = { .action = OUTBOX_REQUEUE, .reason = reason } };

	return act(&work, filter, ret_acted, err);
}

int outbox_admin_discard(struct outbox_admin *admin, const struct outbox_filter *filter,
			 const char *reason, struct outbox_acted *ret_acted,
			 struct outbox_error *err)
{
	struct work work = { .admin = admin, .act = { .action = OUTBOX_DISCARD, .reason = reason } };

	if (!reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "reason: is missing; say why, for whoever looks next");
	return act(&work, filter, ret_acted, err);
}

int outbox_admin_defer(struct outbox_admin *admin, const struct outbox_filter *filter,
		       outbox_time until, const char *reason, struct outbox_acted *ret_acted,
		       struct outbox_error *err)
{
	struct work work = {
		.admin = admin,
		.act = { .action = OUTBOX_DEFER, .reason = reason, .until = until },
	};

	if (until <= 0)
		return outbox_fail(err, OUTBOX_EINVAL, "until: is missing; say until when");
	return act(&work, filter, ret_acted, err);
}

int outbox_admin_count(struct outbox_admin *admin, int action, const struct outbox_filter *filter,
		       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct work work = { .admin = admin,
			     .act = { .action = action, .reason = "count", .dry_run = true } };

	if (action < OUTBOX_REQUEUE || action > OUTBOX_DEFER)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "action: %d is none; use OUTBOX_REQUEUE, OUTBOX_DISCARD or "
				   "OUTBOX_DEFER",
				   action);
	if (action == OUTBOX_DEFER)
		work.act.until = OUTBOX_NEVER;
	return act(&work, filter, ret_acted, err);
}

/* ---- targets ------------------------------------------------------------------------------- */

static int set_paused(struct outbox_admin *admin, bool pause, const char *target,
		      const char *reason, struct outbox_error *err)
{
	struct outbox_arena *arena;
	struct outbox_stats stats;
	int r;

	if (!target)
		return outbox_fail(err, OUTBOX_EINVAL, "target must not be NULL");
	r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	arena = outbox_arena_new(STATS_MAX);
	r = arena ? admin->store->ops->stats(admin->store, arena, &stats, err)
		  : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = act_check_target(&stats, target, err);
	if (r == OUTBOX_OK)
		r = admin->store->ops->target_pause(admin->store, target, pause, admin->actor,
						    reason, err);
	outbox_arena_free(arena);
	return admin_leave(admin, r);
}

int outbox_admin_pause(struct outbox_admin *admin, const char *target, const char *reason,
		       struct outbox_error *err)
{
	if (!reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "reason: is missing; say why, for whoever looks next");
	return set_paused(admin, true, target, reason, err);
}

int outbox_admin_resume(struct outbox_admin *admin, const char *target, const char *reason,
			struct outbox_error *err)
{
	return set_paused(admin, false, target, reason, err);
}

/* ---- messages ------------------------------------------------------------------------------ */

static int purge_pages(struct outbox_store *store, const struct outbox_purge *request, bool all,
		       struct outbox_purged *total, struct outbox_error *err)
{
	struct outbox_purged one;
	int r;

	do {
		r = store->ops->purge(store, request, &one, err);
		if (r && total->messages)
			outbox_wrap(err, "after %lld messages, which are gone",
				    (long long)total->messages);
		if (r)
			return r;
		one.messages += total->messages;
		one.failed += total->failed;
		one.receipts += total->receipts;
		one.detours += total->detours;
		*total = one;
	} while (all && one.more);
	return OUTBOX_OK;
}

static int purge_or_count(struct outbox_admin *admin, const struct outbox_purge *given, bool count,
			  struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct outbox_purged total = { 0 };
	struct outbox_purge request;
	int r;

	if (!given || !ret_purged)
		return outbox_fail(err, OUTBOX_EINVAL, "purge and ret_purged must not be NULL");
	if (!given->delivered_before && !given->failed_before)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "how old? set delivered_before, failed_before or both");
	r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	request = *given;
	request.actor = given->actor ? given->actor : admin->actor;
	if (!count && !given->limit)
		request.limit = PAGE;
	if (count)
		r = purge_count(admin->store, &request, &total, err);
	else
		r = purge_pages(admin->store, &request, given->limit == 0, &total, err);
	if (r == OUTBOX_OK)
		*ret_purged = total;
	return admin_leave(admin, r);
}

int outbox_admin_purge(struct outbox_admin *admin, const struct outbox_purge *purge,
		       struct outbox_purged *ret_purged, struct outbox_error *err)
{
	return purge_or_count(admin, purge, false, ret_purged, err);
}

int outbox_admin_purgeable(struct outbox_admin *admin, const struct outbox_purge *purge,
			   struct outbox_purged *ret_purged, struct outbox_error *err)
{
	return purge_or_count(admin, purge, true, ret_purged, err);
}

int outbox_admin_redact(struct outbox_admin *admin, const char *id, const char *reason,
			bool *ret_done, struct outbox_error *err)
{
	struct outbox_redact redact = { .struct_size = sizeof(redact), .id = id, .reason = reason };
	int r;

	if (!id || !reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "id and reason are required: say why, for the audit");
	r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	redact.actor = admin->actor;
	if (!STORE_HAS(admin->store, redact))
		r = outbox_fail(err, OUTBOX_ENOTSUP, "this store cannot redact");
	else
		r = admin->store->ops->redact(admin->store, &redact, ret_done, err);
	return admin_leave(admin, r);
}
