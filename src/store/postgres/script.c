/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The schema as one script: what `outbox init` runs and what `outbox sql postgres` prints for people who
 * run their own migrations are the same text, so that the two cannot drift apart.
 *
 * What holds data (tables, indexes, constraints, triggers, types) has versions: each is one entry in the
 * list of migrations and never changes again. Code (functions, views) is current: each piece stands in one
 * file, and every run makes all of it anew. So a change of code alone is a version without SQL of its own.
 * A new database runs the whole list, an upgrade the rest of it: both end with the same schema.
 */
#include "store/postgres/script.h"

#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char postgres_upgrade_sql[]; /* how one begins */
extern const char postgres_before_sql[];  /* code that tables name */
extern const char postgres_v1_sql[];
extern const char postgres_v2_sql[];
extern const char postgres_v3_sql[];
extern const char postgres_code_sql[];

static const struct migration {
	int version;    /* that it leads to, one more than the one before */
	int min_reader; /* the oldest program version that can work with the result */
	const char *sql;
} migrations[] = {
	{ 1, 1, postgres_v1_sql },
	{ 2, 1, postgres_v2_sql },
	{ 3, 1, postgres_v3_sql },
};

int pg_newest(void)
{
	return migrations[ARRAY_SIZE(migrations) - 1].version;
}

static const char about[] =
	"-- The outbox's schema for PostgreSQL 13 and later, version %d: what `outbox init` runs, for people\n"
	"-- who run their own migrations. Run it once and whole, as the role that shall own the outbox:\n"
	"--\n"
	"--     outbox sql postgres | psql -v ON_ERROR_STOP=1 -d shop\n"
	"--\n"
	"-- What may be set, each with an option of `outbox sql postgres`:\n"
	"--   --schema app       where the tables go; else into the first schema of the session's search_path.\n"
	"--                      The functions keep that search_path. Say ?schema=app in the relay's URL, too\n"
	"--   --lanes 8          readers of the log per target: row 'lanes' of outbox_meta, at the end\n"
	"--   --partition auto   the log in partitions, which retention drops whole\n"
	"--   --doorbell         publishers wake a sleeping relay\n"
	"--\n"
	"-- A tool that opens the transaction itself: take out two lines and nothing else, the first after this\n"
	"-- comment (BEGIN ISOLATION LEVEL READ COMMITTED;) and the last of the script (COMMIT;). The rows of\n"
	"-- outbox_meta at the end are how a relay knows this schema; without them it refuses to run.\n"
	"-- No superuser and no extension is needed. `outbox doctor` looks at the result.\n\n";

static const char about_upgrade[] =
	"-- The outbox's schema for PostgreSQL, from version %d to version %d: what `outbox upgrade` runs, for\n"
	"-- people who run their own migrations. Run it once and whole, as the role that owns the outbox, which\n"
	"-- is in the first schema of the session's search_path or in the one that --schema named:\n"
	"--\n"
	"--     outbox sql postgres --from %d | psql -v ON_ERROR_STOP=1 -d shop\n"
	"--\n"
	"-- Relays of the version before go on working beside it. A tool that opens the transaction itself: take\n"
	"-- out two lines and nothing else, the first after this comment (BEGIN ISOLATION LEVEL READ COMMITTED;)\n"
	"-- and the last of the script (COMMIT;).\n\n";

static const char about_drop[] =
	"-- Removes the outbox from a PostgreSQL database, with every message in it, delivered or not: what\n"
	"-- `outbox drop` runs. What is not the outbox's stays; what depends on it is named, and nothing is done.\n\n";

void pg_set_path(struct buf *out, const char *quoted)
{
	char tag[160] = "$outbox$";

	if (!quoted) {
		buf_text(out,
			 "DO $outbox$ BEGIN\n"
			 "\tPERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);\n"
			 "END $outbox$;\n");
		return;
	}
	/* the text ends at its tag, which must not be in the name; a name is shorter than this can become */
	while (strstr(quoted, tag))
		snprintf(tag + strlen(tag) - 1, sizeof(tag) - strlen(tag) + 1, "_$");
	/* not IF NOT EXISTS: that wants the right to create one even where it is there */
	buf_printf(out, "DO %s BEGIN\n\tIF to_regnamespace(E'", tag);
	for (const char *at = quoted; *at; at++) {
		if (*at == '\'' || *at == '\\')
			buf_char(out, *at);
		buf_char(out, *at);
	}
	buf_printf(out,
		   "') IS NULL THEN\n"
		   "\t\tCREATE SCHEMA %s;\n"
		   "\tEND IF;\n"
		   "END %s;\n"
		   "SET LOCAL search_path = %s, pg_temp;\n",
		   quoted, tag, quoted);
}

/* What this outbox is, at its beginning. The cluster's identity may be kept from this role; then nobody
 * can compare it. */
static void begin_with(struct buf *out, const struct outbox_init_options *options)
{
	buf_printf(out,
		   "INSERT INTO outbox_meta (name, value) VALUES ('lanes', '%d');\n"
		   "INSERT INTO outbox_meta (name, value)\n"
		   "\tSELECT 'cluster', outbox_cluster() WHERE outbox_cluster() IS NOT NULL;\n",
		   options && options->lanes ? options->lanes : PG_DEFAULT_LANES);
	if (options && options->partition)
		/* it is impatient with locks, and what follows may be somebody else's */
		buf_text(out, "DO $outbox$\n"
			      "DECLARE\n"
			      "\tpatience text := current_setting('lock_timeout');\n"
			      "BEGIN\n"
			      "\tFOR i IN 1 .. 3 LOOP\n"
			      "\t\tPERFORM outbox_tend_partitions();\n"
			      "\tEND LOOP;\n"
			      "\tPERFORM set_config('lock_timeout', patience, true);\n"
			      "END $outbox$;\n");
	if (options && options->doorbell > 0)
		buf_text(out, "DO $outbox$ BEGIN PERFORM outbox_doorbell(true); END $outbox$;\n");
}

/* The file was made for one version: in another it would fail half-way at best. */
static void be_at(struct buf *out, int from)
{
	buf_printf(out,
		   "DO $outbox$\n"
		   "DECLARE\n"
		   "\tis_at text := 'none';\n"
		   "BEGIN\n"
		   "\tIF to_regclass('outbox_meta') IS NOT NULL THEN\n"
		   "\t\tSELECT value INTO is_at FROM outbox_meta WHERE name = 'schema';\n"
		   "\tEND IF;\n"
		   "\tIF is_at IS DISTINCT FROM '%d' THEN\n"
		   "\t\tRAISE EXCEPTION 'this leads from outbox schema %d on, and here is %%; nothing was changed', is_at\n"
		   "\t\t\tUSING ERRCODE = 'OB002';\n"
		   "\tEND IF;\n"
		   "END $outbox$;\n",
		   from, from);
}

void pg_schema_changes(struct buf *out, int from)
{
	for (size_t i = 0; i < ARRAY_SIZE(migrations); i++)
		if (migrations[i].version > from)
			buf_text(out, store_script_body(migrations[i].sql));
}

void pg_schema_script(struct buf *out, const char *quoted, int from,
		      const struct outbox_init_options *options)
{
	const struct migration *newest = &migrations[ARRAY_SIZE(migrations) - 1];

	buf_text(out, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
		      "SET LOCAL client_min_messages = warning;\n"
		      "-- two at once: the second one finds the tables there and fails\n"
		      "DO $outbox$ BEGIN\n"
		      "\tPERFORM pg_advisory_xact_lock(hashtextextended('outbox init', 0));\n"
		      "END $outbox$;\n");
	pg_set_path(out, quoted);
	if (!from && options && options->partition)
		buf_text(out, "SET LOCAL outbox.partition = 'on';\n");
	if (from) {
		be_at(out, from);
		buf_text(out, postgres_upgrade_sql);
	}
	buf_char(out, '\n');
	buf_text(out, postgres_before_sql);
	for (size_t i = 0; i < ARRAY_SIZE(migrations); i++) {
		if (migrations[i].version <= from)
			continue;
		buf_char(out, '\n');
		buf_text(out, migrations[i].sql);
	}
	buf_char(out, '\n');
	buf_text(out, postgres_code_sql);
	buf_printf(out,
		   "\nINSERT INTO outbox_meta (name, value) VALUES ('schema', '%d'), ('min_reader', '%d')\n"
		   "\tON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
		   newest->version, newest->min_reader);
	if (!from)
		begin_with(out, options);
	buf_text(out, "COMMIT;\n");
}

int pg_script_text(const struct outbox_init_options *options, const char *schema, char **ret_sql,
		   struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(PG_SCRIPT_MAX);
	struct pg_store named = { 0 };
	int r;

	if (options && (r = store_script_check(options, pg_newest(), err)) != OUTBOX_OK)
		return r;
	if (schema) {
		r = pg_schema_name(&named, schema, err);
		if (r != OUTBOX_OK)
			return r;
	}
	if (options && options->drop) {
		buf_text(&out, about_drop);
		pg_drop_script(&out, schema ? named.quoted : NULL);
	} else if (options && options->brief) {
		pg_schema_changes(&out, options->from);
	} else if (options && options->from) {
		buf_printf(&out, about_upgrade, options->from, pg_newest(), options->from);
		pg_schema_script(&out, schema ? named.quoted : NULL, options->from, NULL);
	} else {
		buf_printf(&out, about, pg_newest());
		pg_schema_script(&out, schema ? named.quoted : NULL, 0, options);
	}
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}
