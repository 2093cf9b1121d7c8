/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/purge.h"

#include "base/cleanup.h"
#include "relay/archive.h"
#include "store/store.h"

#include <stdlib.h>

#define READ_PAGE 500 /* payloads come along */
#define READ_BYTES ((size_t)80 << 20)
#define PURGE_PAGE 5000
#define SLICE 50000 /* of what an archive has, in one go */

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)
DEFINE_CLEANUP(struct archive *, archive_free)

int purge_check(const struct outbox_purge *purge, enum naming naming, struct outbox_error *err)
{
	char delivered[FIELD_NAME_MAX], failed[FIELD_NAME_MAX];

	if (purge->delivered_before || purge->failed_before)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "no age is given: use %s 7d, %s 30d or both",
			   field_name(naming, "delivered_before", delivered),
			   field_name(naming, "failed_before", failed));
}

/* Between two pages: whoever asked for it may have had enough. */
static int check_ended(const struct bulk *bulk, int64_t done, int64_t removed,
		       struct outbox_error *err)
{
	bulk_progress(bulk, done);
	return bulk_rest(bulk, done, 0)
		       ? outbox_fail(err, OUTBOX_ECONFLICT, "interrupted; messages purged: %lld",
				     (long long)removed)
		       : OUTBOX_OK;
}

/* ---- reading what would go ----------------------------------------------------------------- */

struct reading {
	struct outbox_store *store;
	const struct outbox_purge *purge;
	const struct bulk *bulk;
	struct archive *archive; /* NULL: only count */
	struct purge_list *list;
	int64_t found;
	bool more;
};

static int add_to_archive(struct reading *reading, const struct outbox_claimed *messages, size_t n,
			  struct outbox_error *err)
{
	struct purge_list *list = reading->list;
	int r = OUTBOX_OK;

	if (list->count + n > list->capacity) {
		size_t capacity = 2 * (list->count + n);
		int64_t *seqs = realloc(list->seqs, capacity * sizeof(*seqs));

		if (!seqs)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory; nothing was purged");
		list->seqs = seqs;
		list->capacity = capacity;
	}
	for (size_t i = 0; r == OUTBOX_OK && i < n; i++) {
		list->seqs[list->count++] = messages[i].seq;
		r = archive_add(reading->archive, &messages[i], err);
	}
	return r;
}

static int read_all(struct reading *reading, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(READ_BYTES);
	struct outbox_purge page = *reading->purge;
	size_t size = READ_PAGE, left = page.limit, n = 1;
	struct outbox_claimed *messages;
	int64_t seq = 0;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	while (r == OUTBOX_OK && n && (left || !reading->purge->limit)) {
		outbox_arena_reset(arena);
		page.limit = left && left < size ? left : size;
		r = store_purgeable(reading->store, &page, seq, arena, &messages, &n, err);
		if (r == OUTBOX_ENOMEM && size > 1) {
			size /= 2; /* large payloads: a smaller page fits */
			n = 1;
			r = OUTBOX_OK;
			continue;
		}
		if (r || n == 0)
			break;
		r = check_ended(reading->bulk, reading->found + (int64_t)n, 0, err);
		if (r == OUTBOX_OK && reading->archive)
			r = add_to_archive(reading, messages, n, err);
		seq = messages[n - 1].seq;
		reading->found += (int64_t)n;
		left -= left < n ? left : n;
	}
	reading->more = n > 0;
	return r;
}

int purge_count(struct outbox_store *store, const struct outbox_purge *purge,
		const struct bulk *bulk, struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct reading reading = { .store = store, .purge = purge, .bulk = bulk };
	int r = read_all(&reading, err);

	if (r == OUTBOX_OK)
		*ret_purged =
			(struct outbox_purged){ .messages = reading.found, .more = reading.more };
	return r;
}

int purge_archive(struct outbox_store *store, const struct outbox_purge *purge, const char *path,
		  const struct bulk *bulk, struct purge_list *list, struct outbox_error *err)
{
	_cleanup_(archive_freep) struct archive *archive = NULL;
	struct reading reading = { .store = store, .purge = purge, .bulk = bulk, .list = list };
	int r = archive_new(path, "; nothing was purged", &archive, err);

	if (r)
		return r;
	reading.archive = archive;
	r = read_all(&reading, err);
	if (r == OUTBOX_OK && list->count)
		r = archive_commit(archive, err);
	return r;
}

void purge_list_deinit(struct purge_list *list)
{
	free(list->seqs);
	*list = (struct purge_list){ 0 };
}

/* ---- removing ------------------------------------------------------------------------------ */

/* One request in as many calls as it takes. */
static int remove_pages(struct outbox_store *store, const struct outbox_purge *request,
			const struct bulk *bulk, struct outbox_purged *total,
			struct outbox_error *err)
{
	struct outbox_purged one = { .more = true };
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && one.more) {
		r = store_purge(store, request, &one, err);
		if (r)
			break;
		total->messages += one.messages;
		total->failed += one.failed;
		total->receipts += one.receipts;
		total->detours += one.detours;
		if (one.more)
			r = check_ended(bulk, total->messages, total->messages, err);
	}
	return r;
}

int purge_all(struct outbox_store *store, const struct outbox_purge *purge,
	      const struct purge_list *only, const struct bulk *bulk, struct outbox_purged *total,
	      struct outbox_error *err)
{
	struct outbox_purge request = *purge;
	size_t at = 0;
	int r;

	request.limit = PURGE_PAGE;
	do {
		if (only) {
			request.only = only->seqs + at;
			request.n_only = only->count - at < SLICE ? only->count - at : SLICE;
			at += request.n_only;
			request.through_seq = only->seqs[at - 1];
		}
		r = remove_pages(store, &request, bulk, total, err);
	} while (r == OUTBOX_OK && only && at < only->count);
	if (r && r != OUTBOX_ECONFLICT && total->messages)
		outbox_wrap(err, "after %lld messages, which were removed",
			    (long long)total->messages);
	return r;
}
