/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The schema as one script: what `outbox init` runs and what `outbox sql postgres` prints for people who
 * run their own migrations are the same text, so that the two cannot drift apart.
 *
 * What holds data (tables, indexes, constraints, triggers, types) has versions: each is one entry in the
 * list of migrations and never changes again. Code (functions, views) is current: each piece stands in one
 * file, and every run makes all of it again. So a change of code alone is a version without SQL of its own.
 * A new database runs the whole list, an upgrade the rest of it: both end with the same schema.
 *
 * Two numbers decide who may work with whom. A program refuses a schema that is older than itself
 * (upgrade first) and one whose min_reader is newer than itself; versions in between work side by side
 * during an upgrade of several relays.
 */
#include "store/postgres/schema.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/ops.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char postgres_upgrade_sql[]; /* how one begins */
extern const char postgres_before_sql[];  /* code that tables name */
extern const char postgres_v1_sql[];
extern const char postgres_v2_sql[];
extern const char postgres_v3_sql[];
extern const char postgres_v4_sql[];
extern const char postgres_v5_sql[];
extern const char postgres_v6_sql[];
extern const char postgres_code_sql[];

static const struct migration {
	int version;    /* that it leads to, one more than the one before */
	int min_reader; /* the oldest program version that can work with the result */
	const char *sql;
} migrations[] = {
	{ 1, 1, postgres_v1_sql }, { 2, 1, postgres_v2_sql }, { 3, 1, postgres_v3_sql },
	{ 4, 1, postgres_v4_sql }, { 5, 1, postgres_v5_sql }, { 6, 1, postgres_v6_sql },
};

#define NEWEST (migrations[ARRAY_SIZE(migrations) - 1].version)

int pg_newest(void)
{
	return NEWEST;
}

static const char about[] =
	"-- The outbox's schema for PostgreSQL 13 and later, version %d: what `outbox init` runs, for people\n"
	"-- who run their own migrations. Run the whole script once, as the role that will own the outbox:\n"
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
	"-- For a tool that opens the transaction itself, remove two lines and nothing else: the first after this\n"
	"-- comment (BEGIN ISOLATION LEVEL READ COMMITTED;) and the last of the script (COMMIT;). The rows of\n"
	"-- outbox_meta at the end are how a relay knows this schema; without them it refuses to run.\n"
	"-- No superuser and no extension is needed. `outbox doctor` looks at the result.\n\n";

static const char about_upgrade[] =
	"-- The outbox's schema for PostgreSQL, from version %d to version %d: what `outbox upgrade` runs, for\n"
	"-- people who run their own migrations. Run the whole script once, as the role that owns the outbox, which\n"
	"-- is in the first schema of the session's search_path or in the one that --schema named:\n"
	"--\n"
	"--     outbox sql postgres --from %d | psql -v ON_ERROR_STOP=1 -d shop\n"
	"--\n"
	"-- Relays of the previous version keep working. For a tool that opens the transaction itself, remove\n"
	"-- two lines and nothing else: the first after this comment (BEGIN ISOLATION LEVEL READ COMMITTED;)\n"
	"-- and the last of the script (COMMIT;).\n\n";

static const char about_drop[] =
	"-- Removes the outbox from a PostgreSQL database, with every message in it, delivered or not: what\n"
	"-- `outbox drop` runs. What is not the outbox's stays; what depends on it is named, and nothing is done.\n\n";

/* Functions that are made now keep this search_path: our schema alone, temporary tables last. */
static void set_path(struct buf *out, const char *quoted)
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

/* The part of it that changes tables, types and indexes. */
static void add_changes(struct buf *out, int from)
{
	for (size_t i = 0; i < ARRAY_SIZE(migrations); i++)
		if (migrations[i].version > from)
			buf_text(out, store_script_body(migrations[i].sql));
}

void pg_script_begin(struct buf *out, const char *quoted)
{
	buf_text(out, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
		      "SET LOCAL client_min_messages = warning;\n"
		      "-- two at once: the second one finds the tables there\n"
		      "DO $outbox$ BEGIN\n"
		      "\tPERFORM pg_advisory_xact_lock(hashtextextended('outbox init', 0));\n"
		      "END $outbox$;\n");
	set_path(out, quoted);
}

void pg_schema_script(struct buf *out, const char *quoted, int from,
		      const struct outbox_init_options *options)
{
	const struct migration *newest = &migrations[ARRAY_SIZE(migrations) - 1];

	pg_script_begin(out, quoted);
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

	if (options && (r = store_script_check(options, NEWEST, err)) != OUTBOX_OK)
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
		add_changes(&out, options->from);
	} else if (options && options->from) {
		buf_printf(&out, about_upgrade, options->from, NEWEST, options->from);
		pg_schema_script(&out, schema ? named.quoted : NULL, options->from, NULL);
	} else {
		buf_printf(&out, about, NEWEST);
		pg_schema_script(&out, schema ? named.quoted : NULL, 0, options);
	}
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sql = out.data;
	out = (struct buf)BUF_INIT(0);
	return OUTBOX_OK;
}

/* ---- which version is there -------------------------------------------------------------------- */

struct version {
	int schema; /* 0: no outbox here */
	int min_reader, lanes;
	bool partitioned;
	char elsewhere[64]; /* schema 0: the schema that has an outbox, if any */
};

int pg_schema_name(struct pg_store *s, const char *name, struct outbox_error *err)
{
	size_t out = 0;

	if (!name[0] || strlen(name) >= sizeof(s->schema))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schema: \"%s\" is not a name of 1 to 63 bytes", name);
	snprintf(s->schema, sizeof(s->schema), "%s", name);
	s->quoted[out++] = '"';
	for (; *name; name++) {
		if (*name == '"')
			s->quoted[out++] = '"';
		s->quoted[out++] = *name;
	}
	s->quoted[out++] = '"';
	s->quoted[out] = '\0';
	return OUTBOX_OK;
}

/*
 * A peer that is gone in the middle of a transaction keeps its lane locked until the server notices, by
 * default after hours. Only where the session is ours: behind a pooler it would be the next one's, too.
 */
static int notice_dead_peers(struct pg_store *s, bool direct, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (direct && !s->direct)
		r = pg_script(s,
			      "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5;"
			      " SET tcp_keepalives_count = 3; SET tcp_user_timeout = '30s'",
			      err);
	s->direct = direct && r == OUTBOX_OK;
	return r;
}

/* Where the outbox is: in the schema named, or in the first of search_path that has one, or would be. */
static int find_schema(struct pg_store *s, bool *ret_there, struct version *version,
		       struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *found = NULL;
	int r;

	r = pg_call(s, PG_READ,
		    "SELECT n.nspname::text, current_schema()::text, pg_backend_pid(),"
		    " (SELECT e.nspname::text FROM pg_class o JOIN pg_namespace e ON e.oid = o.relnamespace"
		    "  WHERE o.relname = 'outbox_meta' AND o.relkind = 'r' ORDER BY 1 LIMIT 1) FROM (SELECT CASE WHEN $1 = ''"
		    " THEN to_regclass('outbox_meta')"
		    " ELSE to_regclass(quote_ident($1) || '.outbox_meta') END AS oid) f"
		    " LEFT JOIN pg_class c ON c.oid = f.oid"
		    " LEFT JOIN pg_namespace n ON n.oid = c.relnamespace",
		    ARGS(ARG_TEXT(s->schema)), &found, err);
	if (r != OUTBOX_OK)
		return r;
	/* a pooler makes up the number that it tells */
	r = notice_dead_peers(s, pg_int(found, 0, 2) == PQbackendPID(s->conn), err);
	if (r != OUTBOX_OK)
		return r;
	*ret_there = !PQgetisnull(found, 0, 0);
	if (!*ret_there)
		snprintf(version->elsewhere, sizeof(version->elsewhere), "%s", pg_peek(found, 0, 3));
	if (s->schema[0])
		return OUTBOX_OK;
	if (!*ret_there && !PQgetisnull(found, 0, 3))
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "%s: no outbox in search_path, but there is one in schema \"%s\": add "
				   "schema=%s to the store's URL, or name the schema you mean",
				   s->where, pg_peek(found, 0, 3), pg_peek(found, 0, 3));
	if (!*ret_there && PQgetisnull(found, 0, 1))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: search_path names no schema that exists; add schema=NAME to the "
				   "store's URL",
				   s->where);
	return pg_schema_name(s, pg_peek(found, 0, *ret_there ? 0 : 1), err);
}

/* A number of outbox_meta; false: that is no outbox of ours. */
static bool meta_number(const PGresult *found, int column, int *ret_number)
{
	int64_t number;

	if (number_parse("outbox_meta", pg_peek(found, 0, column), 0, 999999999, &number, NULL))
		return false;
	*ret_number = (int)number;
	return true;
}

static int read_version(struct pg_store *s, struct version *ret_version, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *found = NULL;
	struct version v = { 0 };
	bool there = false;
	int r;

	r = find_schema(s, &there, &v, err);
	if (r != OUTBOX_OK || !there) {
		*ret_version = v;
		return r;
	}
	r = pg_call(s, PG_READ,
		    "SELECT max(value) FILTER (WHERE name = 'schema'),"
		    " max(value) FILTER (WHERE name = 'min_reader'),"
		    " max(value) FILTER (WHERE name = 'lanes'),"
		    " count(*) FILTER (WHERE name = 'partitioned') FROM @outbox_meta",
		    NULL, &found, err);
	if (r != OUTBOX_OK)
		return r;
	if (!meta_number(found, 0, &v.schema) || !meta_number(found, 1, &v.min_reader) ||
	    !meta_number(found, 2, &v.lanes))
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "%s has a table outbox_meta that is not ours; move it away",
				   s->where);
	v.partitioned = pg_int(found, 0, 3) > 0;
	*ret_version = v;
	return OUTBOX_OK;
}

static int fail_newer(const struct version *v, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "this database has outbox schema %d, this program knows %d; use a newer "
			   "outbox",
			   v->schema, NEWEST);
}

static int fail_missing(const struct pg_store *s, const struct version *v, struct outbox_error *err)
{
	if (v->elsewhere[0])
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "no outbox in schema %s of %s, but there is one in schema \"%s\": "
				   "add schema=%s to the store's URL, or run: outbox init",
				   s->schema, s->where, v->elsewhere, v->elsewhere);
	return outbox_fail(err, OUTBOX_ESCHEMA, "no outbox in schema %s of %s; run: outbox init",
			   s->schema, s->where);
}

int pg_schema_ready(struct pg_store *s, struct outbox_error *err)
{
	struct version v;
	int r;

	r = read_version(s, &v, err);
	if (r != OUTBOX_OK)
		return r;
	if (!v.schema)
		return fail_missing(s, &v, err);
	if (v.schema > NEWEST && v.min_reader > NEWEST)
		return fail_newer(&v, err);
	if (v.schema < NEWEST)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "this database has outbox schema %d, this program needs %d; run: "
				   "outbox upgrade",
				   v.schema, NEWEST);
	if (v.lanes < 1 || v.lanes > OUTBOX_LANES_MAX)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "outbox_meta: lanes is %d, not between 1 and %d", v.lanes,
				   OUTBOX_LANES_MAX);
	s->lanes = v.lanes;
	s->partitioned = v.partitioned;
	s->ready = true;
	return OUTBOX_OK;
}

int pg_op(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
	  PGresult **ret_result, struct outbox_error *err)
{
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);

	return r == OUTBOX_OK ? pg_call(s, mode, sql, args, ret_result, err) : r;
}

/* An application's own outbox_something must neither be overwritten nor half mixed with ours. */
static int check_in_the_way(struct pg_store *s, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *found = NULL;
	int r;

	r = pg_call(
		s, PG_READ,
		"SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
		" WHERE n.nspname = $1 AND c.relname IN ('outbox_message', 'outbox_target',"
		" 'outbox_route', 'outbox_lane', 'outbox_lock', 'outbox_worker', 'outbox_unserved', 'outbox_receipt', 'outbox_detour',"
		" 'outbox_kept', 'outbox_id', 'outbox_audit', 'outbox_amended', 'outbox_attempt', 'outbox_cancelled', 'outbox_position', 'outbox_message_default', 'outbox_delivery', 'outbox_failed',"
		" 'outbox_backlog') LIMIT 1",
		ARGS(ARG_TEXT(s->schema)), &found, err);
	if (r != OUTBOX_OK || PQntuples(found) == 0)
		return r;
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "a table or view %s that is not ours is in the way; rename it and run outbox "
			   "init again",
			   pg_peek(found, 0, 0));
}

/* All that leads from `from` to the newest, in one transaction, in our schema. */
static int migrate(struct pg_store *s, int from, const struct outbox_init_options *options,
		   struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf script = BUF_INIT(PG_SCRIPT_MAX);

	pg_schema_script(&script, s->quoted, from, options);
	if (script.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return pg_script(s, buf_str(&script), err);
}

static int set_doorbell(struct pg_store *s, int wanted, struct outbox_error *err)
{
	if (!wanted)
		return OUTBOX_OK;
	return pg_op(s, PG_WRITE, "SELECT @outbox_doorbell($1)", ARGS(ARG_BOOL(wanted > 0)), NULL,
		     err);
}

static int init_schema(struct pg_store *s, const struct outbox_init_options *options,
		       struct outbox_error *err)
{
	int lanes = options ? options->lanes : 0;
	struct version v = { 0 };
	int r;

	r = read_version(s, &v, err);
	if (r != OUTBOX_OK)
		return r;
	if (!v.schema) {
		r = check_in_the_way(s, err);
		return r == OUTBOX_OK ? migrate(s, 0, options, err) : r;
	}
	if (v.schema > NEWEST)
		return fail_newer(&v, err);
	if (v.schema < NEWEST)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "this database already has outbox schema %d, this program knows %d; "
				   "run: outbox upgrade",
				   v.schema, NEWEST);
	if (lanes && lanes != v.lanes)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "lanes: this outbox was created with %d, not %d; leave --lanes out",
				   v.lanes, lanes);
	if (options && options->partition && !v.partitioned)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"partition: this outbox was created without partitions, which are chosen at "
			"its first init; leave --partition out");
	return OUTBOX_OK;
}

int pg_init(struct outbox_store *store, const struct outbox_init_options *options,
	    struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	int r;

	r = init_schema(s, options, err);
	if (r == OUTBOX_OK)
		r = set_doorbell(s, options ? options->doorbell : 0, err);
	return r;
}

int pg_upgrade(struct outbox_store *store, const struct outbox_init_options *options, int *ret_from,
	       struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	struct version v = { 0 };
	int r;

	r = read_version(s, &v, err);
	if (r == OUTBOX_OK && !v.schema)
		r = fail_missing(s, &v, err);
	if (r == OUTBOX_OK && v.schema > NEWEST)
		r = fail_newer(&v, err);
	if (r == OUTBOX_OK && v.schema < NEWEST && !(options && options->dry_run))
		r = migrate(s, v.schema, options, err);
	if (r == OUTBOX_OK) {
		s->ready = false;
		if (ret_from)
			*ret_from = v.schema;
	}
	return r;
}

int pg_info(struct outbox_store *store, struct outbox_store_info *ret_info, struct outbox_error *err)
{
	struct outbox_store_info info = { .program_version = NEWEST };
	struct pg_store *s = pg_of(store);
	struct version v = { 0 };
	int version = PQserverVersion(s->conn), r;

	r = read_version(s, &v, err);
	if (r != OUTBOX_OK)
		return r;
	snprintf(info.driver, sizeof(info.driver), "postgres %d.%d", version / 10000,
		 version % 10000);
	snprintf(info.name, sizeof(info.name), "%s", s->name);
	info.schema_version = v.schema;
	info.lanes = v.lanes;
	snprintf(info.elsewhere, sizeof(info.elsewhere), "%s", v.elsewhere);
	snprintf(info.schema, sizeof(info.schema), "%s", s->schema);
	*ret_info = info;
	return OUTBOX_OK;
}
