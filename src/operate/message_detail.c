/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/message_detail.h"

#include "store/store.h"

#define HISTORY_ROWS 100

int message_detail_read(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			struct message_detail *ret_detail, struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter), .ids = &id, .n_ids = 1 };
	struct message_detail detail;
	int r = store_get(store, id, arena, &detail.message, err);

	if (r == OUTBOX_OK)
		r = store_list(store, &filter, arena, &detail.page, err);
	if (r == OUTBOX_OK)
		r = store_audit(store, id, HISTORY_ROWS, arena, &detail.history, &detail.n_history,
				err);
	if (r == OUTBOX_OK)
		r = store_attempts(store, id, arena, &detail.attempts, &detail.n_attempts, err);
	if (r == OUTBOX_OK)
		r = store_amendments(store, id, arena, &detail.amended, &detail.n_amended, err);
	if (r == OUTBOX_OK)
		*ret_detail = detail;
	return r;
}
