/* SPDX-License-Identifier: Apache-2.0 */

#include "orders.h"

#include <outbox/sqlite.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(sqlite3 *db, const char *what)
{
	fprintf(stderr, "orders: %s: %s\n", what, sqlite3_errmsg(db));
	exit(1);
}

void shop_exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(db, sql);
}

sqlite3 *shop_open(const struct place *place)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(place->database, &db) != SQLITE_OK)
		die(db, place->database);
	sqlite3_busy_timeout(db, 5000);
	shop_exec(db, "CREATE TABLE IF NOT EXISTS orders ("
		      "id INTEGER PRIMARY KEY, customer TEXT NOT NULL, total INTEGER NOT NULL)");
	return db;
}

static bool publish_placed(sqlite3 *db, int order, const char *customer, int total)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char json[128];

	snprintf(json, sizeof(json), "{\"order\":%d,\"customer\":\"%s\",\"total\":%d}", order,
		 customer, total);
	message.type = "order.placed";
	message.key = customer;
	message.data = json;
	message.size = strlen(json);
	if (outbox_publish_sqlite(db, &message, &err) == OUTBOX_OK)
		return true;
	fprintf(stderr, "orders: publish order %d: %s\n", order, err.message);
	return false;
}

bool shop_place(sqlite3 *db, int order)
{
	int total = order == POISON_ORDER ? -1 : 10 + order % 90;
	char customer[32], sql[160];

	snprintf(customer, sizeof(customer), "customer-%d", order % CUSTOMERS * 7 % CUSTOMERS);
	snprintf(sql, sizeof(sql), "INSERT INTO orders (id, customer, total) VALUES (%d, '%s', %d)",
		 order, customer, total);
	shop_exec(db, "BEGIN IMMEDIATE");
	shop_exec(db, sql);
	if (!publish_placed(db, order, customer, total)) {
		shop_exec(db, "ROLLBACK");
		return false;
	}
	/* The card is declined after the message was written: both rows must go. */
	shop_exec(db, order % (ORDERS / ROLLED_BACK) == 0 ? "ROLLBACK" : "COMMIT");
	return true;
}

int64_t shop_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t number = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		die(db, sql);
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

void shop_text(sqlite3 *db, const char *sql, char *ret_text, size_t size)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		die(db, sql);
	ret_text[0] = '\0';
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		snprintf(ret_text, size, "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
}
