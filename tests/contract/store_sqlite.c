/* SPDX-License-Identifier: Apache-2.0 */
#include <outbox/sqlite.h>

#include "store_contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct outbox_store_ops sqlite_store_ops;

struct place {
	char folder[64], file[96], url[128], missing[128];
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	abort();
}

static void run(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		die(sql, message);
}

static sqlite3 *connect_to(const struct place *p)
{
	sqlite3 *db;

	if (sqlite3_open(p->file, &db) != SQLITE_OK)
		die(p->file, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 10000);
	return db;
}

static void *make(struct outbox_clock *clock)
{
	struct place *p = calloc(1, sizeof(*p));

	(void)clock;
	if (!p)
		abort();
	snprintf(p->folder, sizeof(p->folder), "/tmp/store-contract-XXXXXX");
	if (!mkdtemp(p->folder))
		die(p->folder, "cannot be made");
	snprintf(p->file, sizeof(p->file), "%s/app.db", p->folder);
	snprintf(p->url, sizeof(p->url), "sqlite:%s", p->file);
	snprintf(p->missing, sizeof(p->missing), "sqlite:%s/other.db", p->folder);
	return p;
}

static void destroy(void *place)
{
	static const char *const names[] = { "app.db", "app.db-wal", "app.db-shm", "other.db",
					     "app.db.lock" };
	struct place *p = place;
	char file[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(file, sizeof(file), "%s/%s", p->folder, names[i]);
		unlink(file);
	}
	if (rmdir(p->folder))
		fprintf(stderr, "%s is not empty\n", p->folder);
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
	sqlite3 *db = connect_to(place);
	char sql[128];

	snprintf(sql, sizeof(sql),
		 "UPDATE outbox_meta SET value = %d WHERE name IN ('schema', 'min_reader')",
		 version);
	run(db, sql);
	sqlite3_close(db);
}

static void *begin(void *place)
{
	sqlite3 *db = connect_to(place);

	run(db, "BEGIN IMMEDIATE");
	return db;
}

static int publish(void *tx, const struct outbox_message *message, int64_t *ret_seq,
		   struct outbox_error *err)
{
	struct outbox_published published;
	int status = outbox_publish_sqlite_batch(tx, message, 1, 0, &published, err);

	if (status == OUTBOX_OK && ret_seq)
		*ret_seq = published.seq;
	return status;
}

static int cancel(void *tx, const char *id, bool *ret_done, struct outbox_error *err)
{
	return outbox_cancel_sqlite(tx, id, "in a transaction", ret_done, err);
}

static int accept(void *tx, const char *consumer, const char *id, bool *ret_first,
		  struct outbox_error *err)
{
	return outbox_inbox_accept_sqlite(tx, consumer, id, ret_first, err);
}

static void received(void *place, const char *consumer, const char *id, outbox_time at)
{
	sqlite3 *db = connect_to(place);
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO outbox_inbox (consumer, id, received_at) VALUES ('%s', '%s', %lld)",
		 consumer, id, (long long)at);
	run(db, sql);
	sqlite3_close(db);
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
	sqlite3_close(tx);
}

static void rollback(void *tx)
{
	run(tx, "ROLLBACK");
	sqlite3_close(tx);
}

const struct store_fixture sqlite_store_fixture = {
	.name = "sqlite",
	.ops = &sqlite_store_ops,
	.has = STORE_MISSING,
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
	.commit = commit,
	.rollback = rollback,
};
