/* SPDX-License-Identifier: Apache-2.0 */

/* Where a page of the inbox goes on: at the place of its last row, which is three values in one text. */
#include "store/inbox.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "TIME:BYTES:CONSUMER ID", without the space: both may be any text. */
#define PLAIN_MAX (64 + 4 * (OUTBOX_CONSUMER_MAX + OUTBOX_ID_MAX))

static int cursor_after(const struct outbox_inbox_row *last, struct outbox_arena *arena,
			const char **ret_cursor, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf plain = BUF_INIT(PLAIN_MAX),
					 cursor = BUF_INIT(2 * PLAIN_MAX);

	buf_printf(&plain, "%" PRId64 ":%zu:%s%s", last->received_at, strlen(last->consumer),
		   last->consumer, last->id);
	base64_append(&cursor, buf_str(&plain), plain.size);
	*ret_cursor =
		plain.failed || cursor.failed ? NULL : outbox_arena_text(arena, buf_str(&cursor));
	return *ret_cursor ? OUTBOX_OK
			   : outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the rows asked for");
}

int inbox_page_begin(const struct outbox_inbox_filter *filter, struct outbox_arena *arena,
		     struct outbox_inbox_page *page, struct outbox_error *err)
{
	page->rows = outbox_arena_alloc(arena, (filter->limit + 1) * sizeof(*page->rows));
	return page->rows ? OUTBOX_OK
			  : outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the rows asked for");
}

int inbox_page_end(const struct outbox_inbox_filter *filter, struct outbox_arena *arena,
		   struct outbox_inbox_page *page, struct outbox_error *err)
{
	if (page->count <= filter->limit)
		return OUTBOX_OK;
	page->count = filter->limit;
	return cursor_after(&page->rows[page->count - 1], arena, &page->cursor, err);
}

static bool parse(char *plain, struct inbox_place *place)
{
	char *number, *text;
	size_t length;

	place->received_at = strtoll(plain, &number, 10);
	if (number == plain || *number != ':')
		return false;
	length = strtoul(number + 1, &text, 10);
	if (text == number + 1 || *text != ':' || length > strlen(text + 1))
		return false;
	memcpy(place->consumer, text + 1, length);
	place->consumer[length] = '\0';
	snprintf(place->id, sizeof(place->id), "%s", text + 1 + length);
	return true;
}

int inbox_cursor_parse(const char *cursor, struct inbox_place *ret_place, struct outbox_error *err)
{
	char plain[sizeof(ret_place->consumer)], shown[80];
	size_t size;

	*ret_place = (struct inbox_place){ 0 };
	if (!cursor)
		return OUTBOX_OK;
	if (strlen(cursor) < sizeof(plain) && base64_decode(cursor, strlen(cursor), plain, &size)) {
		plain[size] = '\0';
		if (parse(plain, ret_place))
			return OUTBOX_OK;
	}
	return outbox_fail(err, OUTBOX_EINVAL,
			   "cursor: \"%s\" does not come from a page of this list; leave it out",
			   text_shown(shown, sizeof(shown), cursor));
}
