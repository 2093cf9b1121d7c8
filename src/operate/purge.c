/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/purge.h"

#include "base/cleanup.h"

#define PAGE 100 /* payloads come along */
#define PAGE_BYTES ((size_t)80 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

int purge_count(struct outbox_store *store, const struct outbox_purge *purge,
		struct outbox_purged *ret_purged, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(PAGE_BYTES);
	struct outbox_purge page = *purge;
	struct outbox_purged found = { 0 };
	struct outbox_claimed *messages;
	size_t size = PAGE, left = purge->limit, n = 1;
	int64_t seq = 0;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	while (r == OUTBOX_OK && n && (left || !purge->limit)) {
		outbox_arena_reset(arena);
		page.limit = left && left < size ? left : size;
		r = store->ops->purgeable(store, &page, seq, arena, &messages, &n, err);
		if (r == OUTBOX_ENOMEM && size > 1) {
			size /= 2; /* large payloads: a smaller page fits */
			r = OUTBOX_OK;
			n = 1;
		} else if (r == OUTBOX_OK && n) {
			seq = messages[n - 1].seq;
			found.messages += (int64_t)n;
			left -= left < n ? left : n;
		}
	}
	found.more = n > 0;
	if (r == OUTBOX_OK)
		*ret_purged = found;
	return r;
}
