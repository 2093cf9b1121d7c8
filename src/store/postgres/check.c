/* SPDX-License-Identifier: Apache-2.0 */

/* What `outbox doctor` says about the database. Findings only: nothing is changed. */
#include "store/check.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#include <stdlib.h>
#include <string.h>

struct checking {
	struct pg_store *s;
	struct check_report report;
	outbox_time asked_at; /* by this machine's clock */
};

/* ---- the server and what goes on in it --------------------------------------------------------- */

#define CLOCK_NOTABLE (2 * OUTBOX_SECONDS)
#define CLOCK_WRONG OUTBOX_MINUTES
#define DEAD_NOTABLE 10000

static void check_durability(const struct checking *c, const PGresult *row)
{
	const char *commit = pg_peek(row, 0, 3);
	bool fsync_off = strcmp(pg_peek(row, 0, 4), "on") != 0,
	     pages_off = strcmp(pg_peek(row, 0, 5), "on") != 0;

	if (fsync_off || pages_off)
		check_say(&c->report, WARNING, "durability",
			  "%s: a crash of the machine can lose committed messages, or the whole database; "
			  "switch %s on in postgresql.conf and reload",
			  fsync_off && pages_off ? "fsync and full_page_writes are off"
			  : fsync_off            ? "fsync is off"
						 : "full_page_writes is off",
			  fsync_off && pages_off ? "both" : "it");
	else if (strcmp(commit, "off") == 0)
		check_say(&c->report, WARNING, "durability",
			  "synchronous_commit is off for this role: a crash of the server can lose the last "
			  "published messages with their transactions, but none that was sent, because a "
			  "relay always waits for the disk; ALTER ROLE %s SET synchronous_commit = on",
			  pg_peek(row, 0, 6));
	else
		check_say(&c->report, FINE, "durability", "synchronous_commit is %s", commit);
}

/* A pooler hands out a key of its own, so the session is not the one that we were told of. */
static void check_pooling(const struct checking *c, const PGresult *row)
{
	if (PQbackendPID(c->s->conn) == (int)pg_int(row, 0, 1))
		check_say(&c->report, FINE, "connection", "direct, no pooler in between");
	else
		check_say(&c->report, NOTE, "connection",
			  "through a pooler such as PgBouncer: session and transaction mode both work, "
			  "statement mode does not; in transaction mode there is no doorbell and the relay polls");
}

static void check_clock(const struct checking *c, outbox_time before, outbox_time server,
			outbox_time after)
{
	outbox_time off = server < before ? before - server : server > after ? server - after : 0;
	char text[DURATION_TEXT_MAX];

	if (off < CLOCK_NOTABLE)
		check_say(&c->report, FINE, "clock", "the server's and this machine's agree");
	else
		check_say(&c->report, off < CLOCK_WRONG ? NOTE : WARNING, "clock",
			  "the server's is %s %s this machine's: leases and retries go by the server's and "
			  "are not affected, but times that applications set are; synchronize both with NTP",
			  duration_human(off, text), server < before ? "behind" : "ahead of");
}

static const char server_sql[] =
	"SELECT current_setting('server_version_num')::integer, pg_backend_pid(), clock_timestamp(),"
	" current_setting('synchronous_commit'), current_setting('fsync'),"
	" current_setting('full_page_writes'), quote_ident(current_user)";

static void check_server(const struct checking *c, const PGresult *row)
{
	struct outbox_clock *clock = outbox_clock_system();

	check_say(&c->report, FINE, "schema", "version %d in schema %s, %d lane%s", pg_newest(),
		  c->s->schema, c->s->lanes, c->s->lanes == 1 ? "" : "s");
	check_pooling(c, row);
	check_durability(c, row);
	check_clock(c, c->asked_at, pg_time(row, 0, 2), clock->wall(clock));
}

/*
 * Whoever holds an old snapshot keeps vacuum from cleaning up, in every database of the server. Delivery
 * does not mind: windows name the transactions that are running. It is still what people ask about.
 */
static const char held_sql[] =
	"SELECT * FROM ("
	" SELECT 'pid ' || pid AS who, coalesce(nullif(application_name, ''), usename, backend_type) AS name,"
	"  state AS what, (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint AS age"
	" FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'"
	"  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
	"  AND xact_start < clock_timestamp() - interval '5 seconds'"
	" UNION ALL"
	" SELECT 'prepared transaction ' || quote_literal(gid), owner || ' in ' || database, 'prepared',"
	"  (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint FROM pg_prepared_xacts"
	" UNION ALL"
	" SELECT 'replication slot ' || slot_name, CASE WHEN active THEN 'in use' ELSE 'not in use' END,"
	"  age(xmin) || ' transactions', NULL FROM pg_replication_slots WHERE xmin IS NOT NULL"
	") h ORDER BY age DESC NULLS LAST LIMIT 5";

static void check_held(const struct checking *c, const PGresult *rows)
{
	char age[DURATION_TEXT_MAX];

	for (int i = 0; i < PQntuples(rows); i++)
		check_say(&c->report, NOTE, "held snapshot",
			  "%s (%s, %s) holds xmin for %s: delivery is not affected, except that of its own messages, "
			  "but vacuum is%s",
			  pg_peek(rows, i, 0), pg_peek(rows, i, 1), pg_peek(rows, i, 2),
			  PQgetisnull(rows, i, 3) ? "as long as it is there"
						  : duration_human(pg_int(rows, i, 3), age),
			  strncmp(pg_peek(rows, i, 0), "prepared", 8) == 0
				  ? "; COMMIT PREPARED or ROLLBACK PREPARED ends it"
				  : "");
	if (PQntuples(rows) == 0)
		check_say(&c->report, FINE, "held snapshot", "no transaction is older than 5 s");
}

static const char hidden_sql[] =
	"SELECT count(*) FROM pg_stat_activity"
	" WHERE backend_type IS NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()";

static void check_hidden(const struct checking *c, const PGresult *row)
{
	if (pg_int(row, 0, 0) > 0)
		check_say(&c->report, NOTE, "held snapshot",
			  "%lld sessions of other roles are hidden; GRANT pg_monitor to this role to see them",
			  (long long)pg_int(row, 0, 0));
}

static const char vacuum_sql[] =
	"SELECT c.relname::text, coalesce(s.n_dead_tup, 0),"
	" current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on'"
	"  AND NOT coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false),"
	" coalesce(to_char(greatest(s.last_autovacuum, s.last_vacuum) AT TIME ZONE 'UTC',"
	"  'YYYY-MM-DD HH24:MI:SS UTC'), 'never')"
	" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
	" LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE n.nspname = $1"
	" AND c.relname IN ('outbox_lane', 'outbox_worker', 'outbox_detour') ORDER BY 1";

static void check_vacuum(const struct checking *c, const PGresult *rows)
{
	bool fine = true;
	for (int i = 0; i < PQntuples(rows); i++) {
		if (!pg_bool(rows, i, 2))
			check_say(&c->report, WARNING, "vacuum",
				  "autovacuum is off for %s, which is updated all the time: it grows and slows "
				  "down; switch it on again",
				  pg_peek(rows, i, 0));
		else if (pg_int(rows, i, 1) > DEAD_NOTABLE)
			check_say(&c->report, WARNING, "vacuum",
				  "%s has %lld dead rows, last vacuum: %s; is a snapshot held (see below)? "
				  "Otherwise VACUUM it",
				  pg_peek(rows, i, 0), (long long)pg_int(rows, i, 1),
				  pg_peek(rows, i, 3));
		else
			continue;
		fine = false;
	}
	if (fine && PQntuples(rows) > 0)
		check_say(&c->report, FINE, "vacuum",
			  "outbox_lane, outbox_worker and outbox_detour are kept clean (outbox_lane: %lld dead "
			  "rows, last vacuum: %s)",
			  (long long)pg_int(rows, 1, 1), pg_peek(rows, 1, 3));
}

/* ---- our own tables: can a relay read them as it should? ---------------------------------------- */

/* What readers rely on: see outbox_message in sql/postgres/tables.sql and v5.sql. */
static const char log_sql[] =
	"SELECT coalesce(q.seqcache, 0), coalesce(NOT q.seqcycle AND q.seqincrement = 1, false),"
	" (SELECT count(*) FROM pg_trigger WHERE tgrelid = t.oid AND tgenabled IN ('O', 'A')"
	"  AND tgname IN ('outbox_message_accept', 'outbox_message_keep')),"
	" (SELECT count(*) FROM pg_trigger WHERE tgrelid = t.oid AND tgname = 'outbox_bell') > 0"
	" FROM (SELECT to_regclass(quote_ident($1) || '.outbox_message') AS oid) t"
	" LEFT JOIN pg_sequence q ON q.seqrelid ="
	"  pg_get_serial_sequence(quote_ident($1) || '.outbox_message', 'seq')::regclass";

static void check_log(const struct checking *c, const PGresult *row)
{
	bool good;
	if (pg_int(row, 0, 0) != 1 || !pg_bool(row, 0, 1))
		check_say(&c->report, WRONG, "log",
			  "the sequence of outbox_message.seq has CACHE %lld: numbers are no longer given out in "
			  "order, and messages can be skipped; ALTER TABLE outbox_message ALTER COLUMN seq SET "
			  "CACHE 1 SET INCREMENT 1 SET NO CYCLE, then have every publisher reconnect",
			  (long long)pg_int(row, 0, 0));
	good = pg_int(row, 0, 2) == 2;
	if (!good)
		check_say(&c->report, WRONG, "log",
			  "%lld of the 2 triggers outbox_message_accept and outbox_message_keep of outbox_message are "
			  "there and on: messages can be changed, or hidden from readers; enable them, or recreate "
			  "what outbox sql postgres prints for them",
			  (long long)pg_int(row, 0, 2));
	if (good && pg_int(row, 0, 0) == 1 && pg_bool(row, 0, 1))
		check_say(&c->report, FINE, "log", "the sequence has CACHE 1; doorbell %s",
			  pg_bool(row, 0, 3) ? "on" : "off");
}

/*
 * People may add columns to outbox_message: nothing of ours minds. What is ours must be there, and a message that
 * outlives its partition keeps what outbox_kept has a column for.
 */
static const char columns_sql[] =
	"WITH ours AS (SELECT unnest(ARRAY['xid', 'seq', 'slot', 'id', 'type', 'key', 'kind', 'published', 'priority',"
	"  'created_at', 'event_time', 'due_at', 'expires_at', 'content_type', 'source', 'subject', 'topic',"
	"  'correlation_id', 'causation_id', 'traceparent', 'headers', 'payload', 'payload_bin']) AS name),"
	" there AS (SELECT c.relname AS place, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,"
	"  a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS wanted"
	"  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
	"  WHERE n.nspname = $1 AND c.relname IN ('outbox_message', 'outbox_kept') AND a.attnum > 0"
	"  AND NOT a.attisdropped),"
	" added AS (SELECT t.name, t.type, t.wanted, EXISTS (SELECT FROM there k WHERE k.place = 'outbox_kept'"
	"   AND k.name = t.name) AS kept FROM there t"
	"  WHERE t.place = 'outbox_message' AND t.name NOT IN (SELECT o.name FROM ours o))"
	"SELECT (SELECT string_agg(p.place || '.' || o.name, ', ') FROM ours o"
	"  CROSS JOIN (VALUES ('outbox_message'), ('outbox_kept')) p(place)"
	"  WHERE NOT EXISTS (SELECT FROM there t WHERE t.place = p.place AND t.name = o.name)),"
	" (SELECT string_agg(a.name, ', ' ORDER BY a.name) FROM added a),"
	" (SELECT string_agg(quote_ident(a.name), ', ' ORDER BY a.name) FROM added a WHERE a.wanted),"
	" (SELECT string_agg('ADD COLUMN ' || quote_ident(a.name) || ' ' || a.type, ', ' ORDER BY a.name)"
	"  FROM added a WHERE NOT a.kept)";

static void check_columns(const struct checking *c, const PGresult *row)
{
	if (!PQgetisnull(row, 0, 0))
		check_say(&c->report, WRONG, "columns",
			  "%.300s: missing, and relays need it; outbox sql postgres prints the statement that creates it",
			  pg_peek(row, 0, 0));
	if (!PQgetisnull(row, 0, 2))
		check_say(&c->report, WARNING, "columns",
			  "%.200s of outbox_message is NOT NULL and has no default, so that outbox publish and "
			  "outbox_publish() cannot write a message; ALTER TABLE outbox_message ALTER COLUMN ... SET "
			  "DEFAULT, or DROP NOT NULL",
			  pg_peek(row, 0, 2));
	else if (c->s->partitioned && !PQgetisnull(row, 0, 3))
		check_say(&c->report, NOTE, "columns",
			  "what you added to outbox_message is lost for a message that outlives its partition "
			  "(a failed one); ALTER TABLE outbox_kept %.300s",
			  pg_peek(row, 0, 3));
	else if (!PQgetisnull(row, 0, 1))
		check_say(&c->report, FINE, "columns", "of your own in outbox_message: %.300s",
			  pg_peek(row, 0, 1));
}

static const char indexes_sql[] =
	"SELECT w.name, x.indexrelid IS NOT NULL, coalesce(x.indisvalid AND x.indisready, false)"
	" FROM unnest(ARRAY['outbox_message_pkey', 'outbox_message_xid', 'outbox_message_id',"
	"  'outbox_receipt_pkey', 'outbox_receipt_number', 'outbox_detour_pkey',"
	"  'outbox_detour_state', 'outbox_detour_open', 'outbox_detour_due', 'outbox_detour_key',"
	"  'outbox_detour_settled', 'outbox_kept_id', 'outbox_audit_id']) w(name)"
	" LEFT JOIN (pg_class i JOIN pg_index x ON x.indexrelid = i.oid"
	"  JOIN pg_namespace n ON n.oid = i.relnamespace AND n.nspname = $1)"
	" ON i.relname = w.name";

static void check_indexes(const struct checking *c, const PGresult *rows)
{
	int wrong = 0;

	for (int i = 0; i < PQntuples(rows); i++) {
		const char *name = pg_peek(rows, i, 0);

		if (pg_bool(rows, i, 2))
			continue;
		wrong++;
		if (pg_bool(rows, i, 1))
			check_say(&c->report, WRONG, "indexes",
				  "%s is not valid: a build of it ended early; REINDEX INDEX CONCURRENTLY %s",
				  name, name);
		else
			check_say(&c->report, WRONG, "indexes",
				  "%s is missing: readers walk through whole tables; outbox sql postgres prints "
				  "the statement that creates it",
				  name);
	}
	if (!wrong)
		check_say(&c->report, FINE, "indexes", "all %d are there and valid", PQntuples(rows));
}

/* The very query of a relay, planned on the tables as they are now. */
static const char plan_sql[] = "SELECT line FROM @outbox_window_plan() line";

static void check_plan(const struct checking *c, const PGresult *rows)
{
	for (int i = 0; i < PQntuples(rows); i++) {
		if (!strstr(pg_peek(rows, i, 0), "Seq Scan on outbox_"))
			continue;
		check_say(&c->report, WRONG, "plan",
			  "a relay would walk through the whole log (%.100s): is an index missing (see above)? "
			  "Otherwise ANALYZE outbox_message",
			  pg_peek(rows, i, 0) + strspn(pg_peek(rows, i, 0), " ->"));
		return;
	}
	if (PQntuples(rows) > 0)
		check_say(&c->report, FINE, "plan", "relays read the log by its indexes");
}

static const char security_sql[] =
	"SELECT c.relname::text, row_security_active(c.oid), quote_ident(current_user)"
	" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
	" AND starts_with(c.relname, 'outbox_') AND c.relkind IN ('r', 'p') AND c.relrowsecurity"
	" ORDER BY 1";

static void check_security(const struct checking *c, const PGresult *rows)
{
	for (int i = 0; i < PQntuples(rows); i++) {
		const char *table = pg_peek(rows, i, 0);

		if (pg_bool(rows, i, 1))
			check_say(&c->report, WRONG, "row security",
				  "%s hides rows from %s, and relays refuse to run rather than to skip messages; "
				  "ALTER TABLE %s DISABLE ROW LEVEL SECURITY, or ALTER ROLE %s BYPASSRLS",
				  table, pg_peek(rows, i, 2), table, pg_peek(rows, i, 2));
		else
			check_say(&c->report, NOTE, "row security",
				  "%s has row-level security, which does not apply to %s; publishers need a policy "
				  "that lets them INSERT",
				  table, pg_peek(rows, i, 2));
	}
}

static const char rights_sql[] =
	"SELECT quote_ident(current_user), string_agg(w.rights || ' on ' || w.name, ', '"
	"  ORDER BY w.name, w.rights) FROM ("
	" SELECT w.name, w.rights FROM (VALUES ('outbox_message', 'SELECT'), ('outbox_message', 'DELETE'),"
	"  ('outbox_receipt', 'SELECT'), ('outbox_receipt', 'INSERT'), ('outbox_detour', 'SELECT'),"
	"  ('outbox_detour', 'INSERT'), ('outbox_detour', 'UPDATE'), ('outbox_lane', 'SELECT'),"
	"  ('outbox_lane', 'UPDATE'), ('outbox_worker', 'INSERT'), ('outbox_worker', 'DELETE'),"
	"  ('outbox_target', 'SELECT'), ('outbox_target', 'INSERT'), ('outbox_audit', 'INSERT'))"
	"  w(name, rights) JOIN pg_class c ON c.relname = w.name"
	"  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1"
	"  WHERE NOT has_table_privilege(c.oid, w.rights)"
	" UNION ALL"
	" SELECT min(p.proname) || '() and other functions', 'EXECUTE' FROM pg_proc p"
	"  JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = $1"
	"  WHERE p.proname IN ('outbox_settle_and_claim', 'outbox_lease', 'outbox_take')"
	"  AND NOT has_function_privilege(p.oid, 'EXECUTE') HAVING count(*) > 0"
	") w";

static void check_rights(const struct checking *c, const PGresult *rows)
{
	if (PQgetisnull(rows, 0, 1))
		check_say(&c->report, FINE, "rights", "%s may relay, repair and purge",
			  pg_peek(rows, 0, 0));
	else
		check_say(&c->report, WARNING, "rights",
			  "%s may look but not relay, it has no %.300s; see docs/stores/postgres-roles.md",
			  pg_peek(rows, 0, 0), pg_peek(rows, 0, 1));
}

/* Do positions belong to this server and to this log? A row for each lane that relays refuse, or one without a fault. */
static const char positions_sql[] =
	"SELECT @outbox_cluster(), (SELECT value FROM @outbox_meta WHERE name = 'cluster'),"
	" (SELECT count(*) FROM @outbox_target), refused.what, refused.remedy"
	" FROM (SELECT) always LEFT JOIN (SELECT r.target, r.lane, f.what, f.remedy FROM @outbox_last_receipts() r"
	"  CROSS JOIN LATERAL @outbox_lane_fault(r) f WHERE f.what IS NOT NULL) refused ON true"
	" ORDER BY refused.target, refused.lane";

static void check_positions(const struct checking *c, const PGresult *rows)
{
	const char *here = pg_peek(rows, 0, 0), *made_on = pg_peek(rows, 0, 1);
	const char *fault = pg_peek(rows, 0, 3);
	bool foreign = *here && *made_on && strcmp(here, made_on) != 0;
	long long targets = (long long)pg_int(rows, 0, 2);

	if (foreign)
		check_say(&c->report, WRONG, "server identity",
			  "this outbox was made on server %s, and this is %s: it was restored or copied, and relays "
			  "refuse to run; outbox realign --dry-run says what to do",
			  made_on, here);
	else if (*fault)
		check_say(&c->report, WRONG, "positions",
			  "%d lane%s refused by relays; %.300s; %.100s", PQntuples(rows),
			  PQntuples(rows) == 1 ? " is" : "s are", fault,
			  PQgetisnull(rows, 0, 4) ? "run: outbox realign --dry-run"
						  : pg_peek(rows, 0, 4));
	if (targets == 0)
		check_say(&c->report, NOTE, "targets",
			  "none is registered: messages wait, and nothing is purged");
	else if (!foreign && !*fault)
		check_say(&c->report, FINE, "positions", "%lld target%s, none ahead of the log",
			  targets, targets == 1 ? "" : "s");
}

/* A log in partitions: new ones must be there before they are needed, or rows go to the default one. */
static const char partitions_sql[] =
	"SELECT count(*), count(*) FILTER (WHERE b.low > e.log_end),"
	" coalesce(sum(pg_relation_size(p.oid)) FILTER (WHERE b.low IS NULL), 0)::bigint,"
	" bool_and(pg_has_role(p.relowner, 'MEMBER')), quote_ident(current_user)"
	" FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid"
	" CROSS JOIN LATERAL (SELECT (regexp_match(pg_get_expr(p.relpartbound, p.oid),"
	"  'FROM [(]''?([0-9]+)'))[1]::bigint AS low) b"
	" CROSS JOIN (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS log_end"
	"  FROM @outbox_message_seq_seq) e"
	" WHERE i.inhparent = to_regclass(quote_ident($1) || '.outbox_message')";

static void check_partitions(const struct checking *c, const PGresult *row)
{
	long long ahead = (long long)pg_int(row, 0, 1);

	if (pg_int(row, 0, 0) == 0)
		return;
	if (!pg_bool(row, 0, 3))
		check_say(&c->report, WARNING, "partitions",
			  "%s does not own the outbox's tables, so its relay can neither make new partitions nor drop "
			  "old ones; ALTER TABLE ... OWNER TO it, or let the owner relay",
			  pg_peek(row, 0, 4));
	else if (ahead == 0)
		check_say(&c->report, WARNING, "partitions",
			  "none is ahead of the log: new messages go to the default partition, which is not dropped "
			  "whole; is a relay running, and does its role own outbox_message?");
	else if (pg_int(row, 0, 2) > 0)
		check_say(&c->report, NOTE, "partitions",
			  "%lld ahead; the default partition has rows from a time when no relay ran, they are purged "
			  "row by row",
			  ahead);
	else
		check_say(&c->report, FINE, "partitions", "%lld, %lld of them ahead of the log",
			  (long long)pg_int(row, 0, 0), ahead);
}

/* ---- the op ------------------------------------------------------------------------------------ */

int pg_check(struct outbox_store *store,
	     void (*say)(void *context, int level, const char *subject, const char *text),
	     void *context, struct outbox_error *err)
{
	static const struct {
		const char *sql; /* $1: the name of the outbox's schema */
		void (*judge)(const struct checking *c, const PGresult *rows);
	} checks[] = {
		{ server_sql, check_server },       { rights_sql, check_rights },
		{ security_sql, check_security },   { log_sql, check_log },
		{ columns_sql, check_columns },     { indexes_sql, check_indexes },
		{ plan_sql, check_plan },           { partitions_sql, check_partitions },
		{ positions_sql, check_positions }, { vacuum_sql, check_vacuum },
		{ held_sql, check_held },           { hidden_sql, check_hidden },
	};
	struct checking c = { .s = pg_of(store), .report = { say, context } };
	struct outbox_clock *clock = outbox_clock_system();
	struct outbox_error found = OUTBOX_ERROR_INIT;
	int r = pg_schema_ready(c.s, err);

	for (size_t i = 0; i < ARRAY_SIZE(checks) && r == OUTBOX_OK; i++) {
		_cleanup_(pg_clearp) PGresult *rows = NULL;

		c.asked_at = clock->wall(clock);
		r = pg_call(c.s, PG_READ, checks[i].sql,
			    strstr(checks[i].sql, "$1") ? ARGS(ARG_TEXT(c.s->schema)) : NULL, &rows,
			    &found);
		if (r == OUTBOX_OK) {
			checks[i].judge(&c, rows);
		} else if (r == OUTBOX_EAUTH) {
			/* what a role may not look at does not end the examination */
			check_say(&c.report, NOTE, "not checked", "%s", found.message);
			r = OUTBOX_OK;
		} else {
			return outbox_fail_native(err, r, found.native, "%s", found.message);
		}
	}
	return r;
}
