/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The smallest complete program: one order and its message in one transaction, and a relay in the same
 * process that passes the message to a handler. README.md quotes it.
 *
 *   outbox init --store sqlite:app.db
 *   cc minimal.c $(pkg-config --cflags --libs outbox sqlite3) && ./a.out app.db
 */

#include <outbox/outbox.h>
#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

static int on_placed(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)context;
	(void)err;
	printf("%s, key %s: %.*s\n", item->message->type, item->message->key,
	       (int)item->message->size, (const char *)item->message->data);
	return 0; /* delivered; anything else is a failed try */
}

/* BEGIN, your rows, the message, COMMIT: both or neither. */
static int place_order(sqlite3 *db, struct outbox_error *err)
{
	const char *json = "{\"id\":42,\"total\":99.5}";
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	int status;

	message.type = "order.placed";
	message.key = "42";
	message.data = json;
	message.size = strlen(json);

	/* SQLite allows one writer at a time: wait while a relay or another process writes. */
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_exec(db,
			 "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL);"
			 "BEGIN IMMEDIATE;"
			 "INSERT OR REPLACE INTO orders (id, total) VALUES (42, 99.5)",
			 NULL, NULL, NULL) != SQLITE_OK)
		return outbox_fail(err, OUTBOX_ECONN, "%s", sqlite3_errmsg(db));
	status = outbox_publish_sqlite(db, &message, err);
	if (status == OUTBOX_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		status = outbox_fail(err, OUTBOX_ECONN, "commit: %s", sqlite3_errmsg(db));
	if (status != OUTBOX_OK) /* also after a COMMIT that failed: the transaction may be open */
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

static int relay(const char *store, struct outbox_error *err)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_registry *registry = NULL;
	struct outbox_relay *relay = NULL;
	int status;

	target.name = "events";
	target.to = "handler:";
	config.store = store;
	config.targets = &target;
	config.n_targets = 1;

	status = outbox_registry_new(&registry, err);
	if (status == OUTBOX_OK)
		status = outbox_registry_handle(registry, "order.placed", on_placed, NULL, err);
	config.registry = registry;
	if (status == OUTBOX_OK)
		status = outbox_relay_new(&relay, &config, err);
	/* A service calls outbox_relay_start() here, and outbox_relay_stop() when it ends. */
	if (status == OUTBOX_OK)
		status = outbox_relay_run_until_idle(relay, NULL, err);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	return status;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "app.db";
	struct outbox_error err = OUTBOX_ERROR_INIT;
	sqlite3 *db = NULL;
	char store[512];
	int status;

	snprintf(store, sizeof(store), "sqlite:%s", path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		status = outbox_fail(&err, OUTBOX_ECONN, "%s: %s", path, sqlite3_errmsg(db));
	else
		status = place_order(db, &err);
	sqlite3_close(db);
	if (status == OUTBOX_OK)
		status = relay(store, &err);
	if (status != OUTBOX_OK)
		fprintf(stderr, "minimal: %s\n", err.message);
	return status == OUTBOX_OK ? 0 : 1;
}
