/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/retention.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "relay/archive.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAINTAIN_INTERVAL OUTBOX_SECONDS
#define PURGE_GAP (50 * OUTBOX_MILLISECONDS)
#define PURGE_WALK OUTBOX_SECONDS

#define PRUNE_LIMIT 5000

#define PAGE 500
#define PAGE_BYTES ((size_t)80 << 20)
/* What a file has at the most, but for its last page. */
#define FILE_MESSAGES 50000
#define FILE_BYTES ((size_t)64 << 20)

/*
 * Retention that archives what it removes: read what may go into a file, make that durable, remove exactly what is in
 * it. A crash in between archives twice and loses nothing. One page is read or one call made at a time, so that
 * deliveries go on meanwhile.
 */
struct archiver {
	const char *folder;
	struct outbox_clock *clock;
	struct outbox_arena *page;
	struct archive *file; /* NULL: none is being written */
	int64_t *seqs;        /* in the file; what may be removed once it is durable */
	size_t n, capacity, bytes, limit;
	bool durable; /* the file is: remove what is in it */
	bool last;    /* there was no more to read */
};

static struct archiver *archiver_free(struct archiver *a)
{
	if (!a)
		return NULL;
	archive_free(a->file);
	outbox_arena_free(a->page);
	free(a->seqs);
	free(a);
	return NULL;
}

static int archiver_new(const char *folder, struct outbox_clock *clock,
			struct archiver **ret_archiver, struct outbox_error *err)
{
	struct archiver *a = calloc(1, sizeof(*a));

	if (a)
		a->page = outbox_arena_new(PAGE_BYTES);
	if (!a || !a->page) {
		archiver_free(a);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	a->folder = folder;
	a->clock = clock;
	a->limit = PAGE;
	*ret_archiver = a;
	return OUTBOX_OK;
}

static void start_over(struct archiver *a)
{
	a->file = archive_free(a->file); /* an unfinished one is removed */
	a->n = a->bytes = 0;
	a->limit = PAGE;
	a->durable = a->last = false;
}

/* shop-20261115T180000Z-12345.jsonl.zst: the store's name, now, and the place of the first message in the log. */
static int open_file(struct archiver *a, struct outbox_store *store, int64_t first,
		     struct outbox_error *err)
{
	time_t now = (time_t)(a->clock->wall(a->clock) / OUTBOX_SECONDS);
	struct outbox_store_info info = { 0 };
	char path[4096], when[32];
	struct tm tm;
	int n, r = store_info(store, &info, err);

	if (r)
		return r;
	for (char *c = info.name; *c; c++) {
		if (*c == '/' || (unsigned char)*c < ' ')
			*c = '-';
	}
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	n = snprintf(path, sizeof(path), "%s/%s-%s-%lld.jsonl.zst", a->folder,
		     info.name[0] ? info.name : "outbox", when, (long long)first);
	if (n < 0 || (size_t)n >= sizeof(path))
		return outbox_fail(err, OUTBOX_ECONFIG, "archive: the folder's name is too long");
	return archive_new(path, "; nothing is removed", &a->file, err);
}

static int remember_seq(struct archiver *a, int64_t seq, struct outbox_error *err)
{
	if (a->n == a->capacity) {
		size_t capacity = a->capacity ? 2 * a->capacity : PAGE;
		int64_t *seqs = realloc(a->seqs, capacity * sizeof(*seqs));

		if (!seqs)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		a->seqs = seqs;
		a->capacity = capacity;
	}
	a->seqs[a->n++] = seq;
	return OUTBOX_OK;
}

static int add_messages(struct archiver *a, const struct outbox_claimed *messages, size_t n,
			struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < n && r == OUTBOX_OK; i++) {
		r = archive_add(a->file, &messages[i], err);
		if (r == OUTBOX_OK)
			r = remember_seq(a, messages[i].seq, err);
		a->bytes += messages[i].message.size;
	}
	return r;
}

/* Into the file, which is made durable at its end. */
static int write_page(struct archiver *a, struct outbox_store *store,
		      const struct outbox_claimed *messages, size_t n, struct outbox_error *err)
{
	int r = n && !a->file ? open_file(a, store, messages[0].seq, err) : OUTBOX_OK;

	if (r == OUTBOX_OK)
		r = add_messages(a, messages, n, err);
	a->last = n == 0;
	if (r != OUTBOX_OK || !(a->last || a->n >= FILE_MESSAGES || a->bytes >= FILE_BYTES))
		return r;
	if (a->file)
		r = archive_commit(a->file, err);
	a->durable = r == OUTBOX_OK;
	failpoint("after_archive");
	return r;
}

static int read_page(struct archiver *a, struct outbox_store *store,
		     const struct outbox_purge *purge, bool *ret_ours, struct outbox_error *err)
{
	struct outbox_purge request = *purge;
	struct outbox_claimed *messages = NULL;
	size_t n = 0;
	int r;

	outbox_arena_reset(a->page);
	request.limit = a->limit;
	r = store_purgeable(store, &request, a->n ? a->seqs[a->n - 1] : 0, a->page, &messages, &n,
			    err);
	if (r == OUTBOX_ENOMEM && a->limit > 1) {
		a->limit /= 2; /* large payloads: a smaller page fits */
		return OUTBOX_OK;
	}
	if (r != OUTBOX_OK)
		return r;
	r = write_page(a, store, messages, n, err);
	*ret_ours = r != OUTBOX_OK;
	return r;
}

static int remove_archived(struct archiver *a, struct outbox_store *store,
			   const struct outbox_purge *purge, struct outbox_purged *purged,
			   struct outbox_error *err)
{
	static const int64_t none;
	struct outbox_purge request = *purge;
	int r;

	request.only = a->n ? a->seqs : &none;
	request.n_only = a->n;
	request.through_seq = a->n ? a->seqs[a->n - 1] : 0;
	r = store_purge(store, &request, purged, err);
	if (r == OUTBOX_OK && !purged->more) {
		purged->more = !a->last; /* the next file of this round */
		start_over(a);
	}
	return r;
}

/*
 * One step of a round: the same times until it is done, which is when ret->more is false. ret_ours: what failed was
 * the archive, not the store. A round that failed starts over, with what was archived and not removed.
 */
static int archiver_step(struct archiver *a, struct outbox_store *store,
			 const struct outbox_purge *purge, struct outbox_purged *ret_purged,
			 bool *ret_ours, struct outbox_error *err)
{
	struct outbox_purged purged = { .more = true };
	int r;

	*ret_ours = false;
	r = a->durable ? remove_archived(a, store, purge, &purged, err)
		       : read_page(a, store, purge, ret_ours, err);
	/* After a lost reply the same is removed again, which is harmless. */
	if (r != OUTBOX_OK && !a->durable)
		start_over(a);
	if (r == OUTBOX_OK)
		*ret_purged = purged;
	return r;
}

/* ---- the rounds */

void retention_deinit(struct retention *retention)
{
	archiver_free(retention->archiver);
}

static bool keeps_inbox(const struct link *link)
{
	return link->store && store_has_inbox(link->store->ops) &&
	       link->plan->purge_interval != OUTBOX_NEVER &&
	       link->plan->retain_inbox != OUTBOX_NEVER;
}

outbox_time retention_due(const struct retention *retention, const struct link *link, bool first_lane)
{
	outbox_time purge =
		link->plan->purge_interval == OUTBOX_NEVER ? OUTBOX_NEVER : retention->purge_at;
	outbox_time maintain = link->store && store_needs_maintenance(link->store)
				       ? retention->maintain_at
				       : OUTBOX_NEVER;

	outbox_time prune = keeps_inbox(link) ? retention->prune_at : OUTBOX_NEVER;

	if (!(retention->keeper && first_lane) || atomic_load(&link->draining))
		return OUTBOX_NEVER;
	if (prune < purge)
		purge = prune;
	return purge < maintain ? purge : maintain;
}

static outbox_time time_before(outbox_time store_now, outbox_time retention)
{
	return retention == OUTBOX_NEVER || retention >= store_now ? 0 : store_now - retention;
}

/* As one call of the store, or as one step of an archive that comes first. */
static int purge_some(struct retention *retention, struct link *link, struct outbox_purged *purged,
		      bool *ours, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	*ours = false;
	if (!link->plan->archive)
		return store_purge(link->store, &retention->purge, purged, err);
	if (!retention->archiver)
		r = archiver_new(link->plan->archive, link->plan->clock, &retention->archiver, err);
	return r ? r
		 : archiver_step(retention->archiver, link->store, &retention->purge, purged, ours,
				 err);
}

static int purge(struct retention *retention, struct link *link, outbox_time now, bool *ours,
		 struct outbox_error *err)
{
	/* The store compares with its own times; the wall clock only says how far back to look, and a
	 * skew of seconds does not matter to a retention of days. */
	outbox_time wall = link->plan->clock->wall(link->plan->clock);
	struct outbox_purge *request = &retention->purge;
	struct outbox_purged purged = { 0 };
	int r;

	/* A round of several calls keeps its times, or the store would start over at each. */
	if (!request->delivered_before && !request->failed_before) {
		request->delivered_before = time_before(wall, link->plan->retain_delivered);
		request->failed_before = time_before(wall, link->plan->retain_failed);
	}
	if (!request->delivered_before && !request->failed_before) {
		retention->purge_at = now + link->plan->purge_interval;
		return OUTBOX_OK;
	}
	r = purge_some(retention, link, &purged, ours, err);
	if (r)
		return r;
	/* Between two calls publishers get the write lock too. One that only looked at what stays, waiting for a
	 * target that is away, is in no hurry to look on. */
	if (purged.more && !link->plan->archive &&
	    purged.messages + purged.receipts + purged.detours == 0)
		retention->purge_at = now + PURGE_WALK;
	else
		retention->purge_at = now + (purged.more ? PURGE_GAP : link->plan->purge_interval);
	if (!purged.more)
		*request = (struct outbox_purge){ 0 };
	if (purged.messages)
		log_event(&link->plan->log, EVENT_CLEANUP_DONE, NULL, "purged %lld message%s",
			  (long long)purged.messages, purged.messages == 1 ? "" : "s");
	return OUTBOX_OK;
}

/* One short transaction; where there are more, the next one follows. Without an inbox here nothing is to do. */
static int prune(struct retention *retention, struct link *link, outbox_time now,
		 struct outbox_error *err)
{
	outbox_time wall = link->plan->clock->wall(link->plan->clock);
	const struct outbox_inbox_filter old = { .struct_size = sizeof(old),
						 .before =
							 time_before(wall, link->plan->retain_inbox),
						 .limit = PRUNE_LIMIT };
	struct outbox_inbox_stats stats;
	int64_t removed = 0;
	int r = store_inbox_stats(link->store, &stats, err);

	if (r == OUTBOX_OK && stats.oldest && stats.oldest < old.before)
		r = store_inbox_prune(link->store, &old, &removed, err);
	if (r)
		return r;
	retention->prune_at =
		now + (removed == PRUNE_LIMIT ? PURGE_GAP : link->plan->purge_interval);
	if (removed)
		log_event(&link->plan->log, EVENT_CLEANUP_DONE, NULL,
			  "removed %lld id%s from the inbox", (long long)removed,
			  removed == 1 ? "" : "s");
	return OUTBOX_OK;
}

/*
 * Delivery goes on without a clean-up (a log with room in it can be written when a checkpoint has none):
 * it holds nothing back, is told once, and is due again at its next time. Only a lost connection is
 * everybody's outage.
 */
static void report_failure(struct retention *retention, struct link *link, const char *call,
			   const struct outbox_error *err, bool ours, outbox_time now)
{
	if (err->status == OUTBOX_EBUSY)
		return;
	if (!ours && !link_keeps_store(err->status)) {
		link_store_failed(link, call, err, now);
		return;
	}
	if (retention->untidy || link->store_outage.status)
		return;
	retention->untidy = call;
	atomic_store(&link->tally->untidy_since, link->plan->clock->wall(link->plan->clock));
	log_event(&link->plan->log, EVENT_CLEANUP_FAILED, ABOUT_TARGET(link),
		  "clean-up: %s; delivery goes on, the clean-up is tried again", err->message);
}

static void report_success(struct retention *retention, struct link *link, const char *call)
{
	/* the one that failed may have been another worker's, which held the lane before */
	if (!retention->untidy || strcmp(retention->untidy, call) == 0)
		atomic_store(&link->tally->untidy_since, 0);
	if (!retention->untidy || strcmp(retention->untidy, call) != 0)
		return;
	retention->untidy = NULL;
	log_event(&link->plan->log, EVENT_CLEANUP_BACK, ABOUT_TARGET(link), "clean-up works again");
}

void retention_step(struct retention *retention, struct link *link, outbox_time now)
{
	bool purging = link->plan->purge_interval != OUTBOX_NEVER && now >= retention->purge_at;
	bool pruning = !purging && keeps_inbox(link) && now >= retention->prune_at;
	const char *call = purging ? "purge" : pruning ? "prune" : "maintain";
	struct outbox_error err = OUTBOX_ERROR_INIT;
	bool ours = false; /* the archive or the inbox failed, not the store */
	int r;

	if (purging) {
		retention->purge_at = now + OUTBOX_SECONDS;
		r = purge(retention, link, now, &ours, &err);
	} else if (pruning) {
		retention->prune_at = now + OUTBOX_SECONDS;
		r = prune(retention, link, now, &err);
		/* whatever is wrong with the inbox, the outbox beside it works */
		ours = r != OUTBOX_ECONN && r != OUTBOX_ETIMEDOUT;
	} else {
		retention->maintain_at = now + MAINTAIN_INTERVAL;
		r = store_maintain(link->store, &err);
	}
	if (r)
		report_failure(retention, link, call, &err, ours, now);
	else
		report_success(retention, link, call);
}
