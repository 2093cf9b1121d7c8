/* SPDX-License-Identifier: Apache-2.0 */
#include "store_world.h"

#include "base/buf.h"
#include "store/store.h"

#include <stdio.h>

struct outbox_filter filter_of(const char *target)
{
	return (struct outbox_filter){ .struct_size = sizeof(struct outbox_filter),
				       .target = target,
				       .limit = 1000 };
}

struct outbox_page world_list(struct store_world *w, const struct outbox_filter *filter)
{
	struct outbox_page page = { 0 };

	OK(store_list(w->store, filter, w->arena, &page, &w->err));
	return page;
}

const struct outbox_delivery *world_find(struct store_world *w, const char *target, int64_t seq)
{
	struct outbox_filter filter = filter_of(target);
	struct outbox_page page;

	do {
		page = world_list(w, &filter);
		for (size_t i = 0; i < page.count; i++) {
			if (page.rows[i].seq == seq)
				return &page.rows[i];
		}
		filter.cursor = page.cursor;
	} while (page.cursor);
	return NULL;
}

const struct outbox_delivery *world_row(struct store_world *w, const char *target, int64_t seq)
{
	const struct outbox_delivery *row = world_find(w, target, seq);

	if (!row)
		print_error("message %lld has no delivery to %s\n", (long long)seq, target);
	assert_non_null(row);
	return row;
}

const char *world_id(struct store_world *w, const char *target, int64_t seq)
{
	return world_row(w, target, seq)->id;
}

void assert_state(struct store_world *w, const char *target, int64_t seq, int state, int why)
{
	const struct outbox_delivery *row = world_row(w, target, seq);
	const char *found_why = outbox_why_name(row->why), *want_why = outbox_why_name(why);

	if (row->state != state || row->why != why)
		print_error("message %lld to %s: %s %s, expected %s %s\n", (long long)seq, target,
			    outbox_state_name(row->state), found_why ? found_why : "",
			    outbox_state_name(state), want_why ? want_why : "");
	assert_int_equal(row->state, state);
	assert_int_equal(row->why, why);
}

static void picture_stats(struct store_world *w, struct buf *out)
{
	struct outbox_stats stats = { 0 };

	OK(store_stats(w->store, w->arena, &stats, &w->err));
	for (size_t i = 0; i < stats.n_targets; i++) {
		const struct outbox_target_stats *t = &stats.targets[i];

		buf_printf(out, "%s: ever %lld, minute %lld %lld", t->name,
			   (long long)t->delivered_ever, (long long)t->delivered_minute,
			   (long long)t->retries_minute);
		for (size_t l = 0; l < t->n_lanes; l++)
			buf_printf(out, " lane %d: %s %lld %lld %lld", t->lanes[l].lane,
				   t->lanes[l].owner ? t->lanes[l].owner : "-",
				   (long long)t->lanes[l].lease_until,
				   (long long)t->lanes[l].receipts,
				   (long long)t->lanes[l].takeovers);
		buf_char(out, '\n');
	}
}

const char *world_picture(struct store_world *w)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)16 << 20);
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_page page;

	picture_stats(w, &out);
	do {
		page = world_list(w, &filter);
		for (size_t i = 0; i < page.count; i++) {
			const struct outbox_delivery *d = &page.rows[i];

			buf_printf(&out,
				   "%lld %s %s: %d %d attempts %d next %lld at %lld %s %s %s\n",
				   (long long)d->seq, d->id, d->target, d->state, d->why,
				   d->attempts, (long long)d->next_attempt_at,
				   (long long)d->last_status_at, d->owner ? d->owner : "-",
				   d->error ? d->error : "-", d->reason ? d->reason : "-");
		}
		filter.cursor = page.cursor;
	} while (page.cursor);
	assert_false(out.failed);
	return outbox_arena_text(w->arena, buf_str(&out));
}

const struct outbox_target_stats *world_stats(struct store_world *w, const char *target)
{
	struct outbox_stats stats = { 0 };

	OK(store_stats(w->store, w->arena, &stats, &w->err));
	for (size_t i = 0; i < stats.n_targets; i++) {
		if (!strcmp(stats.targets[i].name, target))
			return &stats.targets[i];
	}
	fail_msg("no target %s in the stats", target);
	return NULL;
}

int64_t world_receipts(struct store_world *w, const char *target, int lane)
{
	const struct outbox_target_stats *stats = world_stats(w, target);

	assert_int_equal(stats->n_lanes, w->lanes);
	assert_int_equal(stats->lanes[lane].lane, lane);
	return stats->lanes[lane].receipts;
}

int64_t world_messages(struct store_world *w)
{
	struct outbox_stats stats = { 0 };

	OK(store_stats(w->store, w->arena, &stats, &w->err));
	return stats.messages;
}

struct outbox_acted world_act_filter(struct store_world *w, const struct outbox_act *act)
{
	struct outbox_acted acted = { 0 };

	OK(store_act(w->store, act, &acted, &w->err));
	return acted;
}

struct outbox_acted world_act(struct store_world *w, int action, const char *target, int64_t seq)
{
	const char *ids[] = { world_id(w, target, seq) };
	struct outbox_filter filter = filter_of(target);
	struct outbox_act act = { .action = action,
				  .actor = "anna",
				  .reason = "because",
				  .until = world_now(w) + 60 * SEC,
				  .filter = &filter };

	filter.ids = ids;
	filter.n_ids = 1;
	return world_act_filter(w, &act);
}

struct outbox_purged world_purge(struct store_world *w, const struct outbox_purge *purge)
{
	struct outbox_purged purged = { 0 };

	OK(store_purge(w->store, purge, &purged, &w->err));
	return purged;
}
