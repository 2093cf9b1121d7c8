/* SPDX-License-Identifier: Apache-2.0 */

/* What init(), upgrade() and drop() run, as one script each for people who run their own migrations. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

#define SCRIPT_MAX ((size_t)1 << 20)

static const char about[] =
	"-- The outbox's schema for SQLite, version %d: what `outbox init` runs, for people who run their own\n"
	"-- migrations. Run it once and whole, in the application's own database file:\n"
	"--\n"
	"--     outbox sql sqlite | sqlite3 -bail app.db\n"
	"--\n"
	"-- One thing may be set: --lanes 4 of `outbox sql sqlite`, readers of the log per target: row 'lanes' of\n"
	"-- outbox_meta, at the end. The rows there are how a relay knows this schema; without them it refuses to\n"
	"-- run. A tool that opens the transaction itself: take out the lines\n"
	"-- BEGIN IMMEDIATE; and COMMIT; (the last), and run the PRAGMA, which cannot be inside one, before it.\n"
	"-- The database's text must be UTF-8, which is SQLite's default.\n\n"
	"-- Readers and the one writer then no longer wait for each other; lasting, a property of the file.\n"
	"PRAGMA journal_mode = WAL;\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n\n";

static const char about_upgrade[] =
	"-- The outbox's schema for SQLite, from version %d to version %d: what `outbox upgrade` runs, for people\n"
	"-- who run their own migrations. Run it once and whole; -bail ends it at the first mistake:\n"
	"--\n"
	"--     outbox sql sqlite --from %d | sqlite3 -bail app.db\n"
	"--\n"
	"-- Relays of the version before go on working beside it. A tool that opens the transaction itself: take\n"
	"-- out the lines BEGIN IMMEDIATE; and COMMIT; (the last) and nothing else.\n\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n\n"
	"-- In another version it would fail half-way at best.\n"
	"CREATE TEMP TABLE outbox_is_at (version CONSTRAINT \"this is for an outbox of schema %d\" CHECK (version = %d));\n"
	"INSERT INTO outbox_is_at SELECT value FROM outbox_meta WHERE name = 'schema';\n"
	"DROP TABLE outbox_is_at;\n\n";

static const char about_drop[] =
	"-- Removes the outbox from a SQLite database, with every message in it, delivered or not: what `outbox\n"
	"-- drop` runs. What is not the outbox's stays.\n\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n";

/* A statement a line. */
static void put_lines(struct buf *out, const char *sql)
{
	for (; *sql; sql++) {
		buf_char(out, *sql);
		if (*sql == ';')
			buf_char(out, '\n');
	}
}

static void put_changes(struct buf *out, int from, bool brief)
{
	for (size_t i = 0; i < sqlite_migrations.count; i++) {
		const char *sql = sqlite_migrations.list[i].sql;

		if (sqlite_migrations.list[i].version > from)
			buf_text(out, brief ? store_script_body(sql) : sql);
	}
}

static void put_new(struct buf *out, const struct sqlite_migration *newest, int lanes)
{
	buf_printf(out, about, newest->version);
	put_changes(out, 0, false);
	buf_text(out, sqlite_migrations.code);
	buf_printf(out,
		   "\nINSERT INTO outbox_meta (name, value) VALUES ('schema', %d), ('min_reader', %d),\n"
		   "\t('lanes', %d), ('store_id', abs(random() / 2));\n"
		   "COMMIT;\n",
		   newest->version, newest->min_reader, lanes ? lanes : DEFAULT_LANES);
}

static void put_upgrade(struct buf *out, const struct sqlite_migration *newest, int from)
{
	buf_printf(out, about_upgrade, from, newest->version, from, from, from);
	put_lines(out, sqlite_drop_code_sql);
	buf_char(out, '\n');
	put_changes(out, from, false);
	buf_text(out, sqlite_migrations.code);
	buf_printf(out,
		   "\nUPDATE outbox_meta SET value = %d WHERE name = 'schema';\n"
		   "UPDATE outbox_meta SET value = %d WHERE name = 'min_reader';\n"
		   "COMMIT;\n",
		   newest->version, newest->min_reader);
}

static void put_drop(struct buf *out)
{
	buf_text(out, about_drop);
	put_lines(out, sqlite_drop_code_sql);
	put_lines(out, sqlite_drop_tables_sql);
	buf_text(out, "COMMIT;\n");
}

int sqlite_script_text(const struct outbox_init_options *options, const char *schema,
		       char **ret_sql, struct outbox_error *err)
{
	const struct sqlite_migration *newest = &sqlite_migrations.list[sqlite_migrations.count - 1];
	const struct outbox_init_options none = { 0 }, *how = options ? options : &none;
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(SCRIPT_MAX);
	int r;

	if (schema)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schema: a SQLite file has no schemas; leave it out");
	r = store_script_check(how, newest->version, err);
	if (r != OUTBOX_OK)
		return r;
	if (how->drop)
		put_drop(&out);
	else if (how->brief)
		put_changes(&out, how->from, true);
	else if (how->from)
		put_upgrade(&out, newest, how->from);
	else
		put_new(&out, newest, how->lanes);
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}
