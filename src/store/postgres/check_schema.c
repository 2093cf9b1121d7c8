/* SPDX-License-Identifier: Apache-2.0 */

/* doctor: our own tables, and whether a relay can read them as it should. */
#include "base/cleanup.h"
#include "store/postgres/check.h"

#include <stdio.h>
#include <string.h>

/* What readers rely on: see outbox_message in sql/postgres/tables.sql. */
int check_log(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	bool good;
	int r;

	r = check_ask(
		c,
		"SELECT coalesce(q.seqcache, 0), coalesce(NOT q.seqcycle AND q.seqincrement = 1, false),"
		" (SELECT count(*) FROM pg_constraint WHERE conrelid = t.oid AND contype = 'c' AND conname IN"
		"  ('xid is given by the log; leave it out of the INSERT',"
		"   'seq is given by the log; leave it out of the INSERT')),"
		" (SELECT count(*) FROM pg_trigger WHERE tgrelid = t.oid AND tgenabled IN ('O', 'A')"
		"  AND tgname IN ('outbox_message_defaults', 'outbox_message_keep')),"
		" (SELECT count(*) FROM pg_trigger WHERE tgrelid = t.oid AND tgname = 'outbox_bell') > 0"
		" FROM (SELECT to_regclass(quote_ident($1) || '.outbox_message') AS oid) t"
		" LEFT JOIN pg_sequence q ON q.seqrelid ="
		"  pg_get_serial_sequence(quote_ident($1) || '.outbox_message', 'seq')::regclass",
		&row, err);
	if (r != OUTBOX_OK)
		return r;
	if (pg_int(row, 0, 0) != 1 || !pg_bool(row, 0, 1))
		check_say(c, WRONG, "log",
			  "the sequence of outbox_message.seq has CACHE %lld: numbers are no longer given out in "
			  "order, and messages can be skipped; ALTER TABLE outbox_message ALTER COLUMN seq SET "
			  "CACHE 1 SET INCREMENT 1 SET NO CYCLE, then let every publisher connect anew",
			  (long long)pg_int(row, 0, 0));
	good = pg_int(row, 0, 2) == 2 && pg_int(row, 0, 3) == 2;
	if (!good)
		check_say(c, WRONG, "log",
			  "%lld of 2 constraints and %lld of 2 triggers of outbox_message are there and on: "
			  "messages can be changed, or hidden from readers; outbox sql postgres prints them, make "
			  "them again (a constraint with NOT VALID)",
			  (long long)pg_int(row, 0, 2), (long long)pg_int(row, 0, 3));
	if (good && pg_int(row, 0, 0) == 1 && pg_bool(row, 0, 1))
		check_say(c, FINE, "log", "the sequence has CACHE 1; doorbell %s",
			  pg_bool(row, 0, 4) ? "on" : "off");
	return OUTBOX_OK;
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

int check_columns(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r;

	r = check_ask(c, columns_sql, &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (!PQgetisnull(row, 0, 0))
		check_say(c, WRONG, "columns",
			  "%.300s: not there, and relays need it; outbox sql postgres prints how it is made",
			  pg_peek(row, 0, 0));
	if (!PQgetisnull(row, 0, 2))
		check_say(c, WARNING, "columns",
			  "%.200s of outbox_message is NOT NULL and has no default, so that outbox publish and "
			  "outbox_publish() cannot write a message; ALTER TABLE outbox_message ALTER COLUMN ... SET "
			  "DEFAULT, or DROP NOT NULL",
			  pg_peek(row, 0, 2));
	else if (c->s->partitioned && !PQgetisnull(row, 0, 3))
		check_say(c, NOTE, "columns",
			  "what you added to outbox_message is lost for a message that outlives its partition "
			  "(a failed one); ALTER TABLE outbox_kept %.300s",
			  pg_peek(row, 0, 3));
	else if (!PQgetisnull(row, 0, 1))
		check_say(c, FINE, "columns", "of your own in outbox_message: %.300s",
			  pg_peek(row, 0, 1));
	return OUTBOX_OK;
}

int check_indexes(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r, wrong = 0;

	r = check_ask(
		c,
		"SELECT w.name, x.indexrelid IS NOT NULL, coalesce(x.indisvalid AND x.indisready, false)"
		" FROM unnest(ARRAY['outbox_message_pkey', 'outbox_message_xid', 'outbox_message_id',"
		"  'outbox_receipt_pkey', 'outbox_receipt_number', 'outbox_detour_pkey',"
		"  'outbox_detour_state', 'outbox_detour_open', 'outbox_detour_due', 'outbox_detour_key',"
		"  'outbox_detour_settled', 'outbox_kept_id', 'outbox_audit_id']) w(name)"
		" LEFT JOIN (pg_class i JOIN pg_index x ON x.indexrelid = i.oid"
		"  JOIN pg_namespace n ON n.oid = i.relnamespace AND n.nspname = $1)"
		" ON i.relname = w.name",
		&rows, err);
	if (r != OUTBOX_OK)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		const char *name = pg_peek(rows, i, 0);

		if (pg_bool(rows, i, 2))
			continue;
		wrong++;
		if (pg_bool(rows, i, 1))
			check_say(c, WRONG, "indexes",
				  "%s is not valid: a build of it ended early; REINDEX INDEX CONCURRENTLY %s",
				  name, name);
		else
			check_say(c, WRONG, "indexes",
				  "%s is not there: readers walk through whole tables; outbox sql postgres prints "
				  "how it is made",
				  name);
	}
	if (!wrong)
		check_say(c, FINE, "indexes", "all %d are there and valid", PQntuples(rows));
	return OUTBOX_OK;
}

/* The very query of a relay, planned on the tables as they are now. */
int check_plan(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r;

	r = pg_call(c->s, PG_READ, "SELECT line FROM @outbox_window_plan() line", NULL, &rows, err);
	if (r != OUTBOX_OK)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		if (!strstr(pg_peek(rows, i, 0), "Seq Scan on outbox_"))
			continue;
		check_say(c, WRONG, "plan",
			  "a relay would walk through the whole log (%.100s): is an index missing, see above? else "
			  "ANALYZE outbox_message",
			  pg_peek(rows, i, 0) + strspn(pg_peek(rows, i, 0), " ->"));
		return OUTBOX_OK;
	}
	if (PQntuples(rows) > 0)
		check_say(c, FINE, "plan", "relays read the log by its indexes");
	return OUTBOX_OK;
}

static int check_security(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r;

	r = check_ask(
		c,
		"SELECT c.relname::text, row_security_active(c.oid), quote_ident(current_user)"
		" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
		" AND starts_with(c.relname, 'outbox_') AND c.relkind IN ('r', 'p') AND c.relrowsecurity"
		" ORDER BY 1",
		&rows, err);
	if (r != OUTBOX_OK)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		const char *table = pg_peek(rows, i, 0);

		if (pg_bool(rows, i, 1))
			check_say(c, WRONG, "row security",
				  "%s hides rows from %s, and relays refuse to run rather than to skip messages; "
				  "ALTER TABLE %s DISABLE ROW LEVEL SECURITY, or ALTER ROLE %s BYPASSRLS",
				  table, pg_peek(rows, i, 2), table, pg_peek(rows, i, 2));
		else
			check_say(c, NOTE, "row security",
				  "%s has row-level security, which does not apply to %s; publishers need a policy "
				  "that lets them INSERT",
				  table, pg_peek(rows, i, 2));
	}
	return OUTBOX_OK;
}

int check_rights(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r;

	r = check_ask(
		c,
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
		"  WHERE p.proname IN ('outbox_advance', 'outbox_lease', 'outbox_take')"
		"  AND NOT has_function_privilege(p.oid, 'EXECUTE') HAVING count(*) > 0"
		") w",
		&rows, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQgetisnull(rows, 0, 1))
		check_say(c, FINE, "rights", "%s may relay, repair and purge", pg_peek(rows, 0, 0));
	else
		check_say(c, WARNING, "rights",
			  "%s may look but not relay, it has no %.300s; see docs/stores/postgres-roles.md",
			  pg_peek(rows, 0, 0), pg_peek(rows, 0, 1));
	return check_security(c, err);
}

/* Do positions belong to this server and to this log? */
int check_positions(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *meta = NULL, *rows = NULL;
	bool foreign;
	int r;

	r = pg_call(c->s, PG_READ,
		    "SELECT @outbox_cluster(), (SELECT value FROM @outbox_meta WHERE name = 'cluster'),"
		    " (SELECT count(*) FROM @outbox_target)",
		    NULL, &meta, err);
	if (r == OUTBOX_OK)
		r = pg_call(c->s, PG_READ,
			    "SELECT f.fault FROM @outbox_last_receipts() r"
			    " CROSS JOIN LATERAL @outbox_position_fault(r) f(fault) WHERE f.fault IS NOT NULL"
			    " ORDER BY r.target, r.lane",
			    NULL, &rows, err);
	if (r != OUTBOX_OK)
		return r;
	foreign = !PQgetisnull(meta, 0, 0) && !PQgetisnull(meta, 0, 1) &&
		  strcmp(pg_peek(meta, 0, 0), pg_peek(meta, 0, 1)) != 0;
	if (foreign)
		check_say(c, WRONG, "server identity",
			  "this outbox was made on server %s, and this is %s: it was restored or copied, and relays "
			  "refuse to run; outbox rebase --dry-run says what to do",
			  pg_peek(meta, 0, 1), pg_peek(meta, 0, 0));
	if (!foreign && PQntuples(rows) > 0)
		check_say(c, WRONG, "positions", "%d lane%s refused by relays; %.350s%s",
			  PQntuples(rows), PQntuples(rows) == 1 ? " is" : "s are",
			  pg_peek(rows, 0, 0),
			  strstr(pg_peek(rows, 0, 0), "run: outbox rebase") ? " --dry-run" : "");
	if (pg_int(meta, 0, 2) == 0)
		check_say(c, NOTE, "targets",
			  "none is registered: messages wait, and nothing is purged");
	else if (!foreign && PQntuples(rows) == 0)
		check_say(c, FINE, "positions", "%lld target%s, none ahead of the log",
			  (long long)pg_int(meta, 0, 2), pg_int(meta, 0, 2) == 1 ? "" : "s");
	return OUTBOX_OK;
}

/* A log in partitions: new ones must be there before they are needed, or rows go to the default one. */
int check_partitions(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	long long ahead;
	int r;

	r = pg_call(c->s, PG_READ,
		    "SELECT count(*), count(*) FILTER (WHERE b.low > e.log_end),"
		    " coalesce(sum(pg_relation_size(p.oid)) FILTER (WHERE b.low IS NULL), 0)::bigint,"
		    " bool_and(pg_has_role(p.relowner, 'MEMBER')), quote_ident(current_user)"
		    " FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid"
		    " CROSS JOIN LATERAL (SELECT (regexp_match(pg_get_expr(p.relpartbound, p.oid),"
		    "  'FROM [(]''?([0-9]+)'))[1]::bigint AS low) b"
		    " CROSS JOIN (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS log_end"
		    "  FROM @outbox_message_seq_seq) e"
		    " WHERE i.inhparent = to_regclass(quote_ident($1) || '.outbox_message')",
		    ARGS(ARG_TEXT(c->s->schema)), &row, err);
	if (r != OUTBOX_OK || pg_int(row, 0, 0) == 0)
		return r;
	ahead = (long long)pg_int(row, 0, 1);
	if (!pg_bool(row, 0, 3))
		check_say(c, WARNING, "partitions",
			  "%s does not own the outbox's tables, so its relay can neither make new partitions nor drop "
			  "old ones; ALTER TABLE ... OWNER TO it, or let the owner relay",
			  pg_peek(row, 0, 4));
	else if (ahead == 0)
		check_say(c, WARNING, "partitions",
			  "none is ahead of the log: new messages go to the default partition, which is not dropped "
			  "whole; is a relay running, and does its role own outbox_message?");
	else if (pg_int(row, 0, 2) > 0)
		check_say(c, NOTE, "partitions",
			  "%lld ahead; the default partition has rows from a time when no relay ran, they are purged "
			  "row by row",
			  ahead);
	else
		check_say(c, FINE, "partitions", "%lld, %lld of them ahead of the log",
			  (long long)pg_int(row, 0, 0), ahead);
	return OUTBOX_OK;
}
