/* SPDX-License-Identifier: Apache-2.0 */
/* Not yet written. */
#include "store/sqlite/ops.h"
#define NOT_YET return outbox_fail(err, OUTBOX_ENOTSUP, "not written yet")
int sqlite_drop(struct outbox_store *store, struct outbox_error *err)
{
	(void)store;
	NOT_YET;
}
int sqlite_truncate(struct outbox_store *store, struct outbox_error *err)
{
	(void)store;
	NOT_YET;
}
int sqlite_list(struct outbox_store *store, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page,
		struct outbox_error *err)
{
	(void)store, (void)filter, (void)arena, (void)ret_page;
	NOT_YET;
}
int sqlite_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err)
{
	(void)store, (void)id, (void)arena, (void)ret_message;
	NOT_YET;
}
int sqlite_tail(struct outbox_store *store, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page,
		struct outbox_error *err)
{
	(void)store, (void)cursor, (void)limit, (void)arena, (void)ret_page;
	NOT_YET;
}
int sqlite_act(struct outbox_store *store, const struct outbox_act *act,
	       struct outbox_acted *ret_acted, struct outbox_error *err)
{
	(void)store, (void)act, (void)ret_acted;
	NOT_YET;
}
int sqlite_stats(struct outbox_store *store, struct outbox_arena *arena,
		 struct outbox_stats *ret_stats, struct outbox_error *err)
{
	(void)store, (void)arena, (void)ret_stats;
	NOT_YET;
}
int sqlite_purge(struct outbox_store *store, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err)
{
	(void)store, (void)purge, (void)ret_purged;
	NOT_YET;
}
int sqlite_purgeable(struct outbox_store *store, const struct outbox_purge *purge,
		     int64_t after_seq, struct outbox_arena *arena,
		     struct outbox_claimed **ret_messages, size_t *ret_count,
		     struct outbox_error *err)
{
	(void)store, (void)purge, (void)after_seq, (void)arena, (void)ret_messages, (void)ret_count;
	NOT_YET;
}
int sqlite_check(struct outbox_store *store,
		 void (*say)(void *context, int level, const char *subject, const char *text),
		 void *context, struct outbox_error *err)
{
	(void)store, (void)say, (void)context;
	NOT_YET;
}
int sqlite_tend(struct outbox_store *store, struct outbox_error *err)
{
	(void)store, (void)err;
	return OUTBOX_OK;
}
