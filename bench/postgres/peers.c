/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a drain is compared with. The raw loop is what the database can do at best: it keeps no lease and no
 * fence. The SKIP LOCKED loop is what most outboxes do: each row is updated twice. Both use statements that
 * were prepared once and rows in binary form.
 */

#include "bench.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define PEER_BATCH 200

/* What every message has is read into this, so that no read can be left out. */
static volatile int64_t sink;

void meter_start(struct meter *meter, const struct place *place)
{
	meter->wal = server_wal(place->db);
	meter->commits = server_commits(place->db);
	meter->cpu = server_cpu(place->bench);
	meter->start = now_seconds();
}

struct pass meter_end(const struct meter *meter, const struct place *place, int messages)
{
	double seconds = now_seconds() - meter->start;

	return (struct pass){ .rate = messages / seconds,
			      .wal = (server_wal(place->db) - meter->wal) / messages,
			      .cpu = (server_cpu(place->bench) - meter->cpu) * 1e6 / messages,
			      .commits = (server_commits(place->db) - meter->commits) / messages };
}

static int64_t first_int8(const PGresult *rows, int row)
{
	uint64_t number;

	memcpy(&number, PQgetvalue(rows, row, 0), sizeof(number));
	return (int64_t)be64toh(number);
}

static void touch(struct each *each, const PGresult *rows)
{
	int n = PQntuples(rows), columns = PQnfields(rows);
	int64_t sum = 0;

	(void)each;
	for (int r = 0; r < n; r++) {
		for (int c = 0; c < columns; c++) {
			int length = PQgetlength(rows, r, c);

			if (length)
				sum += PQgetvalue(rows, r, c)[length - 1];
		}
	}
	sink += sum;
}

static struct each toucher = { .run = touch };

static void prepare(PGconn *db, const char *name, const char *sql)
{
	PGresult *result = PQprepare(db, name, sql, 0, NULL);

	pg_check(db, result, PGRES_COMMAND_OK, sql);
	PQclear(result);
}

static void prepare_raw(PGconn *db)
{
	pg_run(db, "CREATE TABLE IF NOT EXISTS raw_receipt (n bigint GENERATED ALWAYS AS IDENTITY"
		   " PRIMARY KEY, pos bigint, at timestamptz DEFAULT now())");
	prepare(db, "read",
		"SELECT seq, id, type, key, kind, published, created_at, event_time, due_at,"
		" expires_at, priority, content_type, source, subject, topic, correlation_id,"
		" causation_id, traceparent, headers, payload, payload_bin"
		" FROM outbox_message WHERE seq > $1::bigint ORDER BY seq LIMIT $2::bigint");
	prepare(db, "note", "INSERT INTO raw_receipt (pos) VALUES ($1::bigint)");
}

struct pass raw_pass(struct place *place, bool receipts, int batch, int messages, struct each *each)
{
	PGconn *db = pg_open(place->url);
	uint64_t pos = 0, limit = htobe64((uint64_t)batch);
	const char *values[] = { (char *)&pos, (char *)&limit };
	static const int lengths[] = { 8, 8 }, formats[] = { 1, 1 };
	int total = 0, n;
	struct meter meter;
	struct pass pass;

	each = each ? each : &toucher;
	prepare_raw(db);
	meter_start(&meter, place);
	do {
		PGresult *rows = PQexecPrepared(db, "read", 2, values, lengths, formats, 1);

		pg_check(db, rows, PGRES_TUPLES_OK, "raw read");
		each->run(each, rows);
		n = PQntuples(rows);
		total += n;
		if (n)
			pos = htobe64((uint64_t)first_int8(rows, n - 1));
		PQclear(rows);
		if (receipts) {
			PGresult *noted = PQexecPrepared(db, "note", 1, values, lengths, formats, 1);

			pg_check(db, noted, PGRES_COMMAND_OK, "raw receipt");
			PQclear(noted);
		}
	} while (n == batch);
	pass = meter_end(&meter, place, messages);
	PQfinish(db);
	if (total != messages)
		die("raw drain", "not every message was read");
	return pass;
}

/* The same columns and the same indexes but (xid, seq); a status, and a partial index to find work by. */
void peer_make(PGconn *db, int messages)
{
	pg_run(db, "CHECKPOINT");
	pg_run(db, "DROP TABLE IF EXISTS peer");
	pg_run(db,
	       "CREATE TABLE peer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
	       " message_id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, type text NOT NULL, key text,"
	       " headers text, payload text, created_at timestamptz NOT NULL DEFAULT now(),"
	       " status smallint NOT NULL DEFAULT 0, attempts integer NOT NULL DEFAULT 0,"
	       " locked_until timestamptz, locked_by text, sent_at timestamptz)");
	pg_run(db, "CREATE INDEX ON peer (id) WHERE status = 0");
	pg_runf(db,
		"INSERT INTO peer (type, key, payload)"
		" SELECT 'bench.message', 'key-' || i %% 10000, '%s' FROM generate_series(1, %d) i",
		payload(), messages);
	pg_run(db, "VACUUM ANALYZE peer");
}

void peer_make_done(PGconn *db, int messages)
{
	peer_make(db, messages);
	pg_run(db, "UPDATE peer SET status = 2, sent_at = now()");
	pg_run(db, "VACUUM ANALYZE peer");
}

/* {id, id, ...} of the rows, as text. */
static const char *ids_of(const PGresult *rows)
{
	static char text[PEER_BATCH * 21 + 3];
	char *at = text;

	*at++ = '{';
	for (int r = 0; r < PQntuples(rows); r++)
		at += sprintf(at, "%s%lld", r ? "," : "", (long long)first_int8(rows, r));
	memcpy(at, "}", 2);
	return text;
}

void peer_prepare(PGconn *db)
{
	prepare(db, "claim",
		"UPDATE peer SET status = 1, locked_by = 'bench', locked_until = now() + interval '30 s'"
		" WHERE id IN (SELECT id FROM peer WHERE status = 0 ORDER BY id LIMIT 200"
		" FOR UPDATE SKIP LOCKED)"
		" RETURNING id, message_id::text AS id_text, type, key, headers, payload, created_at, attempts");
	prepare(db, "mark",
		"UPDATE peer SET status = 2, sent_at = now(), locked_by = NULL, locked_until = NULL"
		" WHERE id = ANY ($1::bigint[])");
}

int peer_cycle(PGconn *db, struct each *each)
{
	PGresult *rows = PQexecPrepared(db, "claim", 0, NULL, NULL, NULL, 1), *marked;
	int n = PQntuples(rows);
	const char *ids;

	pg_check(db, rows, PGRES_TUPLES_OK, "claim");
	each = each ? each : &toucher;
	if (n > 0) {
		each->run(each, rows);
		ids = ids_of(rows);
		marked = PQexecPrepared(db, "mark", 1, &ids, NULL, NULL, 0);
		pg_check(db, marked, PGRES_COMMAND_OK, "mark");
		PQclear(marked);
	}
	PQclear(rows);
	return n;
}

struct pass skip_locked_pass(struct place *place, int messages, struct each *each)
{
	PGconn *db = pg_open(place->url);
	struct meter meter;
	struct pass pass;
	int total = 0, n;

	peer_make(db, messages);
	peer_prepare(db);
	meter_start(&meter, place);
	do {
		n = peer_cycle(db, each);
		total += n;
	} while (n > 0);
	pass = meter_end(&meter, place, messages);
	PQfinish(db);
	if (total != messages)
		die("SKIP LOCKED drain", "not every message was claimed");
	return pass;
}
