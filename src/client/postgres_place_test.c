/* SPDX-License-Identifier: Apache-2.0 */
#include "client/postgres_place_test.h"

#include <outbox/store.h>

#include "base/random.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct outbox_store_ops postgres_store_ops;

static const char *server(void)
{
	return getenv("OUTBOX_TEST_POSTGRES");
}

static void ignore(void *context, const char *text)
{
	(void)context;
	(void)text;
}

PGconn *place_connect(const struct place *p)
{
	PGconn *conn = PQconnectdb(server());
	char sql[80];

	if (PQstatus(conn) != CONNECTION_OK)
		fail_msg("%s: %s", server(), PQerrorMessage(conn));
	PQsetNoticeProcessor(conn, ignore, NULL);
	snprintf(sql, sizeof(sql), "SET search_path = public, %s", p->schema);
	place_run(conn, sql);
	return conn;
}

void place_run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
}

int64_t place_number(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	int64_t number;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(conn));
	number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return number;
}

int64_t place_messages(struct place *p)
{
	return place_number(p->other, "SELECT count(*) FROM outbox_message");
}

void place_wait_for_waiter(PGconn *conn)
{
	for (int i = 0; i < 6000; i++) {
		if (place_number(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted"))
			return;
		usleep(10000);
	}
	fail_msg("nobody waits for a lock");
}

struct outbox_message place_message(const char *id)
{
	return (struct outbox_message){ .type = "order.placed", .id = id, .data = "{}", .size = 2 };
}

int place_setup(void **state)
{
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .clock = outbox_clock_system() };
	struct place *p = calloc(1, sizeof(*p));
	struct random_state random;
	struct outbox_store *store;
	static int number;
	char url[256];

	if (!server()) {
		print_message("run me under tests/support/with-postgres\n");
		exit(77);
	}
	assert_non_null(p);
	random_init(&random, random_system_seed());
	snprintf(p->schema, sizeof(p->schema), "client_%d_%d", (int)getpid(), ++number);
	snprintf(url, sizeof(url), "%s?schema=%s", server(), p->schema);
	config.url = url;
	config.random = &random.base;
	if (store_open(&postgres_store_ops, &config, true, &store, &p->err) != OUTBOX_OK ||
	    store_init(store, NULL, &p->err) != OUTBOX_OK)
		fail_msg("%s: %s", url, p->err.message);
	store_close(store);
	p->conn = place_connect(p);
	p->other = place_connect(p);
	*state = p;
	return 0;
}

int place_teardown(void **state)
{
	struct place *p = *state;
	char sql[80];

	PQfinish(p->conn);
	snprintf(sql, sizeof(sql), "DROP SCHEMA %s CASCADE", p->schema);
	place_run(p->other, sql);
	PQfinish(p->other);
	free(p);
	return 0;
}
