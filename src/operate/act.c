/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/act.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"

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
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	struct nearest nearest;
	char shown[80];

	if (!name)
		return OUTBOX_OK;
	nearest_init(&nearest, name);
	for (size_t i = 0; i < stats->n_targets; i++) {
		if (strcmp(stats->targets[i].name, name) == 0)
			return OUTBOX_OK;
		nearest_offer(&nearest, stats->targets[i].name);
		buf_printf(&names, "%s%s", i ? ", " : "", stats->targets[i].name);
	}
	text_shown(shown, sizeof(shown), name);
	if (nearest.best)
		return outbox_fail(err, OUTBOX_ENOTFOUND, "no target \"%s\"; did you mean %s?",
				   shown, nearest.best);
	return outbox_fail(err, OUTBOX_ENOTFOUND, "no target \"%s\"; there %s%s", shown,
			   names.size ? "are: " : "is none yet", buf_str(&names));
}

int act_choose_target(const struct outbox_stats *stats, const char *option,
		      struct outbox_filter *filter, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);

	if (filter->target || stats->n_targets == 0)
		return OUTBOX_OK;
	if (stats->n_targets == 1) {
		filter->target = stats->targets[0].name;
		return OUTBOX_OK;
	}
	for (size_t i = 0; i < stats->n_targets; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", stats->targets[i].name);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "%s is missing: a message has a delivery to each of %s", option,
			   buf_str(&names));
}

int act_check_ids(struct outbox_store *store, const struct outbox_filter *filter,
		  struct outbox_error *err)
{
	struct outbox_arena *arena = outbox_arena_new(MESSAGE_MAX);
	struct outbox_claimed message;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && i < filter->n_ids; i++) {
		outbox_arena_reset(arena);
		r = store->ops->get(store, filter->ids[i], arena, &message, err);
	}
	outbox_arena_free(arena);
	return r;
}

void act_bound(int action, outbox_time now, struct outbox_filter *filter)
{
	if (!filter->created_before || filter->created_before > now)
		filter->created_before = now;
	if (action == OUTBOX_REQUEUE && (!filter->changed_before || filter->changed_before > now))
		filter->changed_before = now;
}

int act_page(struct outbox_store *store, const struct outbox_act *act,
	     struct outbox_acted *ret_acted, struct outbox_error *err)
{
	int r = OUTBOX_EBUSY;

	for (int i = 0; i < BUSY_TRIES && r == OUTBOX_EBUSY; i++)
		r = store->ops->act(store, act, ret_acted, err);
	return r;
}

bool act_next(const struct outbox_acted *acted, struct outbox_filter *filter,
	      char cursor[ACT_CURSOR_MAX])
{
	snprintf(cursor, ACT_CURSOR_MAX, "%s", acted->cursor);
	filter->cursor = *cursor ? cursor : NULL;
	/* without a cursor it ends when nothing more was done */
	return acted->more && (*cursor || acted->done > 0);
}

int act_check_refused(const struct outbox_acted *acted, const struct outbox_filter *filter,
		      struct outbox_error *err)
{
	if (acted->refused && acted->done == 0 && acted->refused == filter->n_ids)
		return outbox_fail(err, OUTBOX_ECONFLICT, "%s", acted->why);
	return OUTBOX_OK;
}
