/* SPDX-License-Identifier: Apache-2.0 */

/* What init() runs, as one script for people who run their own migrations. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#define SCRIPT_MAX ((size_t)1 << 20)

static const char about[] =
	"-- The outbox's schema for SQLite, version %d: what `outbox init` runs, for people who run their own\n"
	"-- migrations. Run it once and whole, in the application's own database file:\n"
	"--\n"
	"--     outbox sql sqlite | sqlite3 -bail app.db\n"
	"--\n"
	"-- One thing may be set: --lanes 4 of `outbox sql sqlite`, readers of the log per target: row 'lanes' of\n"
	"-- outbox_meta, at the end. The rows there are how a relay knows this schema; without them it refuses to\n"
	"-- run. A tool that opens the transaction itself: take out BEGIN and COMMIT, and run the PRAGMA, which\n"
	"-- cannot be inside one, before it. The database's text must be UTF-8, which is SQLite's default.\n\n"
	"-- Readers and the one writer then no longer wait for each other; lasting, a property of the file.\n"
	"PRAGMA journal_mode = WAL;\n"
	"PRAGMA busy_timeout = 5000;\n\n"
	"BEGIN IMMEDIATE;\n\n";

int sqlite_script_text(const struct outbox_init_options *options, const char *schema,
		       char **ret_sql, struct outbox_error *err)
{
	const struct sqlite_migrations *all = &sqlite_migrations;
	const struct sqlite_migration *newest = &all->list[all->count - 1];
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(SCRIPT_MAX);

	if (schema)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schema: a SQLite file has no schemas; leave it out");
	buf_printf(&out, about, newest->version);
	for (size_t i = 0; i < all->count; i++)
		buf_text(&out, all->list[i].sql);
	buf_text(&out, all->code);
	buf_printf(&out,
		   "\nINSERT INTO outbox_meta (name, value) VALUES ('schema', %d), ('min_reader', %d),\n"
		   "\t('lanes', %d), ('store_id', abs(random() / 2));\n"
		   "COMMIT;\n",
		   newest->version, newest->min_reader,
		   options && options->lanes ? options->lanes : DEFAULT_LANES);
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}
