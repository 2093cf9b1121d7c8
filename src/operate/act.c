/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/act.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUSY_TRIES 5
#define MESSAGE_MAX ((size_t)64 << 20)

void act_default_actor(char *out, size_t size)
{
	const char *user = getenv("USER");
	char host[128] = "";

	if (gethostname(host, sizeof(host) - 1) != 0 || !*host)
		snprintf(host, sizeof(host), "localhost");
	if (user && *user)
		snprintf(out, size, "%.60s@%s", user, host);
	else
		snprintf(out, size, "uid%u@%s", (unsigned)getuid(), host);
}

int act_check_target(const struct outbox_stats *stats, const char *name, struct outbox_error *err)
{
	struct nearest nearest;

	if (!name)
		return OUTBOX_OK;
	nearest_init(&nearest, name);
	for (size_t i = 0; i < stats->n_targets; i++) {
		if (strcmp(stats->targets[i].name, name) == 0)
			return OUTBOX_OK;
		nearest_offer(&nearest, stats->targets[i].name);
	}
	return nearest_fail(&nearest, OUTBOX_ENOTFOUND, "target", err);
}

/* ---- what is meant ------------------------------------------------------------------------- */

static int choose_target(const struct outbox_stats *stats, enum naming naming,
			 struct outbox_filter *filter, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	char name[FIELD_NAME_MAX];

	if (filter->target || stats->n_targets == 0)
		return OUTBOX_OK;
	if (stats->n_targets == 1) {
		filter->target = stats->targets[0].name;
		return OUTBOX_OK;
	}
	for (size_t i = 0; i < stats->n_targets; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", stats->targets[i].name);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "%s is missing: a message has a delivery to each of %s",
			   field_name(naming, "target", name), buf_str(&names));
}

int act_check(const struct outbox_act *act, enum naming naming, outbox_time now,
	      struct outbox_filter *filter, struct outbox_error *err)
{
	char name[FIELD_NAME_MAX];

	if (act->action == OUTBOX_DEFER && act->until <= now)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s is in the past; give a later time, like +5m",
				   field_name(naming, "until", name));
	return selection_check(act->action, naming, filter, err);
}

static int check_delivery(struct outbox_store *store, const char *id, const char *target,
			  struct outbox_arena *arena, struct outbox_error *err)
{
	const struct outbox_filter only = { .ids = &id, .n_ids = 1, .target = target, .limit = 1 };
	struct outbox_page page;
	char shown[96];
	int r = store_list(store, &only, arena, &page, err);

	if (r || page.count)
		return r;
	return outbox_fail(err, OUTBOX_ENOTFOUND, "%s has no delivery to %s",
			   text_shown(shown, sizeof(shown), id), target);
}

/* An id that is not in the log, or not for the target, is a mistake of its own, told before anything is changed. */
static int check_ids(struct outbox_store *store, const struct outbox_filter *filter,
		     struct outbox_error *err)
{
	struct outbox_arena *arena = outbox_arena_new(MESSAGE_MAX);
	struct outbox_claimed message;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && i < filter->n_ids; i++) {
		outbox_arena_reset(arena);
		r = store_get(store, filter->ids[i], arena, &message, err);
		outbox_arena_reset(arena);
		if (r == OUTBOX_OK && filter->target)
			r = check_delivery(store, filter->ids[i], filter->target, arena, err);
	}
	outbox_arena_free(arena);
	return r;
}

int act_settle(struct outbox_store *store, const struct outbox_stats *stats, int action,
	       enum naming naming, struct outbox_filter *filter, struct outbox_error *err)
{
	outbox_time now = stats->store_now;
	int r;

	if (filter->n_ids) {
		r = choose_target(stats, naming, filter, err);
		return r ? r : check_ids(store, filter, err);
	}
	if (!filter->created_before || filter->created_before > now)
		filter->created_before = now;
	if (action == OUTBOX_REQUEUE && (!filter->changed_before || filter->changed_before > now))
		filter->changed_before = now;
	return OUTBOX_OK;
}

/* ---- doing it ------------------------------------------------------------------------------ */

int act_page(struct outbox_store *store, const struct outbox_act *act,
	     struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = OUTBOX_EBUSY;

	for (int i = 0; i < BUSY_TRIES && r == OUTBOX_EBUSY; i++)
		r = store_act(store, act, ret_acted, &why);
	if (r && err)
		*err = why;
	if (r == OUTBOX_OK && ret_acted->refused && !ret_acted->done &&
	    ret_acted->refused == act->filter->n_ids)
		r = outbox_fail(err, OUTBOX_ECONFLICT, "%s", ret_acted->why);
	return r;
}

int act_all(struct outbox_store *store, const struct outbox_act *act, const struct bulk *bulk,
	    struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct outbox_acted *total = ret_acted, one;
	struct outbox_filter filter = *act->filter;
	struct outbox_act page = *act;
	char cursor[sizeof(one.cursor)];
	int r;

	page.filter = &filter;
	*total = (struct outbox_acted){ 0 };
	do {
		r = act_page(store, &page, &one, err);
		if (r && total->done)
			outbox_wrap(err,
				    "after %zu deliver%s, which are done; repeat the command for the rest",
				    total->done, total->done == 1 ? "y" : "ies");
		if (r)
			return r;
		total->done += one.done;
		if (!total->oldest || (one.oldest && one.oldest < total->oldest))
			total->oldest = one.oldest;
		bulk_progress(bulk, (int64_t)total->done);
		/* behind this page, so that what was done is not passed over again and again; without a
		 * cursor it ends when nothing more was done */
		snprintf(cursor, sizeof(cursor), "%s", one.cursor);
		filter.cursor = *cursor ? cursor : NULL;
		if (!one.more || (!*cursor && !one.done))
			return OUTBOX_OK;
	} while (!bulk_rest(bulk, (int64_t)total->done, one.rest));
	total->more = true;
	return OUTBOX_OK;
}

int act_pause(struct outbox_store *store, const struct outbox_stats *stats,
	      const struct act_pause *how, bool *ret_changed, struct outbox_error *err)
{
	bool was = false;
	int r = act_check_target(stats, how->target, err);

	for (size_t i = 0; i < stats->n_targets; i++)
		if (strcmp(stats->targets[i].name, how->target) == 0)
			was = stats->targets[i].paused;
	if (r == OUTBOX_OK && !how->dry_run)
		r = store_target_pause(store, how->target, how->pause, how->actor, how->reason, err);
	if (r == OUTBOX_OK)
		*ret_changed = was != how->pause;
	return r;
}
