/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_INBOX_H
#define STORE_INBOX_H

/* Pages of the list of the inbox, for drivers. */

#include <outbox/arena.h>
#include <outbox/inbox.h>
#include <outbox/message.h>

/* A row's place in the list; all zero: before the first. */
struct inbox_place {
	outbox_time received_at;
	char consumer[6000], id[6000]; /* whatever a cursor can be */
};

/* Room for one row more than a page has; then, when that one is there, the page without it and with a cursor. */
int inbox_page_begin(const struct outbox_inbox_filter *filter, struct outbox_arena *arena,
		     struct outbox_inbox_page *page, struct outbox_error *err) OUTBOX_MUSTCHECK;
int inbox_page_end(const struct outbox_inbox_filter *filter, struct outbox_arena *arena,
		   struct outbox_inbox_page *page, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* NULL: before the first. EINVAL when it is none. */
int inbox_cursor_parse(const char *cursor, struct inbox_place *ret_place,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
