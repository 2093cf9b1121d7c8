/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing on the application's own libpq connection, inside its own transaction: one statement, one
 * round trip. The outbox is found through the connection's search_path; nothing is left behind in the session.
 */
#include <outbox/postgres.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "client/postgres_watch.h"
#include "client/publish.h"
#include "client/publisher.h"
#include "store/postgres/db.h"
#include "store/postgres/insert.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS (OUTBOX_ALLOW_AUTOCOMMIT | OUTBOX_LOCK_KEYS)

/* What may wait in a pipeline: their answers fit into the buffers of any socket, so that the server reads on. */
#define QUEUE_MAX 100

struct publisher {
	struct outbox_publisher base;
	struct pg_watch watch; /* its connection */
	char name[40];         /* of its statement */
	int backend;           /* the server's process that has it; 0: none */
	size_t queued;         /* sent in a pipeline of ours, and not answered yet */
};

struct publishing {
	struct publisher *publisher;
	const struct outbox_message *messages;
	size_t n;
	char (*ids)[37]; /* made here; empty where the message brought its own */
	struct pg_insert insert;
};

static void publishing_deinit(struct publishing *p)
{
	pg_insert_deinit(&p->insert);
	free(p->ids);
}

/* what: publish or cancel, for the error. */
static int gone(PGconn *conn, const char *what, struct outbox_error *err)
{
	const char *text = PQerrorMessage(conn);

	return outbox_fail(err, OUTBOX_ECONN, "%s: the connection is gone: %.*s", what,
			   (int)strcspn(text, "\n"), text);
}

/* Is it in a state in which a statement can be sent at all, and in a transaction? */
static int check_connection(PGconn *conn, const char *what, unsigned flags, struct outbox_error *err)
{
	if (PQstatus(conn) != CONNECTION_OK)
		return gone(conn, what, err);
	if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: the connection is in pipeline mode; leave it first", what);
	switch (PQtransactionStatus(conn)) {
	case PQTRANS_IDLE:
		return publish_check_autocommit(flags, err);
	case PQTRANS_INTRANS:
		return OUTBOX_OK;
	case PQTRANS_INERROR:
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: an earlier statement of this transaction failed; roll it back",
				   what);
	case PQTRANS_ACTIVE:
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: a statement is still running on this connection; read its "
				   "results first",
				   what);
	default:
		return gone(conn, what, err);
	}
}

/* Whatever we send is UTF-8; the server would take it for something else. */
static int check_encoding(PGconn *conn, const char *what, struct outbox_error *err)
{
	const char *name = PQparameterStatus(conn, "client_encoding");

	if (!name || strcmp(name, "UTF8") == 0 || strcmp(name, "SQL_ASCII") == 0)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "%s: the connection's client_encoding is %s, and messages are UTF-8; "
			   "call PQsetClientEncoding(conn, \"UTF8\")",
			   what, name);
}

static int marshal(struct publishing *p, struct outbox_error *err)
{
	struct outbox_publisher *publisher = &p->publisher->base;
	int r;

	p->ids = calloc(p->n, sizeof(*p->ids));
	if (!p->ids)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = pg_insert_init(&p->insert, p->n, err);
	for (size_t i = 0; i < p->n && r == OUTBOX_OK; i++) {
		struct outbox_message m = publish_message_at(p->messages, i);

		r = pg_insert_put(&p->insert, i, &m, publisher_id(publisher, &m, p->ids[i]), err);
		if (r != OUTBOX_OK)
			return publish_name_message(p->n, i, r, err);
	}
	/* the time is the database's */
	return r == OUTBOX_OK ? pg_insert_finish(&p->insert, publisher->flags & OUTBOX_LOCK_KEYS,
						 ARG_TIME(0), err)
			      : r;
}

static const char *id_at(const struct publishing *p, size_t i)
{
	struct outbox_message m = publish_message_at(p->messages, i);

	return m.id ? m.id : p->ids[i];
}

/*
 * Which message was refused? "Failing row contains (xid, seq, slot, id, ...", in the server's language, each
 * value cut at 64 bytes. p->n: not known.
 */
static size_t refused_one(const struct publishing *p, const PGresult *result)
{
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	size_t i, commas = 0;

	detail = detail ? strchr(detail, '(') : NULL;
	for (; detail && *detail && commas < 3; detail++)
		commas += *detail == ',';
	if (!detail || *detail != ' ')
		return p->n;
	for (i = 0; i < p->n; i++) {
		const char *id = id_at(p, i);
		size_t length = utf8_cut(id, strlen(id), 60);

		if (strncmp(detail + 1, id, length) == 0 && (id[length] || detail[1 + length] == ','))
			break;
	}
	return i;
}

static int refused(const struct publishing *p, const PGresult *result, struct outbox_error *err)
{
	const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	size_t i = refused_one(p, result);
	int r;

	/* The schema's constraints are named by their remedy. */
	if (constraint && strchr(constraint, ' '))
		text = constraint;
	r = outbox_fail(err, OUTBOX_EINVAL, "the log refuses the message: %.400s", text ? text : "");
	return i < p->n ? publish_name_message(p->n, i, r, err) : r;
}

/* p NULL: it does not publish. */
static int failed(PGconn *conn, const struct publishing *p, const char *what,
		  const PGresult *result, struct outbox_error *err)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text;

	if (!sqlstate)
		return gone(conn, what, err);
	if (p && strncmp(sqlstate, "23", 2) == 0)
		return refused(p, result, err);
	if (pg_status(result) != OUTBOX_ESCHEMA)
		return pg_fail_result(what, result, err);
	text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "no outbox that this program knows in the search_path of this connection "
			   "(%.300s); set search_path, or run: outbox init, or outbox upgrade",
			   text ? text : "");
}

/* Prepared where it is not yet: at first, after PQreset(), and after the application has deallocated everything. */
static int prepare(struct publisher *publisher, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *done = NULL;
	PGconn *conn = publisher->watch.conn;
	static atomic_uint number;

	if (publisher->backend == PQbackendPID(conn))
		return OUTBOX_OK;
	snprintf(publisher->name, sizeof(publisher->name), "outbox_publisher_%u",
		 atomic_fetch_add(&number, 1));
	done = PQprepare(conn, publisher->name, PG_INSERT_SQL(""), 0, NULL);
	if (!done)
		return gone(conn, "publish", err);
	if (PQresultStatus(done) != PGRES_COMMAND_OK)
		return failed(conn, NULL, "publish", done, err);
	publisher->backend = PQbackendPID(conn);
	return OUTBOX_OK;
}

/* p->n is 0 where the messages are not known any more. */
static int publish_failed(const struct publishing *p, const PGresult *result,
			  struct outbox_error *err)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (sqlstate && strcmp(sqlstate, "26000") == 0)
		p->publisher->backend = 0;
	return failed(p->publisher->watch.conn, p, "publish", result, err);
}

static int execute(const struct publishing *p, const struct pg_params *params, PGresult **ret_rows,
		   struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	const struct publisher *publisher = p->publisher;
	PGconn *conn = publisher->watch.conn;

	if (publisher->base.flags & OUTBOX_PREPARE)
		rows = PQexecPrepared(conn, publisher->name, params->count, params->values,
				      params->lengths, params->formats, 1);
	else
		rows = PQexecParams(conn, PG_INSERT_SQL(""), params->count, params->types,
				    params->values, params->lengths, params->formats, 1);
	if (!rows)
		return gone(conn, "publish", err);
	if (PQresultStatus(rows) != PGRES_TUPLES_OK)
		return publish_failed(p, rows, err);
	if ((size_t)PQntuples(rows) != p->n)
		return outbox_fail(err, OUTBOX_EINTERNAL, "publish: %d rows for %zu messages",
				   PQntuples(rows), p->n);
	*ret_rows = rows;
	rows = NULL;
	return OUTBOX_OK;
}

static int enqueue(struct publisher *publisher, const struct pg_params *params,
		   struct outbox_error *err)
{
	PGconn *conn = publisher->watch.conn;
	int sent;

	if (!publisher->queued && !PQenterPipelineMode(conn))
		return gone(conn, "publish", err);
	if (publisher->base.flags & OUTBOX_PREPARE)
		sent = PQsendQueryPrepared(conn, publisher->name, params->count, params->values,
					   params->lengths, params->formats, 1);
	else
		sent = PQsendQueryParams(conn, PG_INSERT_SQL(""), params->count, params->types,
					 params->values, params->lengths, params->formats, 1);
	if (!sent) {
		if (!publisher->queued)
			PQexitPipelineMode(conn);
		return gone(conn, "publish", err);
	}
	publisher->queued++;
	return OUTBOX_OK;
}

/* The answers up to our sync. The first failure is told: what comes after it was not executed. */
static int read_answers(struct publisher *publisher, struct outbox_error *err)
{
	const struct publishing forgotten = { .publisher = publisher };
	PGconn *conn = publisher->watch.conn;
	size_t answered = 0;
	int r = OUTBOX_OK;

	while (answered <= publisher->queued) {
		_cleanup_(pg_clearp) PGresult *answer = PQgetResult(conn);

		if (!answer)
			answered++;
		else if (PQresultStatus(answer) == PGRES_PIPELINE_SYNC)
			return r;
		else if (r == OUTBOX_OK && PQresultStatus(answer) != PGRES_TUPLES_OK) {
			r = publish_failed(&forgotten, answer, err);
			if (err)
				outbox_wrap(err, "message %zu since the last flush", answered);
		}
	}
	return r == OUTBOX_OK ? gone(conn, "publish", err) : r;
}

static int publisher_flush(struct outbox_publisher *base, struct outbox_error *err)
{
	struct publisher *publisher = (struct publisher *)base;
	PGconn *conn = publisher->watch.conn;
	int r;

	if (!publisher->queued)
		return OUTBOX_OK;
	if (!conn || PQpipelineStatus(conn) == PQ_PIPELINE_OFF || !PQpipelineSync(conn)) {
		publisher->queued = 0;
		return outbox_fail(err, OUTBOX_ECONN,
				   "publish: the connection was closed or reset before the messages sent "
				   "were answered; their transaction is gone, begin it again");
	}
	r = read_answers(publisher, err);
	publisher->queued = 0;
	PQexitPipelineMode(conn);
	return r;
}

/* rows NULL: they are not there yet. */
static void report(const struct publishing *p, const PGresult *rows,
		   struct outbox_published *ret_published)
{
	for (size_t i = 0; i < p->n && ret_published; i++) {
		struct outbox_published *published = &ret_published[i];

		published->seq = rows ? pg_int(rows, (int)i, PG_INSERTED_SEQ) : 0;
		published->repeated = rows && pg_bool(rows, (int)i, PG_INSERTED_REPEATED);
		snprintf(published->id, sizeof(published->id), "%s", id_at(p, i));
	}
}

/* Can it take a message now? */
static int check_ready(const struct publisher *publisher, struct outbox_error *err)
{
	PGconn *conn = publisher->watch.conn;
	int r;

	if (!conn)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"publish: the publisher's connection was closed; free the publisher before "
			"the connection");
	if (publisher->queued && PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
		return OUTBOX_OK;
	r = check_connection(conn, "publish", publisher->base.flags, err);
	return r ? r : check_encoding(conn, "publish", err);
}

/* Enough waits, or the pipeline that it waits in is gone: the flush tells. */
static bool must_flush(const struct publisher *publisher)
{
	return publisher->queued >= QUEUE_MAX ||
	       (publisher->queued && PQpipelineStatus(publisher->watch.conn) == PQ_PIPELINE_OFF);
}

static int publisher_publish(struct outbox_publisher *base, const struct outbox_message *messages,
			     size_t n, struct outbox_published *ret_published,
			     struct outbox_error *err)
{
	struct publisher *publisher = (struct publisher *)base;
	_cleanup_(publishing_deinit) struct publishing p = { .publisher = publisher,
							     .messages = messages,
							     .n = n };
	_cleanup_(pg_params_deinit) struct pg_params params = { 0 };
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r = check_ready(publisher, err);

	if (r == OUTBOX_OK && must_flush(publisher))
		r = publisher_flush(base, err);
	if (r == OUTBOX_OK && base->flags & OUTBOX_PREPARE && !publisher->queued)
		r = prepare(publisher, err);
	if (r == OUTBOX_OK)
		r = marshal(&p, err);
	if (r == OUTBOX_OK && !pg_params_init(&params, &p.insert.args))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = base->flags & OUTBOX_PIPELINE ? enqueue(publisher, &params, err)
						  : execute(&p, &params, &rows, err);
	if (r == OUTBOX_OK)
		report(&p, rows, ret_published);
	return r;
}

/* Deallocating must not end a transaction: inside one the statement stays until the connection ends. */
static void publisher_free(struct outbox_publisher *base)
{
	struct publisher *publisher = (struct publisher *)base;
	PGconn *conn = publisher->watch.conn;
	char sql[64];

	(void)!publisher_flush(base, NULL);
	if (conn && PQtransactionStatus(conn) == PQTRANS_IDLE && publisher->backend &&
	    publisher->backend == PQbackendPID(conn)) {
		snprintf(sql, sizeof(sql), "DEALLOCATE %s", publisher->name);
		PQclear(PQexec(conn, sql));
	}
	pg_watch_end(&publisher->watch);
	free(publisher);
}

static const struct publisher_ops publisher_ops = {
	.publish = publisher_publish,
	.flush = publisher_flush,
	.free = publisher_free,
};

int outbox_publisher_new_pg(struct outbox_publisher **ret_publisher, PGconn *conn, unsigned flags,
			    struct outbox_error *err)
{
	struct publisher *publisher;
	int r = publish_check(conn, NULL, 0, flags, KNOWN_FLAGS | OUTBOX_PREPARE | OUTBOX_PIPELINE,
			      err);

	if (r == OUTBOX_OK)
		r = check_connection(conn, "publish", OUTBOX_ALLOW_AUTOCOMMIT, err);
	if (r != OUTBOX_OK)
		return r;
	publisher = calloc(1, sizeof(*publisher));
	if (!publisher)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	publisher_init(&publisher->base, &publisher_ops, flags);
	publisher->watch.conn = conn;
	r = pg_watch_begin(&publisher->watch, err);
	if (r == OUTBOX_OK && flags & OUTBOX_PREPARE)
		r = prepare(publisher, err);
	if (r == OUTBOX_OK)
		*ret_publisher = &publisher->base;
	else
		publisher_free(&publisher->base);
	return r;
}

int outbox_publish_pg_batch(PGconn *conn, const struct outbox_message *messages, size_t n,
			    unsigned flags, struct outbox_published *ret_published,
			    struct outbox_error *err)
{
	struct publisher publisher = { .watch.conn = conn };
	int r = publish_check(conn, messages, n, flags, KNOWN_FLAGS, err);

	if (r != OUTBOX_OK)
		return r;
	publisher_init(&publisher.base, &publisher_ops, flags);
	r = publish_validate(messages, n, err);
	if (r == OUTBOX_OK)
		r = check_ready(&publisher, err);
	return r || n == 0 ? r : publisher_publish(&publisher.base, messages, n, ret_published, err);
}

int outbox_publish_pg(PGconn *conn, const struct outbox_message *message, struct outbox_error *err)
{
	return outbox_publish_pg_batch(conn, message, 1, 0, NULL, err);
}

/* A function that answers yes or no, inside the transaction that is open. */
static int ask(PGconn *conn, const char *what, const char *sql, const struct pg_args *args,
	       PGresult **ret_row, struct outbox_error *err)
{
	_cleanup_(pg_params_deinit) struct pg_params params = { 0 };
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r = check_connection(conn, what, 0, err);

	if (r == OUTBOX_OK)
		r = check_encoding(conn, what, err);
	if (r == OUTBOX_OK && !pg_params_init(&params, args))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r != OUTBOX_OK)
		return r;
	row = PQexecParams(conn, sql, params.count, params.types, params.values, params.lengths,
			   params.formats, 1);
	if (!row)
		return gone(conn, what, err);
	*ret_row = row;
	row = NULL;
	return OUTBOX_OK;
}

int outbox_cancel_pg(PGconn *conn, const char *id, const char *reason, bool *ret_done,
		     struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	const char *what = "cancel";
	int r = cancel_check(conn, id, err);

	if (r == OUTBOX_OK && PQtransactionStatus(conn) == PQTRANS_IDLE)
		r = cancel_no_transaction(err);
	if (r == OUTBOX_OK)
		r = ask(conn, what, "SELECT outbox_cancel($1, $2)",
			ARGS(ARG_TEXT(id), ARG_TEXT(reason)), &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQresultStatus(row) != PGRES_TUPLES_OK)
		return failed(conn, NULL, what, row, err);
	if (ret_done)
		*ret_done = pg_bool(row, 0, 0);
	return OUTBOX_OK;
}

static int no_inbox(const PGresult *result, struct outbox_error *err)
{
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	return outbox_fail(err, OUTBOX_ESCHEMA,
			   "no inbox in the search_path of this connection (%.300s); set search_path, "
			   "or run: outbox init --inbox",
			   text ? text : "");
}

int outbox_inbox_accept_pg(PGconn *conn, const char *consumer, const char *id, bool *ret_first,
			   struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	const char *what = "accept";
	int r = inbox_check(conn, consumer, id, ret_first, err);

	if (r == OUTBOX_OK && PQtransactionStatus(conn) == PQTRANS_IDLE)
		r = inbox_no_transaction(err);
	if (r == OUTBOX_OK)
		r = ask(conn, what, "SELECT outbox_inbox_accept($1, $2)",
			ARGS(ARG_TEXT(consumer), ARG_TEXT(id)), &row, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQresultStatus(row) != PGRES_TUPLES_OK)
		return pg_status(row) == OUTBOX_ESCHEMA ? no_inbox(row, err)
							: failed(conn, NULL, what, row, err);
	*ret_first = pg_bool(row, 0, 0);
	return OUTBOX_OK;
}
