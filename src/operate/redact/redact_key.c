/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/redact/redact_key.h"

#include "base/cleanup.h"
#include "store/store.h"

#define ARENA_BYTES ((size_t)16 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

struct walk {
	struct redact_key *work;
	const struct bulk *bulk;
	struct outbox_arena *page, *rows;
	bool no_target;
};

static bool is_finished(const struct outbox_delivery *row)
{
	return row->state == OUTBOX_DELIVERED || row->state == OUTBOX_DISCARDED;
}

/* Its deliveries that are not finished are told; *ret_count: how many. */
static int list_unfinished(struct walk *walk, const char *id, size_t *ret_count,
			   struct outbox_error *err)
{
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_page page = { 0 };
	int r = OUTBOX_OK;

	filter.ids = &id;
	filter.n_ids = 1;
	*ret_count = walk->no_target;
	if (walk->no_target)
		walk->work->unfinished(walk->work->context, &(struct outbox_delivery){ .id = id });
	outbox_arena_reset(walk->rows);
	/* all its pages stay: the next one is asked for with the cursor in the one before */
	do {
		r = store_list(walk->work->store, &filter, walk->rows, &page, err);
		for (size_t i = 0; r == OUTBOX_OK && i < page.count; i++) {
			if (is_finished(&page.rows[i]))
				continue;
			walk->work->unfinished(walk->work->context, &page.rows[i]);
			++*ret_count;
		}
		filter.cursor = page.cursor;
	} while (r == OUTBOX_OK && page.cursor);
	return r;
}

static int look_at(struct walk *walk, const char *id, struct outbox_error *err)
{
	size_t unfinished = 0;
	int r = list_unfinished(walk, id, &unfinished, err);

	walk->work->left += r == OUTBOX_OK && unfinished;
	walk->work->done += r == OUTBOX_OK && !unfinished;
	return r;
}

/* The store decides, in one transaction, whether it is finished. */
static int redact_one(struct walk *walk, const char *id, struct outbox_error *err)
{
	struct redact_key *work = walk->work;
	const struct outbox_redact how = {
		.struct_size = sizeof(how), .id = id, .actor = work->actor, .reason = work->reason
	};
	size_t unfinished = 0;
	bool done = false;
	int r = store_redact(work->store, &how, &done, err);

	if (r == OUTBOX_ENOTFOUND) /* retention was faster */
		return OUTBOX_OK;
	if (r == OUTBOX_ECONFLICT) {
		work->left++;
		return list_unfinished(walk, id, &unfinished, err);
	}
	work->done += r == OUTBOX_OK && done;
	work->before += r == OUTBOX_OK && !done;
	return r;
}

static int work_page(struct walk *walk, const struct outbox_key_found *found,
		     struct outbox_error *err)
{
	struct redact_key *work = walk->work;
	int r = OUTBOX_OK;

	for (size_t i = 0; r == OUTBOX_OK && i < found->count && !work->ended; i++) {
		r = (work->dry_run ? look_at : redact_one)(walk, found->ids[i], err);
		work->ended = bulk_rest(walk->bulk, work->done, 0);
	}
	work->searched += (int64_t)found->looked;
	bulk_progress(walk->bulk, work->searched);
	return r;
}

static int walk_log(struct walk *walk, struct outbox_error *err)
{
	struct redact_key *work = walk->work;
	struct outbox_key_search search = OUTBOX_KEY_SEARCH_INIT;
	struct outbox_key_found found = { .more = true };
	struct outbox_stats stats;
	int r = store_stats(work->store, walk->rows, &stats, err);

	walk->no_target = r == OUTBOX_OK && !stats.n_targets;
	search.key = work->key;
	search.key_like = work->key_like;
	while (r == OUTBOX_OK && found.more && !work->ended) {
		outbox_arena_reset(walk->page);
		r = store_find_key(work->store, &search, walk->page, &found, err);
		if (r == OUTBOX_OK)
			r = work_page(walk, &found, err);
		search.after_seq = found.last_seq;
		work->ended = work->ended || bulk_rest(walk->bulk, work->done, 0);
	}
	return r;
}

int redact_key(struct redact_key *work, const struct bulk *bulk, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *page = outbox_arena_new(ARENA_BYTES);
	_cleanup_(outbox_arena_freep) struct outbox_arena *rows = outbox_arena_new(ARENA_BYTES);
	struct walk walk = { .work = work, .bulk = bulk, .page = page, .rows = rows };

	if (!page || !rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return walk_log(&walk, err);
}
