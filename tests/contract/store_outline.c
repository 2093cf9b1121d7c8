/* SPDX-License-Identifier: Apache-2.0 */

/* What two stores that were given the same calls must agree on, as text. */

#include "store_world.h"

#include "base/buf.h"
#include "store/store.h"

static void outline_target(const struct outbox_target_stats *s, struct buf *out)
{
	buf_printf(out,
		   "%s paused %d new %lld sending %lld waiting %lld deferred %lld parked %lld failed "
		   "%lld discarded %lld ever %lld minute %lld retries %lld oldest %lld %s\n",
		   s->name, s->paused, (long long)s->pending, (long long)s->sending,
		   (long long)s->waiting, (long long)s->deferred, (long long)s->parked,
		   (long long)s->failed, (long long)s->discarded, (long long)s->delivered_ever,
		   (long long)s->delivered_minute, (long long)s->retries_minute,
		   (long long)s->oldest, s->unserved ? s->unserved : "served");
}

const char *world_outline(struct store_world *w)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)1 << 20);
	struct outbox_filter filter = filter_of(NULL);
	struct outbox_stats stats = { 0 };
	struct outbox_page page;

	outbox_arena_reset(w->arena);
	OK(store_stats(w->store, w->arena, &stats, &w->err));
	for (size_t i = 0; i < stats.n_targets; i++)
		outline_target(&stats.targets[i], &out);
	do {
		page = world_list(w, &filter);
		for (size_t i = 0; i < page.count; i++) {
			const struct outbox_delivery *d = &page.rows[i];
			bool done = d->state >= OUTBOX_DELIVERED;
			bool timed = d->why == OUTBOX_WAITING || d->why == OUTBOX_DEFERRED;

			buf_printf(&out,
				   "%lld %s %s lane %d %s %s attempts %d at %lld next %lld %s\n",
				   (long long)d->seq, d->id, d->target, d->lane,
				   outbox_state_name(d->state),
				   d->why ? outbox_why_name(d->why) : "-", d->attempts,
				   done ? (long long)d->last_status_at : 0,
				   timed ? (long long)d->next_attempt_at : 0,
				   d->error ? d->error : "-");
		}
		filter.cursor = page.cursor;
	} while (page.cursor);
	assert_false(out.failed);
	return outbox_arena_text(w->arena, buf_str(&out));
}

void compare_outlines(const char *reference, const char *other)
{
	while (*reference && *other) {
		size_t x = strcspn(reference, "\n"), y = strcspn(other, "\n");

		if (x != y || memcmp(reference, other, x) != 0) {
			print_error("reference: %.*s\nother:     %.*s\n", (int)x, reference, (int)y,
				    other);
			fail();
		}
		reference += x + 1;
		other += y + 1;
	}
	assert_true(!*reference && !*other);
}
