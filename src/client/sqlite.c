/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing on the application's own SQLite connection, inside its own transaction. Whatever is done
 * here commits or rolls back with the application's rows; no statement, setting or transaction of ours
 * stays behind on the connection.
 */
#include <outbox/sqlite.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "client/publish.h"
#include "client/publisher.h"
#include "client/sqlite.h"
#include "store/sqlite/db.h"
#include "store/sqlite/insert.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdio.h>
#include <stdlib.h>

/* Results wait here until all is written: the caller's array is touched on success only. */
struct done {
	struct sqlite_inserted inserted;
	char id[37]; /* made here; empty when the message brought its own */
};

struct publisher {
	struct outbox_publisher base;
	sqlite3 *db;
	struct sqlite_insert insert;
};

struct publishing {
	struct publisher *publisher;
	const struct outbox_message *messages;
	size_t n;
	struct done *done;
};

static void publishing_deinit(struct publishing *p)
{
	free(p->done);
}

static int insert_all(struct publishing *p, struct outbox_error *err)
{
	struct outbox_publisher *publisher = &p->publisher->base;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < p->n && r == OUTBOX_OK; i++) {
		struct outbox_message m = publish_message_at(p->messages, i);
		struct done *done = &p->done[i];

		r = sqlite_insert_message(&p->publisher->insert, &m,
					  publisher_id(publisher, &m, done->id),
					  publisher->clock->wall(publisher->clock), &done->inserted,
					  err);
		if (r != OUTBOX_OK)
			publish_name_message(p->n, i, r, err);
	}
	return r;
}

/* The statements around it. Prepared before it: when memory runs out in the middle, the way back
 * must be there already. */
struct savepoint {
	sqlite3_stmt *open, *keep, *undo, *undo_all;
};

static void savepoint_deinit(struct savepoint *sp)
{
	sqlite3_finalize(sp->open);
	sqlite3_finalize(sp->keep);
	sqlite3_finalize(sp->undo);
	sqlite3_finalize(sp->undo_all);
}

static int savepoint_prepare(sqlite3 *db, struct savepoint *sp)
{
	int rc = sqlite3_prepare_v2(db, "SAVEPOINT outbox_publish", -1, &sp->open, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, "RELEASE outbox_publish", -1, &sp->keep, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, "ROLLBACK TO outbox_publish", -1, &sp->undo, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, "ROLLBACK", -1, &sp->undo_all, NULL);
	return rc;
}

static int run(sqlite3_stmt *statement)
{
	int rc = sqlite3_step(statement);

	sqlite3_reset(statement);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A part of the batch must not stay. Where even the way back fails, the whole transaction goes. */
static void savepoint_undo(sqlite3 *db, const struct savepoint *sp)
{
	if (sqlite3_get_autocommit(db))
		return;
	if (run(sp->undo) != SQLITE_OK || run(sp->keep) != SQLITE_OK)
		run(sp->undo_all);
}

/* All or none, whatever fails: a savepoint nests in any transaction, and opens one where none is. */
static int insert_in_savepoint(struct publishing *p, struct outbox_error *err)
{
	_cleanup_(savepoint_deinit) struct savepoint sp = { 0 };
	sqlite3 *db = p->publisher->db;
	int r, rc;

	rc = savepoint_prepare(db, &sp);
	if (rc == SQLITE_OK)
		rc = run(sp.open);
	if (rc != SQLITE_OK)
		return sqlite_fail(db, rc, "publish", err);
	r = insert_all(p, err);
	if (r == OUTBOX_OK) {
		rc = run(sp.keep);
		r = rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(db, rc, "publish", err);
	}
	if (r != OUTBOX_OK)
		savepoint_undo(db, &sp);
	return r;
}

static void report(const struct publishing *p, struct outbox_published *ret_published)
{
	for (size_t i = 0; i < p->n && ret_published; i++) {
		struct outbox_message m = publish_message_at(p->messages, i);
		struct outbox_published *published = &ret_published[i];

		published->seq = p->done[i].inserted.seq;
		published->repeated = p->done[i].inserted.repeated;
		snprintf(published->id, sizeof(published->id), "%s", m.id ? m.id : p->done[i].id);
	}
}

/* For every call of ours its last error is SQLITE_MISUSE then. That alone is cheap to ask for. */
bool sqlite_is_closed(sqlite3 *db)
{
	return sqlite3_errcode(db) == SQLITE_MISUSE &&
	       sqlite3_exec(db, "", NULL, NULL, NULL) == SQLITE_MISUSE;
}

static int publish(struct publisher *publisher, const struct outbox_message *messages, size_t n,
		   struct outbox_published *ret_published, struct outbox_error *err)
{
	_cleanup_(publishing_deinit) struct publishing p = { .publisher = publisher,
							     .messages = messages,
							     .n = n };
	bool transaction = !sqlite3_get_autocommit(publisher->db);
	int r = transaction ? OUTBOX_OK : publish_check_autocommit(publisher->base.flags, err);

	if (r != OUTBOX_OK)
		return r;
	p.done = calloc(n, sizeof(*p.done));
	if (!p.done)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	/* One INSERT is all or nothing by itself. */
	r = n == 1 ? insert_all(&p, err) : insert_in_savepoint(&p, err);
	if (r == OUTBOX_OK)
		report(&p, ret_published);
	else if (transaction && sqlite3_get_autocommit(publisher->db) && err)
		/* After some failures (disk full, I/O) SQLite rolls back everything by itself. */
		outbox_wrap(err, "your transaction was rolled back");
	return r;
}

/* SQLite's own lock: where threads may share the connection they may share its publisher, too. */
static int publisher_publish(struct outbox_publisher *base, const struct outbox_message *messages,
			     size_t n, struct outbox_published *ret_published,
			     struct outbox_error *err)
{
	struct publisher *publisher = (struct publisher *)base;
	sqlite3_mutex *mutex = sqlite3_db_mutex(publisher->db);
	int r;

	sqlite3_mutex_enter(mutex);
	r = sqlite_is_closed(publisher->db)
		    ? outbox_fail(err, OUTBOX_EINVAL,
				  "publish: the publisher's connection was closed; free the publisher before "
				  "the connection")
		    : publish(publisher, messages, n, ret_published, err);
	sqlite3_mutex_leave(mutex);
	return r;
}

static int publisher_flush(struct outbox_publisher *base, struct outbox_error *err)
{
	(void)base;
	(void)err;
	return OUTBOX_OK;
}

static void publisher_free(struct outbox_publisher *base)
{
	sqlite_insert_deinit(&((struct publisher *)base)->insert);
	free(base);
}

static const struct publisher_ops publisher_ops = {
	.publish = publisher_publish,
	.flush = publisher_flush,
	.free = publisher_free,
};

int outbox_publisher_new_sqlite(struct outbox_publisher **ret_publisher, sqlite3 *db,
				unsigned flags, struct outbox_error *err)
{
	struct publisher *publisher;
	int r = publish_check(db, NULL, 0, flags, OUTBOX_ALLOW_AUTOCOMMIT, err);

	if (r != OUTBOX_OK)
		return r;
	publisher = calloc(1, sizeof(*publisher));
	if (!publisher)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	publisher_init(&publisher->base, &publisher_ops, flags);
	publisher->db = db;
	r = sqlite_insert_init(&publisher->insert, db, err);
	if (r == OUTBOX_OK)
		*ret_publisher = &publisher->base;
	else
		publisher_free(&publisher->base);
	return r;
}

int outbox_publish_sqlite_batch(sqlite3 *db, const struct outbox_message *messages, size_t n,
				unsigned flags, struct outbox_published *ret_published,
				struct outbox_error *err)
{
	struct publisher publisher = { .db = db };
	int r = publish_check(db, messages, n, flags, OUTBOX_ALLOW_AUTOCOMMIT, err);

	if (r == OUTBOX_OK)
		r = publish_validate(messages, n, err);
	if (r == OUTBOX_OK && sqlite3_get_autocommit(db))
		r = publish_check_autocommit(flags, err);
	if (r != OUTBOX_OK || n == 0)
		return r;
	publisher_init(&publisher.base, &publisher_ops, flags);
	/* Prepared before the savepoint: preparing reads the schema, and if that fails, all prepared statements
	 * become invalid. */
	r = sqlite_insert_init(&publisher.insert, db, err);
	if (r == OUTBOX_OK)
		r = publish(&publisher, messages, n, ret_published, err);
	sqlite_insert_deinit(&publisher.insert);
	return r;
}

int outbox_publish_sqlite(sqlite3 *db, const struct outbox_message *message, struct outbox_error *err)
{
	return outbox_publish_sqlite_batch(db, message, 1, 0, NULL, err);
}

/* All of it or nothing, in a savepoint: what is in the way is found before the first change, but a disk may be full. */
static int cancel_in_savepoint(struct sqlite_store *s, const struct outbox_cancel *cancel,
			       bool *ret_done, struct outbox_error *err)
{
	_cleanup_(savepoint_deinit) struct savepoint sp = { 0 };
	int r, rc = savepoint_prepare(s->db, &sp);

	if (rc == SQLITE_OK)
		rc = run(sp.open);
	if (rc != SQLITE_OK)
		return sqlite_fail(s->db, rc, "cancel", err);
	r = sqlite_cancel_inside(s, cancel, ret_done, err);
	if (r == OUTBOX_OK) {
		rc = run(sp.keep);
		r = rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(s->db, rc, "cancel", err);
	}
	if (r != OUTBOX_OK)
		savepoint_undo(s->db, &sp);
	return r;
}

int outbox_cancel_sqlite(sqlite3 *db, const char *id, const char *reason, bool *ret_done,
			 struct outbox_error *err)
{
	const struct outbox_cancel cancel = { .struct_size = sizeof(cancel),
					      .id = id,
					      .actor = "application",
					      .reason = reason ? reason : "cancelled" };
	_cleanup_(sqlite_give_back) struct sqlite_store s = { 0 };
	struct random_state random;
	bool done = false;
	int r = cancel_check(db, id, err);

	if (r == OUTBOX_OK && sqlite3_get_autocommit(db))
		r = cancel_no_transaction(err);
	if (r != OUTBOX_OK)
		return r;
	random_init(&random, random_system_seed());
	r = sqlite_borrow(&s, db, outbox_clock_system(), &random.base, err);
	if (r == OUTBOX_OK)
		r = cancel_in_savepoint(&s, &cancel, &done, err);
	if (r == OUTBOX_OK && ret_done)
		*ret_done = done;
	else if (r != OUTBOX_OK && sqlite3_get_autocommit(db) && err)
		outbox_wrap(err, "your transaction was rolled back");
	return r;
}

static void finalizep(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

static int accept_inside(sqlite3 *db, const char *consumer, const char *id, bool *ret_first,
			 struct outbox_error *err)
{
	_cleanup_(finalizep) sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db,
				    "INSERT INTO outbox_inbox (consumer, id) VALUES (?1, ?2)"
				    " ON CONFLICT DO NOTHING",
				    -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite_bind(q, ARGS(ARG_TEXT(consumer), ARG_TEXT(id)));
	if (rc == SQLITE_OK)
		rc = run(q);
	if (rc != SQLITE_OK)
		return sqlite_fail(db, rc, "accept", err);
	*ret_first = sqlite3_changes(db) > 0;
	return OUTBOX_OK;
}

int outbox_inbox_accept_sqlite(sqlite3 *db, const char *consumer, const char *id, bool *ret_first,
			       struct outbox_error *err)
{
	int r = inbox_check(db, consumer, id, ret_first, err);

	if (r == OUTBOX_OK && sqlite3_get_autocommit(db))
		r = inbox_no_transaction(err);
	if (r != OUTBOX_OK)
		return r;
	r = accept_inside(db, consumer, id, ret_first, err);
	if (r != OUTBOX_OK && sqlite3_get_autocommit(db) && err)
		outbox_wrap(err, "your transaction was rolled back");
	return r;
}
