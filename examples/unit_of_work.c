/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A unit of work: orders record what happens to them, and the transaction publishes it all just before its COMMIT.
 * docs/publishing.md quotes it.
 *
 *   outbox init --store sqlite:unit.db
 *   cc unit_of_work.c $(pkg-config --cflags --libs outbox sqlite3) && ./a.out unit.db
 */

#include <outbox/outbox.h>
#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

/* An aggregate, which knows nothing of databases and messages. */
struct order {
	const char *id;
	const char *happened[4]; /* since it was loaded */
	int count;
};

static void happen(struct order *order, const char *what)
{
	order->happened[order->count++] = what;
}

static int harvest(struct outbox_events *events, void *aggregate, struct outbox_error *err)
{
	struct order *order = aggregate;
	int status = OUTBOX_OK;

	for (int i = 0; i < order->count && status == OUTBOX_OK; i++) {
		struct outbox_message event = OUTBOX_MESSAGE_INIT;

		event.type = order->happened[i];
		event.key = order->id;
		event.data = "{}";
		event.size = 2;
		status = outbox_events_add(events, &event, err);
	}
	return status;
}

static int run(sqlite3 *db, const char *sql, struct outbox_error *err)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONN, "%s: %s", sql, sqlite3_errmsg(db));
}

/* BEGIN, the work, the events of all that took part, COMMIT. */
static int pay(sqlite3 *db, struct outbox_events *events, struct order *order, struct order *gift,
	       struct outbox_error *err)
{
	struct outbox_message request = OUTBOX_MESSAGE_INIT, context = OUTBOX_MESSAGE_INIT;
	int status;

	request.id = "payment-4711";
	status = outbox_message_caused_by(&context, &request, err);
	if (status == OUTBOX_OK)
		status = run(db, "BEGIN IMMEDIATE", err);
	if (status == OUTBOX_OK)
		status = outbox_events_begin(events, &context, err);

	if (status == OUTBOX_OK)
		status = run(db, "UPDATE orders SET paid = 1 WHERE id = '42'", err);
	happen(order, "order.paid");
	happen(gift, "gift.added");
	happen(order, "order.closed");

	if (status == OUTBOX_OK)
		status = outbox_events_harvest(events, order, harvest, err);
	if (status == OUTBOX_OK)
		status = outbox_events_harvest(events, gift, harvest, err);
	if (status == OUTBOX_OK)
		status = outbox_events_flush(events, err);
	if (status == OUTBOX_OK)
		status = run(db, "COMMIT", err);
	if (status != OUTBOX_OK) /* drops the events, too */
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

/* Whoever forgets the flush is told by the COMMIT. */
static void forget(sqlite3 *db, struct outbox_events *events, struct order *order)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int status = run(db, "BEGIN IMMEDIATE", &err);

	if (status == OUTBOX_OK)
		status = outbox_events_begin(events, NULL, &err);
	if (status == OUTBOX_OK)
		status = outbox_events_harvest(events, order, harvest, &err);
	if (status == OUTBOX_OK)
		status = run(db, "COMMIT", &err);
	printf("%s\n", status == OUTBOX_OK ? "nobody noticed" : err.message);
}

int main(int argc, char **argv)
{
	struct order order = { .id = "42" }, gift = { .id = "42-gift" };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_events *events = NULL;
	sqlite3 *db = NULL;
	int status = OUTBOX_OK;

	if (sqlite3_open(argc > 1 ? argv[1] : "app.db", &db) != SQLITE_OK)
		status = outbox_fail(&err, OUTBOX_ECONN, "%s", sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 5000);
	if (status == OUTBOX_OK)
		status = run(db,
			     "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, paid INTEGER)",
			     &err);
	if (status == OUTBOX_OK)
		status = outbox_events_new_sqlite(&events, db, NULL, &err);
	if (status == OUTBOX_OK)
		status = pay(db, events, &order, &gift, &err);
	if (status == OUTBOX_OK)
		forget(db, events, &order);
	if (status == OUTBOX_OK)
		status = outbox_events_free(events, &err);
	sqlite3_close(db);
	if (status != OUTBOX_OK)
		fprintf(stderr, "unit_of_work: %s\n", err.message);
	return status == OUTBOX_OK ? 0 : 1;
}
