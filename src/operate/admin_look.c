/* SPDX-License-Identifier: Apache-2.0 */
/* The schema, and what is in it: each is one call of the store. */
#include "base/sized.h"
#include "operate/admin.h"

#define AUDIT_DEFAULT 100

int outbox_admin_info(struct outbox_admin *admin, struct outbox_store_info *ret_info,
		      struct outbox_error *err)
{
	int r;

	if (!ret_info)
		return outbox_fail(err, OUTBOX_EINVAL, "ret_info must not be NULL");
	r = admin_enter(admin, NEED_STORE, err);
	if (r)
		return r;
	*ret_info = admin->info;
	return admin_leave(admin, OUTBOX_OK);
}

static struct outbox_init_options options_of(const struct outbox_init_options *given)
{
	struct outbox_init_options options = { 0 };

	if (given)
		sized_copy(&options, sizeof(options), given, given->struct_size);
	options.struct_size = sizeof(options);
	return options;
}

int outbox_admin_init(struct outbox_admin *admin, const struct outbox_init_options *options,
		      struct outbox_error *err)
{
	struct outbox_init_options how = options_of(options);
	int r = admin_enter(admin, NEED_CREATE, err);

	return r ? r : admin_leave(admin, admin->store->ops->init(admin->store, &how, err));
}

int outbox_admin_upgrade(struct outbox_admin *admin, const struct outbox_init_options *options,
			 int *ret_from, struct outbox_error *err)
{
	struct outbox_init_options how = options_of(options);
	int from, r = admin_enter(admin, NEED_STORE, err);

	if (r)
		return r;
	r = admin->store->ops->upgrade(admin->store, &how, &from, err);
	if (r == OUTBOX_OK && ret_from)
		*ret_from = from;
	return admin_leave(admin, r);
}

int outbox_admin_list(struct outbox_admin *admin, const struct outbox_filter *filter,
		      struct outbox_arena *arena, struct outbox_page *ret_page,
		      struct outbox_error *err)
{
	struct outbox_filter known = { 0 };
	int r = arena && ret_page
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL, "arena and ret_page must not be NULL");

	if (r)
		return r;
	if (filter)
		sized_copy(&known, sizeof(known), filter, filter->struct_size);
	known.struct_size = sizeof(known);
	return admin_leave(admin,
			   admin->store->ops->list(admin->store, &known, arena, ret_page, err));
}

int outbox_admin_get(struct outbox_admin *admin, const char *id, struct outbox_arena *arena,
		     struct outbox_claimed *ret_message, struct outbox_error *err)
{
	int r = id && arena && ret_message
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL,
				      "id, arena and ret_message must not be NULL");

	return r ? r
		 : admin_leave(admin,
			       admin->store->ops->get(admin->store, id, arena, ret_message, err));
}

int outbox_admin_audit(struct outbox_admin *admin, const char *id, size_t limit,
		       struct outbox_arena *arena, struct outbox_audit **ret_rows,
		       size_t *ret_count, struct outbox_error *err)
{
	int r = arena && ret_rows && ret_count
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL,
				      "arena, ret_rows and ret_count must not be NULL");

	return r ? r
		 : admin_leave(admin, admin->store->ops->audit(admin->store, id,
							       limit ? limit : AUDIT_DEFAULT, arena,
							       ret_rows, ret_count, err));
}

int outbox_admin_stats(struct outbox_admin *admin, struct outbox_arena *arena,
		       struct outbox_stats *ret_stats, struct outbox_error *err)
{
	int r = arena && ret_stats
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL, "arena and ret_stats must not be NULL");

	return r ? r
		 : admin_leave(admin, admin->store->ops->stats(admin->store, arena, ret_stats, err));
}
