/* SPDX-License-Identifier: Apache-2.0 */
/* What changes deliveries, messages and targets, audited with the admin's actor. */
#include "base/sized.h"
#include "operate/act.h"
#include "operate/admin.h"
#include "operate/purge.h"
#include "store/store.h"

#define PAGE 1000
#define STATS_MAX ((size_t)16 << 20)

/* ---- doing it ------------------------------------------------------------------------------ */

struct work {
	struct outbox_admin *admin;
	struct outbox_filter filter;
	struct outbox_act act;
	bool all; /* page after page */
};

/* Names and times come from one look at the store. */
static int look_and_act(struct work *work, struct outbox_acted *total, struct outbox_error *err)
{
	struct outbox_store *store = work->admin->store;
	struct outbox_arena *arena = outbox_arena_new(STATS_MAX);
	struct outbox_stats stats;
	int r = arena ? store_stats(store, arena, &stats, err)
		      : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = act_check_target(&stats, work->filter.target, err);
	if (r == OUTBOX_OK)
		r = act_settle(store, &stats, work->act.action, NAMED_AS_FIELD, &work->filter, err);
	if (r == OUTBOX_OK)
		r = work->all ? act_all(store, &work->act, NULL, total, err)
			      : act_page(store, &work->act, total, err);
	outbox_arena_free(arena);
	return r;
}

static int act(struct work *work, const struct outbox_filter *filter,
	       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct outbox_acted total = { 0 };
	outbox_time now;
	int r;

	if (!work->admin || !filter || !ret_acted)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "admin, filter and ret_acted must not be NULL");
	now = work->admin->clock->wall(work->admin->clock);
	sized_copy(&work->filter, sizeof(work->filter), filter, filter->struct_size);
	work->filter.struct_size = sizeof(work->filter);
	work->act.filter = &work->filter;
	work->all = work->filter.limit == 0 && !work->act.dry_run && !work->filter.n_ids;
	if (work->filter.n_ids)
		work->filter.limit = work->filter.n_ids;
	else if (work->filter.limit == 0)
		work->filter.limit = PAGE;
	r = act_check(&work->act, NAMED_AS_FIELD, now, &work->filter, err);
	if (r == OUTBOX_OK)
		r = admin_enter(work->admin, NEED_READY, err);
	if (r)
		return r;
	work->act.actor = work->admin->actor;
	r = look_and_act(work, &total, err);
	if (r == OUTBOX_OK)
		*ret_acted = total;
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
				   "reason: is missing; give one for the audit trail");
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
	struct act_pause how = { .target = target, .pause = pause, .reason = reason };
	struct outbox_arena *arena;
	struct outbox_stats stats;
	bool changed;
	int r;

	if (!target)
		return outbox_fail(err, OUTBOX_EINVAL, "target must not be NULL");
	r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	arena = outbox_arena_new(STATS_MAX);
	r = arena ? store_stats(admin->store, arena, &stats, err)
		  : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	how.actor = admin->actor;
	if (r == OUTBOX_OK)
		r = act_pause(admin->store, &stats, &how, &changed, err);
	outbox_arena_free(arena);
	return admin_leave(admin, r);
}

int outbox_admin_pause(struct outbox_admin *admin, const char *target, const char *reason,
		       struct outbox_error *err)
{
	if (!reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "reason: is missing; give one for the audit trail");
	return set_paused(admin, true, target, reason, err);
}

int outbox_admin_resume(struct outbox_admin *admin, const char *target, const char *reason,
			struct outbox_error *err)
{
	return set_paused(admin, false, target, reason, err);
}

/* ---- messages ------------------------------------------------------------------------------ */

static int purge_or_count(struct outbox_admin *admin, const struct outbox_purge *given, bool count,
			  struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct outbox_purged total = { 0 };
	struct outbox_purge request;
	int r;

	if (!given || !ret_purged)
		return outbox_fail(err, OUTBOX_EINVAL, "purge and ret_purged must not be NULL");
	r = purge_check(given, NAMED_AS_FIELD, err);
	if (r == OUTBOX_OK)
		r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	sized_copy(&request, sizeof(request), given, given->struct_size);
	request.actor = given->actor ? given->actor : admin->actor;
	if (count)
		r = purge_count(admin->store, &request, NULL, &total, err);
	else if (given->limit)
		r = store_purge(admin->store, &request, &total, err);
	else
		r = purge_all(admin->store, &request, NULL, NULL, &total, err);
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

static int enter_with_reason(struct outbox_admin *admin, const char *id, const char *reason,
			     struct outbox_error *err)
{
	if (!id || !reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "id and reason are required: say why, for the audit");
	return admin_enter(admin, NEED_READY, err);
}

int outbox_admin_redact(struct outbox_admin *admin, const char *id, const char *reason,
			bool *ret_done, struct outbox_error *err)
{
	struct outbox_redact redact = { .struct_size = sizeof(redact), .id = id, .reason = reason };
	int r = enter_with_reason(admin, id, reason, err);

	if (r)
		return r;
	redact.actor = admin->actor;
	r = store_redact(admin->store, &redact, ret_done, err);
	return admin_leave(admin, r);
}

int outbox_admin_cancel(struct outbox_admin *admin, const char *id, const char *reason,
			bool *ret_done, struct outbox_error *err)
{
	struct outbox_cancel cancel = { .struct_size = sizeof(cancel), .id = id, .reason = reason };
	int r = enter_with_reason(admin, id, reason, err);

	if (r)
		return r;
	cancel.actor = admin->actor;
	r = store_cancel(admin->store, &cancel, ret_done, err);
	return admin_leave(admin, r);
}
