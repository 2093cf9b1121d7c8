/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing to PostgreSQL from C: one order and its message in one transaction, on the connection that
 * the application already has. docs/stores/postgres.md quotes it.
 *
 *   outbox init --store postgres:///shop
 *   cc publish_pg.c $(pkg-config --cflags --libs outbox libpq) && ./a.out dbname=shop
 */

#include <outbox/outbox.h>
#include <outbox/postgres.h>

#include <stdio.h>
#include <string.h>

static int run(PGconn *conn, const char *sql, struct outbox_error *err)
{
	PGresult *result = PQexec(conn, sql);
	int status = OUTBOX_OK;

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		status = outbox_fail(err, OUTBOX_ECONN, "%s", PQerrorMessage(conn));
	PQclear(result);
	return status;
}

static int publish(PGconn *conn, const char *json, struct outbox_error *err)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	int status;

	message.type = "order.placed";
	message.key = "44";
	message.data = json;
	message.size = strlen(json);

	status = outbox_publish_pg(conn, &message, err);
	return status;
}

/* BEGIN, your rows, the message, COMMIT: both or neither. */
static int place_order(PGconn *conn, struct outbox_error *err)
{
	int status = run(conn, "BEGIN", err);

	if (status == OUTBOX_OK)
		status = run(conn, "INSERT INTO orders (id, total) VALUES (44, 7.25)", err);
	if (status == OUTBOX_OK)
		status = publish(conn, "{\"id\":44,\"total\":7.25}", err);
	if (status == OUTBOX_OK)
		return run(conn, "COMMIT", err);
	PQclear(PQexec(conn, "ROLLBACK"));
	return status;
}

int main(int argc, char **argv)
{
	PGconn *conn = PQconnectdb(argc > 1 ? argv[1] : "");
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int status;

	if (PQstatus(conn) != CONNECTION_OK)
		status = outbox_fail(&err, OUTBOX_ECONN, "%s", PQerrorMessage(conn));
	else
		status = place_order(conn, &err);
	if (status != OUTBOX_OK)
		fprintf(stderr, "publish_pg: %s\n", err.message);
	PQfinish(conn);
	return status == OUTBOX_OK ? 0 : 1;
}
