/* SPDX-License-Identifier: Apache-2.0 */

/* doctor: the server, its settings and what goes on in it. */
#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/check.h"
#include "store/postgres/script.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_NOTABLE (2 * OUTBOX_SECONDS)
#define CLOCK_WRONG OUTBOX_MINUTES
#define DEAD_NOTABLE 10000

static void check_durability(const struct checking *c, const PGresult *row)
{
	const char *commit = pg_peek(row, 0, 3);

	bool fsync_off = strcmp(pg_peek(row, 0, 4), "on") != 0,
	     pages_off = strcmp(pg_peek(row, 0, 5), "on") != 0;

	if (fsync_off || pages_off)
		check_say(c, WARNING, "durability",
			  "%s: when the machine stops, committed messages can be gone, or the whole database; "
			  "switch %s on in postgresql.conf and reload",
			  fsync_off && pages_off ? "fsync and full_page_writes are off"
			  : fsync_off            ? "fsync is off"
						 : "full_page_writes is off",
			  fsync_off && pages_off ? "both" : "it");
	else if (strcmp(commit, "off") == 0)
		check_say(c, WARNING, "durability",
			  "synchronous_commit is off for this role: when the server crashes, what was published "
			  "last can be gone, with the rest of its transaction; nothing that was sent, because a "
			  "relay waits for the disk all the same; ALTER ROLE %s SET synchronous_commit = on",
			  pg_peek(row, 0, 6));
	else
		check_say(c, FINE, "durability", "synchronous_commit is %s", commit);
}

/* A pooler hands out a key of its own, so the session is not the one that we were told of. */
static void check_pooling(const struct checking *c, const PGresult *row)
{
	if (PQbackendPID(c->s->conn) == (int)pg_int(row, 0, 1))
		check_say(c, FINE, "connection", "direct, no pooler in between");
	else
		check_say(c, NOTE, "connection",
			  "through a pooler such as PgBouncer: session and transaction mode both work, "
			  "statement mode does not; in transaction mode there is no doorbell and the relay polls");
}

static void check_clock(const struct checking *c, outbox_time before, outbox_time server,
			outbox_time after)
{
	outbox_time off = server < before ? before - server : server > after ? server - after : 0;
	char text[DURATION_TEXT_MAX];

	if (off < CLOCK_NOTABLE)
		check_say(c, FINE, "clock", "the server's and this machine's agree");
	else
		check_say(c, off < CLOCK_WRONG ? NOTE : WARNING, "clock",
			  "the server's is %s %s this machine's: leases and retries go by the server's and "
			  "are not affected, times that applications set are; let both follow one NTP source",
			  duration_human(off, text), server < before ? "behind" : "ahead of");
}

int check_server(const struct checking *c, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	_cleanup_(pg_clearp) PGresult *row = NULL;
	outbox_time before = clock->wall(clock);
	int r;

	r = check_ask(c,
		      "SELECT current_setting('server_version_num')::integer, pg_backend_pid(), clock_timestamp(),"
		      " current_setting('synchronous_commit'), current_setting('fsync'),"
		      " current_setting('full_page_writes'), quote_ident(current_user)"
		      " FROM (SELECT $1::text) x",
		      &row, err);
	if (r != OUTBOX_OK)
		return r;
	check_say(c, FINE, "schema", "version %d in schema %s, %d lane%s", pg_newest(),
		  c->s->schema, c->s->lanes, c->s->lanes == 1 ? "" : "s");
	check_pooling(c, row);
	check_durability(c, row);
	check_clock(c, before, pg_time(row, 0, 2), clock->wall(clock));
	return OUTBOX_OK;
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
	") h WHERE $1 <> '' ORDER BY age DESC NULLS LAST LIMIT 5";

int check_held(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL, *hidden = NULL;
	char age[DURATION_TEXT_MAX];
	int r;

	r = check_ask(c, held_sql, &rows, err);
	if (r == OUTBOX_OK)
		r = check_ask(
			c,
			"SELECT count(*) FROM pg_stat_activity WHERE $1 <> ''"
			" AND backend_type IS NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()",
			&hidden, err);
	if (r != OUTBOX_OK)
		return r;
	for (int i = 0; i < PQntuples(rows); i++)
		check_say(c, NOTE, "held snapshot",
			  "%s (%s, %s) holds xmin for %s: delivery is not affected but for its own messages, "
			  "vacuum is%s",
			  pg_peek(rows, i, 0), pg_peek(rows, i, 1), pg_peek(rows, i, 2),
			  PQgetisnull(rows, i, 3) ? "as long as it is there"
						  : duration_human(pg_int(rows, i, 3), age),
			  strncmp(pg_peek(rows, i, 0), "prepared", 8) == 0
				  ? "; COMMIT PREPARED or ROLLBACK PREPARED ends it"
				  : "");
	if (PQntuples(rows) == 0)
		check_say(c, FINE, "held snapshot", "no transaction is older than 5 s");
	if (pg_int(hidden, 0, 0) > 0)
		check_say(c, NOTE, "held snapshot",
			  "%lld sessions of other roles cannot be looked into; GRANT pg_monitor to this role to "
			  "see them",
			  (long long)pg_int(hidden, 0, 0));
	return OUTBOX_OK;
}

int check_vacuum(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	bool fine = true;
	int r;

	r = check_ask(
		c,
		"SELECT c.relname::text, coalesce(s.n_dead_tup, 0),"
		" current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on'"
		"  AND NOT coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false),"
		" coalesce(to_char(greatest(s.last_autovacuum, s.last_vacuum) AT TIME ZONE 'UTC',"
		"  'YYYY-MM-DD HH24:MI:SS UTC'), 'never')"
		" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
		" LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE n.nspname = $1"
		" AND c.relname IN ('outbox_lane', 'outbox_worker', 'outbox_detour') ORDER BY 1",
		&rows, err);
	if (r != OUTBOX_OK)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		if (!pg_bool(rows, i, 2))
			check_say(c, WARNING, "vacuum",
				  "autovacuum is off for %s, which is updated all the time: it grows and slows "
				  "down; switch it on again",
				  pg_peek(rows, i, 0));
		else if (pg_int(rows, i, 1) > DEAD_NOTABLE)
			check_say(c, WARNING, "vacuum",
				  "%s has %lld dead rows, last vacuum: %s; is a snapshot held (see below)? else "
				  "VACUUM it",
				  pg_peek(rows, i, 0), (long long)pg_int(rows, i, 1),
				  pg_peek(rows, i, 3));
		else
			continue;
		fine = false;
	}
	if (fine && PQntuples(rows) > 0)
		check_say(c, FINE, "vacuum",
			  "outbox_lane, outbox_worker and outbox_detour are kept clean (outbox_lane: %lld dead "
			  "rows, last vacuum: %s)",
			  (long long)pg_int(rows, 1, 1), pg_peek(rows, 1, 3));
	return OUTBOX_OK;
}
