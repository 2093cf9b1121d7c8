/* SPDX-License-Identifier: Apache-2.0 */
/* Each case has a schema of its own in the database that OUTBOX_TEST_POSTGRES names (tests/support/with-postgres). */

#include "store_contract.h"

#include <outbox/postgres.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct outbox_store_ops postgres_store_ops;

struct place {
	PGconn *conn; /* for what the fixture itself does */
	char schema[64], url[512], missing[512];
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	abort();
}

static void run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		die(sql, PQerrorMessage(conn));
	PQclear(result);
}

static const char *server(void)
{
	return getenv("OUTBOX_TEST_POSTGRES");
}

/* Another way to the same server for the store's connections: a pooler. */
static const char *way(void)
{
	const char *via = getenv("OUTBOX_TEST_POSTGRES_VIA");

	return via ? via : server();
}

static const char *unavailable(void)
{
	return server() ? NULL
			: "OUTBOX_TEST_POSTGRES is not set (tests/support/with-postgres sets it)";
}

static void ignore(void *context, const char *text)
{
	(void)context;
	(void)text;
}

static PGconn *connect_to(const struct place *p)
{
	PGconn *conn = PQconnectdb(server());
	char sql[128];

	if (PQstatus(conn) != CONNECTION_OK)
		die(server(), PQerrorMessage(conn));
	PQsetNoticeProcessor(conn, ignore, NULL);
	snprintf(sql, sizeof(sql), "SET search_path = \"%s\"", p->schema);
	run(conn, sql);
	return conn;
}

static void *make(struct outbox_clock *clock)
{
	static int number;
	struct place *p = calloc(1, sizeof(*p));

	(void)clock;
	if (!p)
		abort();
	number++;
	snprintf(p->url, sizeof(p->url), "%s?clock=client&name=app&schema=Case%%20%d%%20%%22%d%%22",
		 way(), (int)getpid(), number);
	snprintf(p->missing, sizeof(p->missing), "%s_missing", server());
	snprintf(p->schema, sizeof(p->schema), "Case %d \"\"%d\"\"", (int)getpid(), number);
	p->conn = connect_to(p);
	return p;
}

static void destroy(void *place)
{
	struct place *p = place;
	char sql[128];

	/* A case that failed may have left a transaction open: what it locked stays. */
	run(p->conn, "SET lock_timeout = '2s'");
	snprintf(sql, sizeof(sql), "DROP SCHEMA IF EXISTS \"%s\" CASCADE", p->schema);
	PQclear(PQexec(p->conn, sql));
	PQfinish(p->conn);
	free(p);
}

static const char *url(void *place)
{
	return ((struct place *)place)->url;
}

static const char *missing_url(void *place)
{
	return ((struct place *)place)->missing;
}

static void fake_schema(void *place, int version)
{
	struct place *p = place;
	char sql[128];

	snprintf(sql, sizeof(sql),
		 "UPDATE outbox_meta SET value = '%d' WHERE name IN ('schema', 'min_reader')",
		 version);
	run(p->conn, sql);
}

static void *begin(void *place)
{
	PGconn *conn = connect_to(place);

	run(conn, "BEGIN");
	return conn;
}

static int publish(void *tx, const struct outbox_message *message, int64_t *ret_seq,
		   struct outbox_error *err)
{
	struct outbox_published published;
	int r;

	r = outbox_publish_pg_batch(tx, message, 1, 0, &published, err);
	if (r == OUTBOX_OK && ret_seq)
		*ret_seq = published.seq;
	return r;
}

static int cancel(void *tx, const char *id, bool *ret_done, struct outbox_error *err)
{
	return outbox_cancel_pg(tx, id, "in a transaction", ret_done, err);
}

static int accept(void *tx, const char *consumer, const char *id, bool *ret_first,
		  struct outbox_error *err)
{
	return outbox_inbox_accept_pg(tx, consumer, id, ret_first, err);
}

static void received(void *place, const char *consumer, const char *id, outbox_time at)
{
	struct place *p = place;
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO outbox_inbox (consumer, id, received_at) VALUES ('%s', '%s',"
		 " timestamptz 'epoch' + %lld * interval '1 microsecond')",
		 consumer, id, (long long)at);
	run(p->conn, sql);
}

static void savepoint(void *tx)
{
	run(tx, "SAVEPOINT mine");
}

static void rollback_to(void *tx)
{
	run(tx, "ROLLBACK TO mine");
}

static void commit(void *tx)
{
	run(tx, "COMMIT");
	PQfinish(tx);
}

static int try_commit(void *tx, struct outbox_error *err)
{
	PGresult *result = PQexec(tx, "COMMIT");
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	int status = OUTBOX_OK;

	if (code)
		status = outbox_fail(err,
				     strcmp(code, "OB002") == 0 ? OUTBOX_ECONFLICT : OUTBOX_EPROTO,
				     "%s", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	PQclear(result);
	PQfinish(tx);
	return status;
}

static void rollback(void *tx)
{
	run(tx, "ROLLBACK");
	PQfinish(tx);
}

static int64_t publish_at(void *place, outbox_time time)
{
	struct place *p = place;
	char sql[256];
	PGresult *row;
	int64_t seq;

	snprintf(sql, sizeof(sql),
		 "INSERT INTO outbox_message (type, payload, created_at) VALUES ('t', '{}',"
		 " timestamptz 'epoch' + %lld * interval '1 microsecond') RETURNING seq",
		 (long long)time);
	row = PQexec(p->conn, sql);
	if (PQresultStatus(row) != PGRES_TUPLES_OK)
		die(sql, PQerrorMessage(p->conn));
	seq = strtoll(PQgetvalue(row, 0, 0), NULL, 10);
	PQclear(row);
	return seq;
}

const struct store_fixture postgres_store_fixture = {
	.name = "postgres",
	.ops = &postgres_store_ops,
	.has = STORE_MISSING | STORE_LATE_COMMITS,
	.unavailable = unavailable,
	.make = make,
	.destroy = destroy,
	.url = url,
	.missing_url = missing_url,
	.fake_schema = fake_schema,
	.begin = begin,
	.publish = publish,
	.cancel = cancel,
	.accept = accept,
	.received = received,
	.savepoint = savepoint,
	.rollback_to = rollback_to,
	.try_commit = try_commit,
	.commit = commit,
	.rollback = rollback,
	.publish_at = publish_at,
};
