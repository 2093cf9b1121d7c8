/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing on the application's connection: its row and our messages, or neither. */

#include "cases.h"
#include "drive.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"

#include <outbox/sqlite.h>

#include <string.h>

static const struct outbox_header headers[] = { { "tenant", "t-1" }, { "note", "\"quoted\" \\" } };

static const struct outbox_message messages[] = {
	{ .type = "order.placed",
	  .id = "p-1",
	  .key = "k",
	  .data = "{}",
	  .size = 2,
	  .headers = headers,
	  .n_headers = 2,
	  .event_time = WORLD_START },
	{ .type = "order.paid",
	  .id = "p-2",
	  .key = "k",
	  .data = "\x00\x01",
	  .size = 2,
	  .content_type = "a/b",
	  .subject = "s",
	  .event_time = WORLD_START },
	{ .type = "order.placed",
	  .id = "p-1",
	  .key = "k",
	  .data = "{}",
	  .size = 2,
	  .event_time = WORLD_START },
};

static void prepare_application(struct world *w)
{
	sqlite3 *db;

	prepare_schema(w);
	db = world_connect(w);
	sqlite3_exec(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void connect_application(struct world *w)
{
	w->app = world_connect(w);
	sqlite3_busy_timeout(w->app, 1000);
}

/* The connection that a repeat needs may be gone. */
static void need_connection(struct world *w)
{
	if (!w->app)
		connect_application(w);
}

static int sql(struct world *w, const char *text, struct outbox_error *err)
{
	int rc = sqlite3_exec(w->app, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(w->app, rc, "application", err);
}

static int count(struct world *w, const char *text)
{
	sqlite3_stmt *q;
	int n = -1;

	if (sqlite3_prepare_v2(w->app, text, -1, &q, NULL) == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return n;
}

/* A failed publish leaves the transaction as it was, or it is gone and the error says so. */
static void check_transaction(struct world *w, const struct outbox_error *err)
{
	if (sqlite3_get_autocommit(w->app)) {
		if (!strstr(err->message, "your transaction was rolled back"))
			torture_wrong("the transaction is gone without a word: %s", err->message);
		return;
	}
	if (count(w, "SELECT count(*) FROM orders") != 1)
		torture_wrong("the application's own row is gone");
	if (count(w, "SELECT count(*) FROM outbox_message") != 0)
		torture_wrong("a part of the messages stayed in the transaction");
}

static int publish(struct world *w, size_t n, struct outbox_error *err)
{
	struct outbox_published published[3];
	int r;

	need_connection(w);
	r = sql(w, "BEGIN IMMEDIATE; INSERT INTO orders VALUES (42)", err);
	if (r == OUTBOX_OK) {
		r = outbox_publish_sqlite_batch(w->app, messages, n, 0, published, err);
		if (r != OUTBOX_OK) {
			fault_off();
			check_transaction(w, err);
		}
	}
	if (r == OUTBOX_OK)
		r = sql(w, "COMMIT", err);
	if (r != OUTBOX_OK) {
		fault_off();
		if (!sqlite3_get_autocommit(w->app))
			sqlite3_exec(w->app, "ROLLBACK", NULL, NULL, NULL);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		world_say(w, "%lld %d %s\n", (long long)published[i].seq, published[i].repeated,
			  published[i].id);
	return OUTBOX_OK;
}

static int call_publish_one(struct world *w, struct outbox_error *err)
{
	return publish(w, 1, err);
}

static int call_publish_batch(struct world *w, struct outbox_error *err)
{
	return publish(w, 3, err);
}

static int call_publish_alone(struct world *w, struct outbox_error *err)
{
	int r;

	need_connection(w);
	r = outbox_publish_sqlite_batch(w->app, messages, 3, OUTBOX_ALLOW_AUTOCOMMIT, NULL, err);
	if (r != OUTBOX_OK && !sqlite3_get_autocommit(w->app))
		torture_wrong("a transaction was left open: %s", err->message);
	return r;
}

const struct store_case client_cases[] = {
	{ "publish, one", prepare_application, connect_application, call_publish_one, CASE_CLOSED,
	  20, 10 },
	{ "publish, several", prepare_application, connect_application, call_publish_batch,
	  CASE_CLOSED, 20, 10 },
	{ "publish, no transaction", prepare_application, connect_application, call_publish_alone,
	  CASE_CLOSED, 20, 10 },
	{ NULL },
};
