/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/holds.h"

#include "base/cleanup.h"
#include "store/store.h"

#include <stdio.h>

#define PAGE 1000
#define PAGE_BYTES ((size_t)16 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

struct look {
	struct outbox_store *store;
	const struct outbox_purge *purge;
	struct outbox_arena *arena;
};

static void count_held(struct hold *hold, const struct outbox_delivery *d,
		       const struct outbox_purge *purge)
{
	if (d->state == OUTBOX_FAILED && purge->failed_before &&
	    d->last_status_at < purge->failed_before)
		return;
	*(d->state == OUTBOX_FAILED ? &hold->failed : &hold->unfinished) += 1;
	if (!hold->oldest || d->created_at < hold->oldest)
		hold->oldest = d->created_at;
}

/* In the order of the log, up to the first that is too young: a backlog of today's is not read for this. */
static int look_for(const struct look *look, int state, struct hold *hold, struct outbox_error *err)
{
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_page page = { 0 };
	int64_t seen = 0;
	char cursor[256];
	int r;

	filter.target = hold->target;
	filter.state = state;
	filter.limit = PAGE;
	do {
		outbox_arena_reset(look->arena);
		r = store_list(look->store, &filter, look->arena, &page, err);
		for (size_t i = 0; r == OUTBOX_OK && i < page.count; i++) {
			if (page.rows[i].created_at >= look->purge->delivered_before)
				return OUTBOX_OK;
			count_held(hold, &page.rows[i], look->purge);
		}
		seen += (int64_t)page.count;
		hold->more = hold->more || seen >= HOLDS_MAX;
		if (r == OUTBOX_OK && page.cursor) { /* from the arena, which is reset */
			snprintf(cursor, sizeof(cursor), "%s", page.cursor);
			filter.cursor = cursor;
		}
	} while (r == OUTBOX_OK && page.cursor && seen < HOLDS_MAX);
	return r;
}

static int look_at(const struct look *look, const struct outbox_target_stats *t, struct hold *hold,
		   struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (t->pending + t->waiting + t->deferred + t->parked)
		r = look_for(look, OUTBOX_PENDING, hold, err);
	if (r == OUTBOX_OK && t->sending)
		r = look_for(look, OUTBOX_SENDING, hold, err);
	if (r == OUTBOX_OK && t->failed)
		r = look_for(look, OUTBOX_FAILED, hold, err);
	return r;
}

int holds_find(struct outbox_store *store, const struct outbox_purge *purge,
	       const struct outbox_stats *stats, struct outbox_arena *arena,
	       struct holds *ret_holds, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *pages = outbox_arena_new(PAGE_BYTES);
	struct look look = { store, purge, pages };
	struct holds holds = { .list = outbox_arena_alloc(arena, (stats->n_targets + 1) *
									 sizeof(struct hold)) };
	int r = pages && holds.list ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && purge->delivered_before && i < stats->n_targets; i++) {
		struct hold hold = { .target = stats->targets[i].name };

		r = look_at(&look, &stats->targets[i], &hold, err);
		if (hold.unfinished || hold.failed)
			holds.list[holds.count++] = hold;
	}
	if (r == OUTBOX_OK)
		*ret_holds = holds;
	return r;
}
