/* SPDX-License-Identifier: Apache-2.0 */
/* What people call: looking, acting, cleaning up. */

#include "cases.h"
#include "store/sqlite/ops.h"
#include "store/store.h"

static int act(struct world *w, struct outbox_act *act, struct outbox_error *err)
{
	struct outbox_acted acted;
	int r;

	act->actor = "ann";
	act->reason = "agreed";
	r = store_act(w->store, act, &acted, err);
	if (r == OUTBOX_OK)
		world_say(w, "done %zu refused %zu more %d oldest %lld %s", acted.done,
			  acted.refused, acted.more, (long long)acted.oldest, acted.why);
	return r;
}

static int call_requeue(struct world *w, struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter), .state = OUTBOX_FAILED };

	return act(w, &(struct outbox_act){ .action = OUTBOX_REQUEUE, .filter = &filter }, err);
}

static int call_discard(struct world *w, struct outbox_error *err)
{
	static const char *const ids[] = { "m-02", "m-04", "m-01" };
	struct outbox_filter filter = { .struct_size = sizeof(filter), .ids = ids, .n_ids = 3 };

	return act(w, &(struct outbox_act){ .action = OUTBOX_DISCARD, .filter = &filter }, err);
}

static int call_defer(struct world *w, struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter),
					.state = OUTBOX_PENDING,
					.type = "order.*" };

	return act(w,
		   &(struct outbox_act){ .action = OUTBOX_DEFER,
					 .filter = &filter,
					 .until = WORLD_START + 2 * OUTBOX_HOURS },
		   err);
}

static void say_page(struct world *w, const struct outbox_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct outbox_delivery *d = &page->rows[i];

		world_say(w, "%lld %s %s %s %s %d %d %d %d %s %s %s %lld %lld %lld\n",
			  (long long)d->seq, d->id, d->target, d->type, d->key ? d->key : "-",
			  d->lane, d->state, d->why, d->attempts, d->owner ? d->owner : "-",
			  d->error ? d->error : "-", d->reason ? d->reason : "-",
			  (long long)d->created_at, (long long)d->last_status_at,
			  (long long)d->next_attempt_at);
	}
	world_say(w, "cursor %s\n", page->cursor ? page->cursor : "-");
}

static int call_list(struct world *w, struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter), .limit = 11 };
	struct outbox_page page;
	int r;

	outbox_arena_reset(w->arena);
	r = store_list(w->store, &filter, w->arena, &page, err);
	if (r == OUTBOX_OK)
		say_page(w, &page);
	return r;
}

static int call_tail(struct world *w, struct outbox_error *err)
{
	struct outbox_page page;
	int r;

	outbox_arena_reset(w->arena);
	r = store_tail(w->store, NULL, 100, w->arena, &page, err);
	if (r == OUTBOX_OK)
		say_page(w, &page);
	return r;
}

static int call_get(struct world *w, struct outbox_error *err)
{
	struct outbox_claimed message;
	int r;

	outbox_arena_reset(w->arena);
	r = sqlite_get(w->store, "m-01", w->arena, &message, err);
	if (r == OUTBOX_OK)
		world_say_message(w, &message);
	return r;
}

static void prepare_audit(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	prepare_trouble(w);
	must(call_requeue(w, &err), &err, "requeue");
	must(call_discard(w, &err), &err, "discard");
}

static int call_audit(struct world *w, struct outbox_error *err)
{
	struct outbox_audit *rows;
	size_t count;
	int r;

	outbox_arena_reset(w->arena);
	r = store_audit(w->store, NULL, 100, w->arena, &rows, &count, err);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++)
		world_say(w, "%lld %s %s %s %s %s %s\n", (long long)rows[i].number,
			  rows[i].actor ? rows[i].actor : "-", rows[i].action,
			  rows[i].target ? rows[i].target : "-", rows[i].id ? rows[i].id : "-",
			  rows[i].reason ? rows[i].reason : "-",
			  rows[i].detail ? rows[i].detail : "-");
	return r;
}

static int call_stats(struct world *w, struct outbox_error *err)
{
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(w->arena);
	r = sqlite_stats(w->store, w->arena, &stats, err);
	if (r != OUTBOX_OK)
		return r;
	world_say(w, "%lld %lld\n", (long long)stats.store_now, (long long)stats.messages);
	for (size_t i = 0; i < stats.n_targets; i++) {
		const struct outbox_target_stats *t = &stats.targets[i];

		world_say(w, "%s %d %s new %lld %lld %lld %lld %lld %lld %lld ever %lld %lld %lld\n",
			  t->name, t->paused, t->paused_by ? t->paused_by : "-",
			  (long long)t->pending, (long long)t->sending, (long long)t->waiting,
			  (long long)t->deferred, (long long)t->parked, (long long)t->failed,
			  (long long)t->discarded, (long long)t->delivered_ever,
			  (long long)t->delivered_minute, (long long)t->oldest);
		for (size_t j = 0; j < t->n_lanes; j++)
			world_say(w, "  %d %s %lld %lld\n", t->lanes[j].lane,
				  t->lanes[j].owner ? t->lanes[j].owner : "-",
				  (long long)t->lanes[j].receipts, (long long)t->lanes[j].takeovers);
	}
	return OUTBOX_OK;
}

static const struct outbox_purge purge_all = {
	.delivered_before = WORLD_START + OUTBOX_DAYS,
	.failed_before = WORLD_START + OUTBOX_DAYS,
	.actor = "ann",
};

static int call_purge(struct world *w, struct outbox_error *err)
{
	struct outbox_purged purged;
	int r = sqlite_purge(w->store, &purge_all, &purged, err);

	if (r == OUTBOX_OK)
		world_say(w, "%lld %lld %lld %lld %d", (long long)purged.messages,
			  (long long)purged.failed, (long long)purged.receipts,
			  (long long)purged.detours, purged.more);
	return r;
}

static int call_purgeable(struct world *w, struct outbox_error *err)
{
	struct outbox_claimed *messages;
	size_t count;
	int r;

	outbox_arena_reset(w->arena);
	r = sqlite_purgeable(w->store, &purge_all, 0, w->arena, &messages, &count, err);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++)
		world_say_message(w, &messages[i]);
	return r;
}

static int call_pause(struct world *w, struct outbox_error *err)
{
	return sqlite_target_pause(w->store, "events", true, "ann", "their maintenance", err);
}

static int call_target_drop(struct world *w, struct outbox_error *err)
{
	return sqlite_target_drop(w->store, "events", "ann", "gone", err);
}

const struct store_case operator_cases[] = {
	{ "act, requeue", prepare_trouble, NULL, call_requeue, 0, 60, 12 },
	{ "act, discard", prepare_trouble, NULL, call_discard, 0, 60, 12 },
	{ "act, defer", prepare_trouble, NULL, call_defer, 0, 60, 12 },
	{ "list", prepare_audit, NULL, call_list, CASE_AGAIN, 60, 5 },
	{ "tail", prepare_audit, NULL, call_tail, CASE_AGAIN, 20, 5 },
	{ "get", prepare_trouble, NULL, call_get, CASE_AGAIN, 20, 5 },
	{ "audit", prepare_audit, NULL, call_audit, CASE_AGAIN, 10, 5 },
	{ "stats", prepare_audit, NULL, call_stats, CASE_AGAIN, 60, 5 },
	{ "purge", prepare_trouble, NULL, call_purge, 0, 60, 12 },
	{ "purgeable", prepare_trouble, NULL, call_purgeable, CASE_AGAIN | CASE_SHORT, 40, 5 },
	{ "target_pause", prepare_trouble, NULL, call_pause, CASE_AGAIN, 20, 12 },
	{ "target_drop", prepare_trouble, NULL, call_target_drop, 0, 40, 12 },
	{ NULL },
};
