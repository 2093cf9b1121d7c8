/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/archiver.h"

#include "base/failpoint.h"
#include "relay/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 500
#define PAGE_BYTES ((size_t)80 << 20)
/* What a file has at the most, but for its last page. */
#define FILE_MESSAGES 50000
#define FILE_BYTES ((size_t)64 << 20)

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

int archiver_new(const char *folder, struct outbox_clock *clock, struct archiver **ret_archiver,
		 struct outbox_error *err)
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

struct archiver *archiver_free(struct archiver *a)
{
	if (!a)
		return NULL;
	archive_free(a->file);
	outbox_arena_free(a->page);
	free(a->seqs);
	free(a);
	return NULL;
}

static void begin_anew(struct archiver *a)
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
	int n, r = store->ops->info(store, &info, err);

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
	r = store->ops->purgeable(store, &request, a->n ? a->seqs[a->n - 1] : 0, a->page, &messages,
				  &n, err);
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
	r = store->ops->purge(store, &request, purged, err);
	if (r == OUTBOX_OK && !purged->more) {
		purged->more = !a->last; /* the next file of this round */
		begin_anew(a);
	}
	return r;
}

int archiver_step(struct archiver *a, struct outbox_store *store, const struct outbox_purge *purge,
		  struct outbox_purged *ret_purged, bool *ret_ours, struct outbox_error *err)
{
	struct outbox_purged purged = { .more = true };
	int r;

	*ret_ours = false;
	r = a->durable ? remove_archived(a, store, purge, &purged, err)
		       : read_page(a, store, purge, ret_ours, err);
	/* After a lost reply the same is removed again, which is harmless. */
	if (r != OUTBOX_OK && !a->durable)
		begin_anew(a);
	if (r == OUTBOX_OK)
		*ret_purged = purged;
	return r;
}
