/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The inbox: a table of its own, in a file with or without an outbox. So nothing here looks at the schema's version
 * (sqlite_enter()), and a table that is not there is told as such by its first statement.
 */
#include "store/inbox.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/sqlite/ops.h"

#include <string.h>

extern const char sqlite_inbox_sql[];

static const char drop_sql[] = "DROP TABLE IF EXISTS outbox_inbox;\n";

enum inbox_kind { INBOX_NONE = 0, INBOX_OURS = 1, INBOX_FOREIGN = 2 };

static int read_kind(struct sqlite_store *s, int64_t *ret_kind, struct outbox_error *err)
{
	return sqlite_number(s, SQL_INBOX_KIND, NULL, INBOX_NONE, ret_kind, err);
}

static int check_ours(struct sqlite_store *s, int64_t *ret_kind, struct outbox_error *err)
{
	int r = read_kind(s, ret_kind, err);

	if (r == OUTBOX_OK && *ret_kind == INBOX_FOREIGN)
		r = outbox_fail(err, OUTBOX_ESCHEMA,
				"a table or view outbox_inbox that is not ours is in the way; rename it "
				"and run outbox init --inbox again");
	return r;
}

int sqlite_inbox_init(struct outbox_store *store, bool *ret_made, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t kind = INBOX_NONE;
	int r = sqlite_begin(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = check_ours(s, &kind, err);
	if (r == OUTBOX_OK)
		r = sqlite_script(s->db, sqlite_inbox_sql, "inbox", err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_made = kind == INBOX_NONE;
	return r;
}

int sqlite_inbox_drop(struct outbox_store *store, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t kind;
	int r = sqlite_begin(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = check_ours(s, &kind, err);
	if (r == OUTBOX_OK)
		r = sqlite_script(s->db, drop_sql, "inbox", err);
	return sqlite_end(s, r, err);
}

static const char about[] =
	"-- The inbox for SQLite: what `outbox init --inbox` runs, for people who run their own migrations. Run it\n"
	"-- in the consumer's own database file, which need not have an outbox:\n"
	"--\n"
	"--     outbox sql sqlite --inbox | sqlite3 -bail app.db\n"
	"--\n"
	"-- Run again it changes nothing. For a tool that opens the transaction itself, remove the lines\n"
	"-- BEGIN IMMEDIATE; and COMMIT; and nothing else.\n\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n\n";

static const char about_drop[] =
	"-- Removes the inbox from a SQLite database: what `outbox drop --inbox` runs. Afterwards nobody knows which\n"
	"-- messages were processed.\n\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n";

int sqlite_inbox_script(const char *schema, bool drop, char **ret_sql, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)1 << 20);

	if (schema)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schema: a SQLite file has no schemas; leave it out");
	buf_text(&out, drop ? about_drop : about);
	buf_text(&out, drop ? drop_sql : sqlite_inbox_sql);
	buf_text(&out, drop ? "COMMIT;\n" : "\nCOMMIT;\n");
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}

/* Without a time: all of them. */
static outbox_time bound(const struct outbox_inbox_filter *filter)
{
	return filter->before ? filter->before : INT64_MAX;
}

static int count_in(struct sqlite_store *s, const struct outbox_inbox_filter *filter,
		    int64_t *ret_count, struct outbox_error *err)
{
	return sqlite_number(s, SQL_INBOX_COUNT,
			     ARGS(ARG_INT(bound(filter)), ARG_TEXT(filter->consumer),
				  ARG_INT(OUTBOX_INBOX_COUNT_MAX)),
			     0, ret_count, err);
}

int sqlite_inbox_stats(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		       struct outbox_error *err)
{
	const struct outbox_inbox_filter all = OUTBOX_INBOX_FILTER_INIT;
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_inbox_stats stats = { .store_now = sqlite_now(s) };
	int64_t kind = INBOX_NONE;
	int r = sqlite_begin(s, DB_READ, err);

	if (r != OUTBOX_OK)
		return r;
	r = read_kind(s, &kind, err);
	stats.there = kind == INBOX_OURS;
	if (r == OUTBOX_OK && stats.there)
		r = count_in(s, &all, &stats.rows, err);
	if (r == OUTBOX_OK && stats.there)
		r = sqlite_number(s, SQL_INBOX_OLDEST, NULL, 0, &stats.oldest, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_stats = stats;
	return r;
}

static int read_rows(sqlite3_stmt *q, struct outbox_arena *arena, struct outbox_inbox_page *page,
		     struct outbox_error *err)
{
	int r = OUTBOX_OK;

	while (sqlite_next(q, &r, err)) {
		struct outbox_inbox_row *row = &page->rows[page->count++];

		r = sqlite_text(q, 0, arena, &row->consumer, err);
		if (r == OUTBOX_OK)
			r = sqlite_text(q, 1, arena, &row->id, err);
		row->received_at = sqlite3_column_int64(q, 2);
	}
	return r;
}

int sqlite_inbox_list(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		      struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_inbox_page page = { 0 };
	struct inbox_place after;
	int r = inbox_cursor_parse(filter->cursor, &after, err);

	if (r == OUTBOX_OK)
		r = inbox_page_begin(filter, arena, &page, err);
	if (r == OUTBOX_OK)
		r = sqlite_begin(s, DB_READ, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_query(s, SQL_INBOX_LIST,
			 ARGS(ARG_INT(bound(filter)), ARG_TEXT(filter->consumer),
			      ARG_INT(after.received_at), ARG_TEXT(after.consumer),
			      ARG_TEXT(after.id), ARG_INT((int64_t)filter->limit + 1)),
			 &q, err);
	if (r == OUTBOX_OK)
		r = read_rows(q, arena, &page, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		r = inbox_page_end(filter, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

int sqlite_inbox_count(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		       int64_t *ret_count, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_begin(s, DB_READ, err);

	return r ? r : sqlite_end(s, count_in(s, filter, ret_count, err), err);
}

int sqlite_inbox_prune(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		       int64_t *ret_removed, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t removed = 0;
	int r = sqlite_begin(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_run(s, SQL_INBOX_PRUNE,
		       ARGS(ARG_INT(filter->before), ARG_TEXT(filter->consumer),
			    ARG_INT((int64_t)filter->limit)),
		       err);
	removed = r == OUTBOX_OK ? sqlite3_changes(s->db) : 0;
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_removed = removed;
	return r;
}
