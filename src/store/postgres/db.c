/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/postgres/schema.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX ((size_t)1 << 20)

struct pg_arg pg_now(const struct pg_store *s)
{
	return s->client_clock ? ARG_TIME(s->clock->wall(s->clock)) : ARG_TIME(0);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static outbox_time mono(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
}

/* A connection that went silent is of no use: what it was asked may be done or not. */
static int silent(struct pg_store *s, struct outbox_error *err)
{
	s->broken = true;
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer within %.3g s", s->where,
			   (double)s->timeout / (double)OUTBOX_SECONDS);
}

static int wait_for(struct pg_store *s, short events, outbox_time deadline, struct outbox_error *err)
{
	struct pollfd fd = { .fd = PQsocket(s->conn), .events = events };
	outbox_time left = deadline - mono();
	int n;

	if (left <= 0)
		return silent(s, err);
	n = poll(&fd, 1, (int)(left / OUTBOX_MILLISECONDS) + 1);
	if (n == 0)
		return silent(s, err);
	if (n < 0 && errno != EINTR)
		return outbox_fail_native(err, OUTBOX_ECONN, errno,
					  "%s: cannot wait for the server", s->where);
	return OUTBOX_OK;
}

static int flush(struct pg_store *s, outbox_time deadline, struct outbox_error *err)
{
	int n, r;

	while ((n = PQflush(s->conn)) > 0) {
		r = wait_for(s, POLLIN | POLLOUT, deadline, err);
		if (r != OUTBOX_OK)
			return r;
		/* The server may be sending, too; if nobody reads, both wait for ever. */
		if (!PQconsumeInput(s->conn))
			return pg_fail(s, NULL, err);
	}
	return n < 0 ? pg_fail(s, NULL, err) : OUTBOX_OK;
}

/* The next result; NULL between two statements of a pipeline. */
static int next_result(struct pg_store *s, outbox_time deadline, PGresult **ret_result,
		       struct outbox_error *err)
{
	int r;

	while (PQisBusy(s->conn)) {
		r = wait_for(s, POLLIN, deadline, err);
		if (r != OUTBOX_OK)
			return r;
		if (!PQconsumeInput(s->conn))
			return pg_fail(s, NULL, err);
	}
	*ret_result = PQgetResult(s->conn);
	return OUTBOX_OK;
}

/* ---- one transaction in one round trip -------------------------------------------------------- */

static bool is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Read to the end of the pipeline. The first error is the one that counts; the middle result is the taker's. */
static int read_pipeline(struct pg_store *s, outbox_time deadline, struct pg_taker *taker,
			 struct outbox_error *err)
{
	int r, status = OUTBOX_OK;

	for (int statement = 0, nulls = 0; nulls < 2;) {
		_cleanup_(pg_clearp) PGresult *result = NULL;

		r = next_result(s, deadline, &result, err);
		if (r != OUTBOX_OK)
			return r;
		if (!result) {
			/* one ends each statement; a second one in a row: the connection broke */
			nulls++;
			statement++;
			continue;
		}
		nulls = 0;
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
			return status;
		if (status == OUTBOX_OK && !is_good(result))
			status = pg_fail(s, result, err);
		if (statement == 1 && status == OUTBOX_OK) {
			status = taker->take(taker, result, err);
			result = NULL;
		}
	}
	return status != OUTBOX_OK ? status : pg_fail(s, NULL, err);
}

#define HOT_NAME "outbox"

static int send_statement(struct pg_store *s, const char *sql, const struct pg_params *p)
{
	if (!sql)
		return PQsendQueryPrepared(s->conn, HOT_NAME, p->count, p->values, p->lengths,
					   p->formats, 1);
	return PQsendQueryParams(s->conn, sql, p->count, p->types, p->values, p->lengths,
				 p->formats, 1);
}

/* sql NULL: the statement that was prepared. */
static int send_pipeline(struct pg_store *s, enum pg_mode mode, const char *sql,
			 const struct pg_params *p, struct outbox_error *err)
{
	const char *begin = mode == PG_WRITE ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
					     : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

	if (PQenterPipelineMode(s->conn) &&
	    PQsendQueryParams(s->conn, begin, 0, NULL, NULL, NULL, NULL, 1) &&
	    send_statement(s, sql, p) &&
	    PQsendQueryParams(s->conn, "COMMIT", 0, NULL, NULL, NULL, NULL, 1) &&
	    PQpipelineSync(s->conn))
		return OUTBOX_OK;
	return pg_fail(s, NULL, err);
}

/* After an error the transaction is still there, aborted. */
static void roll_back(struct pg_store *s, outbox_time deadline)
{
	PGresult *result = NULL;

	if (s->broken || PQtransactionStatus(s->conn) == PQTRANS_IDLE)
		return;
	if (!PQsendQuery(s->conn, "ROLLBACK") || flush(s, deadline, NULL) != OUTBOX_OK) {
		s->broken = true;
		return;
	}
	for (;;) {
		if (next_result(s, deadline, &result, NULL) != OUTBOX_OK) {
			s->broken = true;
			return;
		}
		if (!result)
			return;
		PQclear(result);
	}
}

static int gone(struct pg_store *s, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONN, "%s: the connection is gone", s->where);
}

static int call(struct pg_store *s, enum pg_mode mode, const char *sql,
		const struct pg_params *params, struct pg_taker *taker, struct outbox_error *err)
{
	outbox_time deadline = mono() + s->timeout;
	int r;

	if (s->broken)
		return gone(s, err);
	r = send_pipeline(s, mode, sql, params, err);
	if (r == OUTBOX_OK)
		r = flush(s, deadline, err);
	if (r == OUTBOX_OK)
		r = read_pipeline(s, deadline, taker, err);
	if (!s->broken && PQstatus(s->conn) == CONNECTION_OK && !PQexitPipelineMode(s->conn))
		s->broken = true; /* results are left: nobody may use this connection again */
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	if (r != OUTBOX_OK)
		roll_back(s, deadline);
	return r;
}

/* "@" becomes the schema. */
static int expand(const struct pg_store *s, const char *sql, struct buf *out,
		  struct outbox_error *err)
{
	for (; *sql; sql++) {
		if (*sql != '@') {
			buf_char(out, *sql);
		} else if (sql[1] == '@') {
			buf_char(out, '@');
			sql++;
		} else {
			buf_text(out, s->quoted);
			buf_char(out, '.');
		}
	}
	return out->failed ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}

static int call_text(struct pg_store *s, enum pg_mode mode, const char *sql,
		     const struct pg_args *args, struct pg_taker *taker, struct outbox_error *err)
{
	_cleanup_(pg_params_deinit) struct pg_params params;
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SQL_MAX);
	int r;

	if (!pg_params_init(&params, args))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = expand(s, sql, &text, err);
	if (r == OUTBOX_OK)
		r = call(s, mode, buf_str(&text), &params, taker, err);
	return r;
}

struct keeper {
	struct pg_taker base;
	PGresult *rows;
};

static int keep(struct pg_taker *taker, PGresult *rows, struct outbox_error *err)
{
	(void)err;
	((struct keeper *)taker)->rows = rows;
	return OUTBOX_OK;
}

int pg_call(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
	    PGresult **ret_result, struct outbox_error *err)
{
	struct keeper keeper = { .base.take = keep };
	int r = call_text(s, mode, sql, args, &keeper.base, err);

	if (r == OUTBOX_OK)
		*ret_result = keeper.rows;
	else
		PQclear(keeper.rows);
	return r;
}

int pg_op(struct pg_store *s, enum pg_mode mode, const char *sql, const struct pg_args *args,
	  PGresult **ret_result, struct outbox_error *err)
{
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);

	return r == OUTBOX_OK ? pg_call(s, mode, sql, args, ret_result, err) : r;
}

/* Read what is left of an answer; the first error counts. */
static int read_plain(struct pg_store *s, outbox_time deadline, struct outbox_error *err)
{
	PGresult *result = NULL;
	int r, status = OUTBOX_OK;

	for (;;) {
		r = next_result(s, deadline, &result, err);
		if (r != OUTBOX_OK || !result)
			return r != OUTBOX_OK ? r : status;
		if (status == OUTBOX_OK && !is_good(result) &&
		    PQresultStatus(result) != PGRES_EMPTY_QUERY)
			status = pg_fail(s, result, err);
		PQclear(result);
	}
}

static int prepare(struct pg_store *s, const char *sql, const struct pg_params *params,
		   struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SQL_MAX);
	outbox_time deadline = mono() + s->timeout;
	int r;

	r = expand(s, sql, &text, err);
	if (r != OUTBOX_OK)
		return r;
	if (!PQsendPrepare(s->conn, HOT_NAME, buf_str(&text), params->count, params->types))
		return pg_fail(s, NULL, err);
	r = flush(s, deadline, err);
	if (r == OUTBOX_OK)
		r = read_plain(s, deadline, err);
	s->prepared = r == OUTBOX_OK;
	return r;
}

int pg_hot_op(struct pg_store *s, const char *sql, const struct pg_args *args,
	      struct pg_taker *taker, struct outbox_error *err)
{
	_cleanup_(pg_params_deinit) struct pg_params params = { 0 };
	int r;

	r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);
	if (r != OUTBOX_OK)
		return r;
	if (!s->direct)
		return call_text(s, PG_WRITE, sql, args, taker, err);
	if (s->broken)
		return gone(s, err);
	if (!pg_params_init(&params, args))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!s->prepared)
		r = prepare(s, sql, &params, err);
	return r == OUTBOX_OK ? call(s, PG_WRITE, NULL, &params, taker, err) : r;
}

int pg_script(struct pg_store *s, const char *sql, struct outbox_error *err)
{
	outbox_time deadline = mono() + s->timeout;
	int r;

	if (s->broken)
		return gone(s, err);
	if (!PQsendQuery(s->conn, sql))
		return pg_fail(s, NULL, err);
	r = flush(s, deadline, err);
	if (r == OUTBOX_OK)
		r = read_plain(s, deadline, err);
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	if (r != OUTBOX_OK)
		roll_back(s, deadline);
	return r;
}
