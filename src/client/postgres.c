/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing on the application's own libpq connection, inside its own transaction: one statement, one
 * round trip. The outbox is found through the connection's search_path; nothing is left behind in the session.
 */
#include <outbox/postgres.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "client/publish.h"
#include "store/postgres/db.h"
#include "store/postgres/insert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS (OUTBOX_ALLOW_AUTOCOMMIT | OUTBOX_LOCK_KEYS)

struct publishing {
	PGconn *conn;
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

static int marshal(struct publishing *p, unsigned flags, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct random_state random;
	int r;

	p->ids = calloc(p->n, sizeof(*p->ids));
	if (!p->ids)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	random_init(&random, random_system_seed());
	r = pg_insert_init(&p->insert, p->n, err);
	for (size_t i = 0; i < p->n && r == OUTBOX_OK; i++) {
		struct outbox_message m = publish_message_at(p->messages, i);

		if (!m.id)
			outbox_uuid(clock, &random.base, p->ids[i]);
		r = pg_insert_put(&p->insert, i, &m, m.id ? m.id : p->ids[i], err);
		if (r != OUTBOX_OK)
			return publish_name_message(p->n, i, r, err);
	}
	/* the time is the database's */
	return r == OUTBOX_OK
		       ? pg_insert_finish(&p->insert, flags & OUTBOX_LOCK_KEYS, ARG_TIME(0), err)
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

static int send(const struct publishing *p, PGresult **ret_rows, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	_cleanup_(pg_params_deinit) struct pg_params params = { 0 };

	if (!pg_params_init(&params, &p->insert.args))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	rows = PQexecParams(p->conn, PG_INSERT_SQL(""), params.count, params.types, params.values,
			    params.lengths, params.formats, 1);
	if (!rows)
		return gone(p->conn, "publish", err);
	if (PQresultStatus(rows) != PGRES_TUPLES_OK)
		return failed(p->conn, p, "publish", rows, err);
	if ((size_t)PQntuples(rows) != p->n)
		return outbox_fail(err, OUTBOX_EINTERNAL, "publish: %d rows for %zu messages",
				   PQntuples(rows), p->n);
	*ret_rows = rows;
	rows = NULL;
	return OUTBOX_OK;
}

static void report(const struct publishing *p, const PGresult *rows,
		   struct outbox_published *ret_published)
{
	for (size_t i = 0; i < p->n && ret_published; i++) {
		struct outbox_published *published = &ret_published[i];

		published->seq = pg_int(rows, (int)i, PG_INSERTED_SEQ);
		published->repeated = pg_bool(rows, (int)i, PG_INSERTED_REPEATED);
		snprintf(published->id, sizeof(published->id), "%s", id_at(p, i));
	}
}

int outbox_publish_pg_batch(PGconn *conn, const struct outbox_message *messages, size_t n,
			    unsigned flags, struct outbox_published *ret_published,
			    struct outbox_error *err)
{
	_cleanup_(publishing_deinit) struct publishing p = { .conn = conn,
							     .messages = messages,
							     .n = n };
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r = publish_check(conn, messages, n, flags, KNOWN_FLAGS, err);

	if (r == OUTBOX_OK)
		r = publish_validate(messages, n, err);
	if (r == OUTBOX_OK)
		r = check_connection(conn, "publish", flags, err);
	if (r == OUTBOX_OK)
		r = check_encoding(conn, "publish", err);
	if (r != OUTBOX_OK || n == 0)
		return r;
	r = marshal(&p, flags, err);
	if (r == OUTBOX_OK)
		r = send(&p, &rows, err);
	if (r == OUTBOX_OK)
		report(&p, rows, ret_published);
	return r;
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
