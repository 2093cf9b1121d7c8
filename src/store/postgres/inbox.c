/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The inbox: a table of its own, in a database with or without an outbox. So nothing here looks at the schema's version
 * (pg_op()), and only outbox_inbox_accept() is a function there: with statements in place of functions, the program that
 * prunes and the one that made the inbox may be of any two versions.
 */
#include "store/inbox.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

extern const char postgres_inbox_sql[];

/* Of the relation of that name in schema $1; without a row: there is none. */
#define INBOX_OF_SCHEMA \
	" FROM pg_class c WHERE c.oid = to_regclass(quote_ident($1) || '.outbox_inbox')"

#define IS_OURS                                                                        \
	"EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary" \
	" AND pg_get_indexdef(i.indexrelid, 1, true) = 'consumer'"                     \
	" AND pg_get_indexdef(i.indexrelid, 2, true) = 'id')"

#define CHOSEN                                                                          \
	" FROM @outbox_inbox WHERE received_at < coalesce($1, 'infinity'::timestamptz)" \
	" AND ($2::text IS NULL OR consumer = $2)"

/* In which schema: the outbox's, or where it would be. */
static int find_place(struct pg_store *s, struct outbox_error *err)
{
	struct outbox_store_info info;

	return s->schema[0] ? OUTBOX_OK : pg_info(&s->base, &info, err);
}

static int call(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
		PGresult **ret_result, struct outbox_error *err)
{
	int r = find_place(s, err);

	if (r != OUTBOX_OK)
		return r;
	r = pg_call(s, mode, sql, args, ret_result, err);
	if (r == OUTBOX_ESCHEMA)
		return outbox_fail(err, r, "no inbox in schema %s of %s; run: outbox init --inbox",
				   s->schema, s->where);
	return r;
}

/* What is at its place is ours, or nothing is. */
static int check_place(struct pg_store *s, bool *ret_there, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r = find_place(s, err);

	if (r == OUTBOX_OK)
		r = call(s, PG_READ, "SELECT " IS_OURS INBOX_OF_SCHEMA, ARGS(ARG_TEXT(s->schema)),
			 &row, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_there = PQntuples(row) > 0;
	if (*ret_there && !pg_bool(row, 0, 0))
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "a table or view outbox_inbox that is not ours is in the way; rename "
				   "it and run outbox init --inbox again");
	return OUTBOX_OK;
}

static void put_init(struct buf *out, const char *quoted)
{
	pg_script_begin(out, quoted);
	buf_char(out, '\n');
	buf_text(out, postgres_inbox_sql);
	buf_text(out, "\nCOMMIT;\n");
}

static void put_drop(struct buf *out, const char *quoted)
{
	buf_text(out, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
		      "SET LOCAL client_min_messages = warning;\n");
	if (quoted)
		buf_printf(out, "SET LOCAL search_path = %s, pg_temp;\n", quoted);
	buf_text(out, "DROP FUNCTION IF EXISTS outbox_inbox_accept(text, text);\n"
		      "DROP TABLE IF EXISTS outbox_inbox;\n"
		      "COMMIT;\n");
}

static int run_script(struct pg_store *s, void (*put)(struct buf *out, const char *quoted),
		      bool *ret_there, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf script = BUF_INIT(PG_SCRIPT_MAX);
	int r = check_place(s, ret_there, err);

	if (r != OUTBOX_OK)
		return r;
	put(&script, s->quoted);
	if (script.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return pg_script(s, buf_str(&script), err);
}

int pg_inbox_init(struct outbox_store *store, bool *ret_made, struct outbox_error *err)
{
	bool there = false;
	int r = run_script(pg_of(store), put_init, &there, err);

	if (r == OUTBOX_OK)
		*ret_made = !there;
	return r;
}

int pg_inbox_drop(struct outbox_store *store, struct outbox_error *err)
{
	bool there;

	return run_script(pg_of(store), put_drop, &there, err);
}

static const char about[] =
	"-- The inbox for PostgreSQL 13 and later: what `outbox init --inbox` runs, for people who run their own\n"
	"-- migrations. Run the whole script in the consumer's own database, which need not have an outbox, as the\n"
	"-- role that will own it:\n"
	"--\n"
	"--     outbox sql postgres --inbox | psql -v ON_ERROR_STOP=1 -d shop\n"
	"--\n"
	"-- With --schema app it goes there; else into the first schema of the session's search_path. Run again it\n"
	"-- changes no table. For a tool that opens the transaction itself, remove two lines and nothing else: the\n"
	"-- first after this comment (BEGIN ISOLATION LEVEL READ COMMITTED;) and the last of the script (COMMIT;).\n\n";

static const char about_drop[] =
	"-- Removes the inbox from a PostgreSQL database: what `outbox drop --inbox` runs. Afterwards nobody knows\n"
	"-- which messages were processed.\n\n";

int pg_inbox_script(const char *schema, bool drop, char **ret_sql, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(PG_SCRIPT_MAX);
	struct pg_store named = { 0 };
	int r = schema ? pg_schema_name(&named, schema, err) : OUTBOX_OK;

	if (r != OUTBOX_OK)
		return r;
	buf_text(&out, drop ? about_drop : about);
	if (drop)
		put_drop(&out, schema ? named.quoted : NULL);
	else
		put_init(&out, schema ? named.quoted : NULL);
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}

/* Where the server believes that there are many, they are not counted. */
static int read_stats(struct pg_store *s, struct outbox_inbox_stats *stats, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r;

	stats->estimated = stats->rows >= OUTBOX_INBOX_COUNT_MAX;
	r = call(s, PG_READ,
		 "SELECT (SELECT count(*) FROM (SELECT 1 FROM @outbox_inbox LIMIT $1) r),"
		 " (SELECT received_at FROM @outbox_inbox ORDER BY received_at LIMIT 1)",
		 ARGS(ARG_INT8(stats->estimated ? 0 : OUTBOX_INBOX_COUNT_MAX)), &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (!stats->estimated)
		stats->rows = pg_int(row, 0, 0);
	stats->oldest = pg_time(row, 0, 1);
	return OUTBOX_OK;
}

int pg_inbox_stats(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		   struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct outbox_inbox_stats stats = { 0 };
	struct pg_store *s = pg_of(store);
	int r = find_place(s, err);

	if (r == OUTBOX_OK)
		r = call(s, PG_READ,
			 "SELECT coalesce($2, clock_timestamp()), i.ours, i.rows FROM (SELECT) one"
			 " LEFT JOIN (SELECT " IS_OURS
			 " AS ours, c.reltuples::bigint AS rows" INBOX_OF_SCHEMA ") i ON true",
			 ARGS(ARG_TEXT(s->schema), pg_now(s)), &row, err);
	if (r != OUTBOX_OK)
		return r;
	stats.store_now = pg_time(row, 0, 0);
	stats.there = pg_bool(row, 0, 1);
	stats.rows = pg_int(row, 0, 2);
	if (stats.there)
		r = read_stats(s, &stats, err);
	if (r == OUTBOX_OK)
		*ret_stats = stats;
	return r;
}

static int read_row(const PGresult *rows, int i, struct outbox_arena *arena,
		    struct outbox_inbox_row *row, struct outbox_error *err)
{
	int r = pg_text(rows, i, 0, arena, &row->consumer, err);

	if (r == OUTBOX_OK)
		r = pg_text(rows, i, 1, arena, &row->id, err);
	row->received_at = pg_time(rows, i, 2);
	return r;
}

int pg_inbox_list(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		  struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		  struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	struct outbox_inbox_page page = { 0 };
	struct inbox_place after;
	int r = inbox_cursor_parse(filter->cursor, &after, err);

	if (r == OUTBOX_OK)
		r = inbox_page_begin(filter, arena, &page, err);
	if (r == OUTBOX_OK)
		r = call(pg_of(store), PG_READ,
			 "SELECT consumer, id, received_at" CHOSEN " AND ($3::timestamptz IS NULL"
			 " OR (received_at, consumer, id) > ($3, $4, $5))"
			 " AND received_at >= coalesce($3, '-infinity'::timestamptz)"
			 " ORDER BY received_at, consumer, id LIMIT $6",
			 ARGS(ARG_TIME(filter->before), ARG_TEXT(filter->consumer),
			      ARG_TIME(after.received_at), ARG_TEXT(after.consumer),
			      ARG_TEXT(after.id), ARG_INT8((int64_t)filter->limit + 1)),
			 &rows, err);
	for (int i = 0; r == OUTBOX_OK && i < PQntuples(rows); i++)
		r = read_row(rows, i, arena, &page.rows[page.count++], err);
	if (r == OUTBOX_OK)
		r = inbox_page_end(filter, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

int pg_inbox_count(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		   int64_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r = call(pg_of(store), PG_READ, "SELECT count(*) FROM (SELECT 1" CHOSEN " LIMIT $3) r",
		     ARGS(ARG_TIME(filter->before), ARG_TEXT(filter->consumer),
			  ARG_INT8(OUTBOX_INBOX_COUNT_MAX)),
		     &row, err);

	if (r == OUTBOX_OK)
		*ret_count = pg_int(row, 0, 0);
	return r;
}

/* Chosen by place: the rows are not looked for twice, and only the rights to read and to delete are needed. */
int pg_inbox_prune(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		   int64_t *ret_removed, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r = call(pg_of(store), PG_WRITE,
		     "WITH gone AS (DELETE FROM @outbox_inbox WHERE ctid = ANY (ARRAY("
		     "SELECT ctid" CHOSEN " ORDER BY received_at LIMIT $3)) RETURNING 1)"
		     " SELECT count(*) FROM gone",
		     ARGS(ARG_TIME(filter->before), ARG_TEXT(filter->consumer),
			  ARG_INT8((int64_t)filter->limit)),
		     &row, err);

	if (r == OUTBOX_OK)
		*ret_removed = pg_int(row, 0, 0);
	return r;
}
