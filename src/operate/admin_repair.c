/* SPDX-License-Identifier: Apache-2.0 */
/* What repairs: keys that wait and what blocks them, a message that is corrected, positions after a restore. */
#include "base/sized.h"
#include "operate/act.h"
#include "operate/admin.h"
#include "store/store.h"

#define CORRECTION_MAX ((size_t)64 << 20) /* the message as it is and as it becomes */

int outbox_admin_keys(struct outbox_admin *admin, const struct outbox_keys_filter *filter,
		      struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		      struct outbox_error *err)
{
	struct outbox_keys_filter all = OUTBOX_KEYS_FILTER_INIT;
	struct outbox_stats stats;
	int r;

	if (!arena || !ret_page)
		return outbox_fail(err, OUTBOX_EINVAL, "arena and ret_page must not be NULL");
	if (filter)
		sized_copy(&all, sizeof(all), filter, filter->struct_size);
	all.struct_size = sizeof(all);
	r = admin_enter(admin, NEED_READY, err);
	if (r)
		return r;
	if (all.target) {
		r = store_stats(admin->store, arena, &stats, err);
		if (r == OUTBOX_OK)
			r = act_check_target(&stats, all.target, err);
	}
	if (r == OUTBOX_OK)
		r = store_keys(admin->store, &all, arena, ret_page, err);
	return admin_leave(admin, r);
}

int outbox_admin_amend(struct outbox_admin *admin, const char *id,
		       const struct outbox_correction *correction, const char *reason,
		       struct outbox_amended *ret_amended, struct outbox_error *err)
{
	struct outbox_correction given = OUTBOX_CORRECTION_INIT;
	struct outbox_amended amended = { 0 };
	struct outbox_arena *arena;
	int r;

	if (!id || !correction || !reason || !*reason)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "id, correction and reason are required: say why, for the audit");
	sized_copy(&given, sizeof(given), correction, correction->struct_size);
	arena = outbox_arena_new(CORRECTION_MAX);
	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = admin_enter(admin, NEED_READY, err);
	if (r == OUTBOX_OK) {
		r = store_correct(admin->store,
				  &(struct store_correction){ .id = id,
							      .actor = admin->actor,
							      .reason = reason,
							      .data = given.data,
							      .size = given.size,
							      .content_type = given.content_type,
							      .headers = given.headers,
							      .n_headers = given.n_headers,
							      .set_headers = given.headers },
				  arena, &amended, err);
		r = admin_leave(admin, r);
	}
	outbox_arena_free(arena);
	if (r == OUTBOX_OK && ret_amended)
		*ret_amended = amended;
	return r;
}

struct reports {
	outbox_realigned report;
	void *context;
};

static void pass_on(void *context, int level, const char *subject, const char *text)
{
	const struct reports *reports = context;

	(void)level;
	if (reports->report)
		reports->report(reports->context, subject, text);
}

int outbox_admin_realign(struct outbox_admin *admin, const struct outbox_rebase *how,
			 outbox_realigned report, void *context, struct outbox_error *err)
{
	struct reports reports = { report, context };
	struct outbox_rebase rebase = OUTBOX_REBASE_INIT;
	int r = admin_enter(admin, NEED_READY, err);

	if (r)
		return r;
	if (how)
		sized_copy(&rebase, sizeof(rebase), how, how->struct_size);
	rebase.struct_size = sizeof(rebase);
	rebase.actor = admin->actor;
	r = store_rebase(admin->store, &rebase, pass_on, &reports, err);
	return admin_leave(admin, r);
}
