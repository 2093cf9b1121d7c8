/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What holds data is versioned and never changes: every change of tables and indexes is one entry in the
 * list of migrations, and a new database runs the whole list. Code, that is views and triggers, is there
 * once, as it is now: upgrade drops what it finds and recreates it, in the same transaction. So there is
 * only one way in which a schema can come to be. Changed code is a new version too, with an empty
 * migration if need be: the version is how programs and people see that an upgrade is due.
 *
 * Two numbers decide who may work with whom. A program refuses a schema that is older than itself
 * (upgrade first) and one whose min_reader is newer than itself; what lies between runs side by side
 * during an upgrade of several relays.
 */
#include "store/sqlite/schema.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/route.h"
#include "store/store.h"

#include <string.h>

extern const char sqlite_schema_sql[];
extern const char sqlite_v2_sql[];
extern const char sqlite_v3_sql[];
extern const char sqlite_v4_sql[];
extern const char sqlite_v5_sql[];
extern const char sqlite_v6_sql[];
extern const char sqlite_code_sql[];

static const struct sqlite_migration migrations_of_ours[] = {
	{ 1, 1, sqlite_schema_sql }, { 2, 1, sqlite_v2_sql }, { 3, 1, sqlite_v3_sql },
	{ 4, 1, sqlite_v4_sql },     { 5, 1, sqlite_v5_sql }, { 6, 1, sqlite_v6_sql },
};

const struct sqlite_migrations sqlite_migrations = { migrations_of_ours,
						     ARRAY_SIZE(migrations_of_ours),
						     sqlite_code_sql };

static int newest(const struct sqlite_migrations *migrations)
{
	return migrations->list[migrations->count - 1].version;
}

static int read_meta(struct sqlite_store *s, const char *name, int *ret_value,
		     struct outbox_error *err)
{
	int64_t value;
	int r = sqlite_number(s, SQL_META_GET, ARGS(ARG_TEXT(name)), 0, &value, err);

	if (r == OUTBOX_OK)
		*ret_value = value > 0 && value < INT32_MAX ? (int)value : 0;
	return r;
}

int sqlite_schema_version(struct sqlite_store *s, struct sqlite_version *ret_version,
			  struct outbox_error *err)
{
	struct sqlite_version v = { 0 };
	int64_t tables;
	int r = sqlite_number(s, SQL_META_EXISTS, NULL, 0, &tables, err);

	if (r != OUTBOX_OK)
		return r;
	if (tables) {
		r = read_meta(s, "schema", &v.schema, err);
		if (r == OUTBOX_OK)
			r = read_meta(s, "min_reader", &v.min_reader, err);
		if (r == OUTBOX_OK)
			r = read_meta(s, "lanes", &v.lanes, err);
		if (r == OUTBOX_OK && !v.schema)
			r = outbox_fail(err, OUTBOX_ESCHEMA,
					"%s has a table outbox_meta that is not ours; move it away",
					s->path);
	}
	if (r == OUTBOX_OK)
		*ret_version = v;
	return r;
}

static int refuse_newer(const struct sqlite_version *v, int program, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "this database has outbox schema %d, this program knows %d; use a newer "
			   "outbox",
			   v->schema, program);
}

static int refuse_missing(const struct sqlite_store *s, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "no outbox here; run: outbox init --store sqlite:%s", s->path);
}

static int judge_version(struct sqlite_store *s, const struct sqlite_version *v,
			 struct outbox_error *err)
{
	int program = newest(&sqlite_migrations);

	if (!v->schema)
		return refuse_missing(s, err);
	if (v->schema > program && v->min_reader > program)
		return refuse_newer(v, program, err);
	if (v->schema < program)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "this database has outbox schema %d, this program needs %d; run: "
				   "outbox upgrade --store sqlite:%s",
				   v->schema, program, s->path);
	if (v->lanes < 1 || v->lanes > OUTBOX_LANES_MAX)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "outbox_meta: lanes is %d, not between 1 and %d", v->lanes,
				   OUTBOX_LANES_MAX);
	return OUTBOX_OK;
}

static int check_ready(struct sqlite_store *s, struct outbox_error *err)
{
	struct sqlite_version v = { 0 };
	int r = sqlite_begin(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_schema_version(s, &v, err);
	if (r == OUTBOX_OK)
		r = judge_version(s, &v, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK) {
		s->ready = true;
		s->lanes = v.lanes;
	}
	return r;
}

int sqlite_borrow(struct sqlite_store *s, sqlite3 *db, struct outbox_clock *clock,
		  struct outbox_random *random, struct outbox_error *err)
{
	struct sqlite_version v = { 0 };
	int r;

	*s = (struct sqlite_store){ .db = db, .clock = clock, .random = random };
	s->path = sqlite3_mprintf("%s", sqlite3_db_filename(db, "main"));
	if (!s->path)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	s->inside = true;
	r = sqlite_schema_version(s, &v, err);
	if (r == OUTBOX_OK)
		r = judge_version(s, &v, err);
	s->ready = r == OUTBOX_OK;
	s->lanes = v.lanes;
	return r;
}

void sqlite_give_back(struct sqlite_store *s)
{
	for (size_t i = 0; i < DB_STATEMENTS; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite_routes_free(s->routes);
	sqlite3_free(s->path);
}

int sqlite_enter(struct sqlite_store *s, enum db_mode mode, struct outbox_error *err)
{
	int r = s->ready ? OUTBOX_OK : check_ready(s, err);

	return r == OUTBOX_OK ? sqlite_begin(s, mode, err) : r;
}

/* An application's own outbox_something must neither be overwritten nor half mixed with ours. */
static int check_foreign(struct sqlite_store *s, int from, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *kind, *name;
	int r = sqlite_query(s, SQL_FOREIGN_OBJECT, ARGS(ARG_INT(from)), &q, err);

	if (!sqlite_next(q, &r, err))
		return r;
	kind = sqlite_peek(q, 0, &r, err);
	name = sqlite_peek(q, 1, &r, err);
	if (r != OUTBOX_OK)
		return r;
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "a %s %s that is not ours is in the way; rename it and run outbox %s again",
			   kind, name, from ? "upgrade" : "init");
}

/* In the transaction that is open: what lies between from (0: nothing is there) and the newest, and the code. */
static int migrate_schema(struct sqlite_store *s, const struct sqlite_migrations *migrations,
			  int from, struct outbox_error *err)
{
	int r = check_foreign(s, from, err);

	if (r == OUTBOX_OK && from)
		r = sqlite_script(s->db, sqlite_drop_code_sql, "schema", err);
	for (size_t i = 0; i < migrations->count && r == OUTBOX_OK; i++) {
		const struct sqlite_migration *m = &migrations->list[i];

		if (m->version <= from)
			continue;
		r = sqlite_script(s->db, m->sql, "schema", err);
		if (r == OUTBOX_OK)
			r = sqlite_run(s, SQL_META_PUT,
				       ARGS(ARG_TEXT("schema"), ARG_INT(m->version)), err);
		if (r == OUTBOX_OK)
			r = sqlite_run(s, SQL_META_PUT,
				       ARGS(ARG_TEXT("min_reader"), ARG_INT(m->min_reader)), err);
	}
	return r == OUTBOX_OK ? sqlite_script(s->db, migrations->code, "schema", err) : r;
}

static int create_schema(struct sqlite_store *s, const struct sqlite_migrations *migrations,
			 int lanes, struct outbox_error *err)
{
	int64_t id = sqlite_token(s);
	int r = migrate_schema(s, migrations, 0, err);

	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_META_PUT,
			       ARGS(ARG_TEXT("lanes"), ARG_INT(lanes ? lanes : DEFAULT_LANES)), err);
	return r ? r : sqlite_run(s, SQL_META_PUT, ARGS(ARG_TEXT("store_id"), ARG_INT(id)), err);
}

static int init_in(struct sqlite_store *s, const struct sqlite_migrations *migrations, int lanes,
		   struct outbox_error *err)
{
	int program = newest(migrations);
	struct sqlite_version v = { 0 };
	int r = sqlite_schema_version(s, &v, err);

	if (r != OUTBOX_OK)
		return r;
	if (!v.schema)
		return create_schema(s, migrations, lanes, err);
	if (v.schema > program)
		return refuse_newer(&v, program, err);
	if (v.schema < program)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "this database already has outbox schema %d, this program knows %d; "
				   "run: outbox upgrade --store sqlite:%s",
				   v.schema, program, s->path);
	if (lanes && lanes != v.lanes)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "lanes: this outbox was created with %d, not %d; leave --lanes out",
				   v.lanes, lanes);
	return OUTBOX_OK;
}

/* In UTF-16 databases hex() sees other bytes, and the key's hash would differ from every other store's. */
static int check_encoding(struct sqlite_store *s, struct outbox_error *err)
{
	char encoding[16];
	int r = sqlite_string(s, SQL_ENCODING, NULL, encoding, sizeof(encoding), err);

	if (r == OUTBOX_OK && strcmp(encoding, "UTF-8") != 0)
		r = outbox_fail(err, OUTBOX_ENOTSUP,
				"this database's text is %s; an outbox needs one with UTF-8",
				encoding);
	return r;
}

/* Writers then never wait for the relay's reads, nor it for theirs. Lasting: a property of the file. */
static int switch_to_wal(struct sqlite_store *s, struct outbox_error *err)
{
	char mode[16];
	int r = sqlite_string(s, SQL_WAL, NULL, mode, sizeof(mode), err);

	if (r == OUTBOX_OK && strcmp(mode, "wal") != 0)
		r = outbox_fail(err, OUTBOX_ENOTSUP,
				"%s cannot be switched to WAL (its journal mode stays \"%s\"); is it on a "
				"network file system?",
				s->path, mode);
	return r;
}

int sqlite_schema_init(struct sqlite_store *s, const struct sqlite_migrations *migrations,
		       const struct outbox_init_options *options, struct outbox_error *err)
{
	int lanes = options ? options->lanes : 0;
	int r;

	if (options && (options->partition || options->doorbell > 0))
		return outbox_fail(err, OUTBOX_ENOTSUP, "%s: only PostgreSQL has one; leave it out",
				   options->partition ? "partition" : "doorbell");
	r = check_encoding(s, err);
	if (r == OUTBOX_OK)
		r = switch_to_wal(s, err);
	if (r == OUTBOX_OK)
		r = sqlite_begin(s, DB_WRITE, err);
	return r ? r : sqlite_end(s, init_in(s, migrations, lanes, err), err);
}

int sqlite_schema_upgrade(struct sqlite_store *s, const struct sqlite_migrations *migrations,
			  const struct outbox_init_options *options, int *ret_from,
			  struct outbox_error *err)
{
	struct sqlite_version v = { 0 };
	int r = sqlite_begin(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_schema_version(s, &v, err);
	if (r == OUTBOX_OK && !v.schema)
		r = refuse_missing(s, err);
	if (r == OUTBOX_OK && v.schema > newest(migrations))
		r = refuse_newer(&v, newest(migrations), err);
	if (r == OUTBOX_OK && !(options && options->dry_run))
		r = migrate_schema(s, migrations, v.schema, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK) {
		s->ready = false;
		if (ret_from)
			*ret_from = v.schema;
	}
	return r;
}

int sqlite_init(struct outbox_store *store, const struct outbox_init_options *options,
		struct outbox_error *err)
{
	return sqlite_schema_init(sqlite_of(store), &sqlite_migrations, options, err);
}

int sqlite_upgrade(struct outbox_store *store, const struct outbox_init_options *options,
		   int *ret_from, struct outbox_error *err)
{
	return sqlite_schema_upgrade(sqlite_of(store), &sqlite_migrations, options, ret_from, err);
}

int sqlite_info(struct outbox_store *store, struct outbox_store_info *ret_info,
		struct outbox_error *err)
{
	struct outbox_store_info info = { .program_version = newest(&sqlite_migrations) };
	struct sqlite_store *s = sqlite_of(store);
	struct sqlite_version v = { 0 };
	int r = sqlite_begin(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, sqlite_schema_version(s, &v, err), err);
	if (r != OUTBOX_OK)
		return r;
	sqlite3_snprintf(sizeof(info.driver), info.driver, "sqlite %s", sqlite3_libversion());
	sqlite3_snprintf(sizeof(info.name), info.name, "%s", s->name);
	info.schema_version = v.schema;
	info.lanes = v.lanes;
	*ret_info = info;
	return OUTBOX_OK;
}

/* ---- scripts: what init, upgrade and drop run, for people who run their own migrations ---------- */

#define SCRIPT_MAX ((size_t)1 << 20)

static const char about[] =
	"-- The outbox's schema for SQLite, version %d: what `outbox init` runs, for people who run their own\n"
	"-- migrations. Run the whole script once, in the application's own database file:\n"
	"--\n"
	"--     outbox sql sqlite | sqlite3 -bail app.db\n"
	"--\n"
	"-- One thing may be set: --lanes 4 of `outbox sql sqlite`, readers of the log per target: row 'lanes' of\n"
	"-- outbox_meta, at the end. The rows there are how a relay knows this schema; without them it refuses to\n"
	"-- run. For a tool that opens the transaction itself, remove the lines\n"
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
	"-- Relays of the previous version keep working. For a tool that opens the transaction itself, remove\n"
	"-- the lines BEGIN IMMEDIATE; and COMMIT; (the last) and nothing else.\n\n"
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
