/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for operators inside an application: made when it is needed, and again when it was lost. */
#include "operate/admin.h"

#include "base/sized.h"
#include "operate/act.h"
#include "operate/schema_check.h"
#include "relay/registry.h"
#include "store/store.h"

#include <stdlib.h>

#define STRINGS_MAX ((size_t)1 << 20)
#define ACTOR_MAX 200
#define AUDIT_DEFAULT 100

/* ---- the object ---------------------------------------------------------------------------- */

static int copy_off(struct outbox_admin *admin, const struct outbox_health_limits *limits,
		    struct outbox_error *err)
{
	const char **items = outbox_arena_alloc(admin->arena, limits->n_off * sizeof(*items));

	for (size_t i = 0; items && i < limits->n_off; i++) {
		if (!limits->off || !limits->off[i] || !rule_matches_any(limits->off[i]))
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "limits.off: entry %zu matches no rule; outbox alerts "
					   "--rules lists them",
					   i + 1);
		items[i] = outbox_arena_text(admin->arena, limits->off[i]);
		if (!items[i])
			items = NULL;
	}
	if (!items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	admin->limits.off = (struct field_texts){ .items = items, .count = limits->n_off };
	return OUTBOX_OK;
}

static int copy_limits(struct outbox_admin *admin, const struct outbox_health_limits *given,
		       struct outbox_error *err)
{
	struct config_health *to = &admin->limits;
	struct outbox_health_limits limits;
	int r = config_health_defaults(admin->arena, to, err);

	if (r || !given)
		return r;
	sized_copy(&limits, sizeof(limits), given, given->struct_size);
	if (limits.failed < 0 || limits.overdue < 0 || limits.backlog < 0 || limits.pending < 0 ||
	    limits.retry_rate < 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "limits: one is negative; 0 gives the default");
	to->failed = limits.failed;
	to->overdue = limits.overdue ? limits.overdue : to->overdue;
	to->backlog = limits.backlog ? limits.backlog : to->backlog;
	to->pending = limits.pending ? limits.pending : to->pending;
	to->retry_rate = limits.retry_rate ? limits.retry_rate : to->retry_rate;
	return limits.n_off ? copy_off(admin, &limits, err) : OUTBOX_OK;
}

static int copy_texts(struct outbox_admin *admin, const struct outbox_admin_config *config,
		      struct outbox_error *err)
{
	char actor[ACTOR_MAX];

	act_default_actor(actor, sizeof(actor));
	admin->url = outbox_arena_text(admin->arena, config->store);
	admin->actor = outbox_arena_text(admin->arena, config->actor ? config->actor : actor);
	admin->name = outbox_arena_text(admin->arena, config->name);
	if (!admin->url || !admin->actor || (config->name && !admin->name))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

static int fill(struct outbox_admin *admin, const struct outbox_admin_config *config,
		struct outbox_error *err)
{
	int r;

	if (!config->store)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "store: missing; give its URL, like sqlite:app.db");
	r = registry_check_store(config->registry, config->store, err);
	if (r)
		return r;
	admin->arena = outbox_arena_new(STRINGS_MAX);
	if (!admin->arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	admin->registry = config->registry;
	admin->clock = config->clock ? config->clock : outbox_clock_system();
	random_init(&admin->random, random_system_seed());
	r = copy_texts(admin, config, err);
	return r ? r : copy_limits(admin, config->limits, err);
}

int outbox_admin_new(struct outbox_admin **ret_admin, const struct outbox_admin_config *config,
		     struct outbox_error *err)
{
	struct outbox_admin_config known;
	struct outbox_admin *admin;
	int r;

	if (!ret_admin || !config)
		return outbox_fail(err, OUTBOX_EINVAL, "ret_admin and config must not be NULL");
	sized_copy(&known, sizeof(known), config, config->struct_size);
	admin = calloc(1, sizeof(*admin));
	if (!admin || pthread_mutex_init(&admin->mutex, NULL)) {
		free(admin);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = fill(admin, &known, err);
	if (r) {
		outbox_admin_free(admin);
		return r;
	}
	*ret_admin = admin;
	return OUTBOX_OK;
}

struct outbox_admin *outbox_admin_free(struct outbox_admin *admin)
{
	if (!admin)
		return NULL;
	store_close(admin->store);
	outbox_arena_free(admin->arena);
	pthread_mutex_destroy(&admin->mutex);
	free(admin);
	return NULL;
}

/* ---- the connection ------------------------------------------------------------------------ */

static bool is_lost(int status)
{
	return status == OUTBOX_ECONN || status == OUTBOX_ETIMEDOUT;
}

static int read_info(struct outbox_admin *admin, struct outbox_error *err)
{
	int r = store_info(admin->store, &admin->info, err);

	if (r)
		admin->store = store_close(admin->store);
	return r;
}

/* A server that was restarted since the last call is no error of this one. */
static int connect_store(struct outbox_admin *admin, bool create, struct outbox_error *err)
{
	int r;

	if (admin->store) {
		r = read_info(admin, err);
		if (!is_lost(r))
			return r;
	}
	r = registry_open_store(admin->registry, admin->url, create, admin->clock,
				&admin->random.base, &admin->store, err);
	return r ? r : read_info(admin, err);
}

int admin_enter(struct outbox_admin *admin, enum admin_need need, struct outbox_error *err)
{
	int r;

	if (!admin)
		return outbox_fail(err, OUTBOX_EINVAL, "admin must not be NULL");
	pthread_mutex_lock(&admin->mutex);
	r = connect_store(admin, need == NEED_CREATE, err);
	if (r == OUTBOX_OK && need == NEED_READY)
		r = store_ready(&admin->info, admin->url, NULL, err);
	return r ? admin_leave(admin, r) : OUTBOX_OK;
}

int admin_leave(struct outbox_admin *admin, int status)
{
	if (is_lost(status))
		admin->store = store_close(admin->store);
	pthread_mutex_unlock(&admin->mutex);
	return status;
}

/* ---- the schema, and what is in it: each is one call of the store ---------------------------- */

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

	return r ? r : admin_leave(admin, store_init(admin->store, &how, err));
}

int outbox_admin_upgrade(struct outbox_admin *admin, const struct outbox_init_options *options,
			 int *ret_from, struct outbox_error *err)
{
	struct outbox_init_options how = options_of(options);
	int from, r = admin_enter(admin, NEED_STORE, err);

	if (r)
		return r;
	r = store_upgrade(admin->store, &how, &from, err);
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
	return admin_leave(admin, store_list(admin->store, &known, arena, ret_page, err));
}

int outbox_admin_get(struct outbox_admin *admin, const char *id, struct outbox_arena *arena,
		     struct outbox_claimed *ret_message, struct outbox_error *err)
{
	int r = id && arena && ret_message
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL,
				      "id, arena and ret_message must not be NULL");

	return r ? r : admin_leave(admin, store_get(admin->store, id, arena, ret_message, err));
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
		 : admin_leave(admin, store_audit(admin->store, id, limit ? limit : AUDIT_DEFAULT,
						  arena, ret_rows, ret_count, err));
}

int outbox_admin_stats(struct outbox_admin *admin, struct outbox_arena *arena,
		       struct outbox_stats *ret_stats, struct outbox_error *err)
{
	int r = arena && ret_stats
			? admin_enter(admin, NEED_READY, err)
			: outbox_fail(err, OUTBOX_EINVAL, "arena and ret_stats must not be NULL");

	return r ? r : admin_leave(admin, store_stats(admin->store, arena, ret_stats, err));
}
