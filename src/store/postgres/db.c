/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/db.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX ((size_t)1 << 20)

/* ---- waiting for the server, never past a deadline: a connection that went silent is broken ---- */

/* When a call that begins now must be over. */
static outbox_time deadline_of(const struct pg_store *s)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + s->timeout;
}

/* A connection that went silent is of no use: what it was asked may be done or not. */
static int fail_silent(struct pg_store *s, struct outbox_error *err)
{
	s->broken = true;
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer within %.3g s", s->where,
			   (double)s->timeout / (double)OUTBOX_SECONDS);
}

static int wait_for(struct pg_store *s, short events, outbox_time deadline, struct outbox_error *err)
{
	struct pollfd fd = { .fd = PQsocket(s->conn), .events = events };
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time left = deadline - clock->mono(clock);
	int n;

	if (left <= 0)
		return fail_silent(s, err);
	n = poll(&fd, 1, (int)(left / OUTBOX_MILLISECONDS) + 1);
	if (n == 0)
		return fail_silent(s, err);
	if (n < 0 && errno != EINTR)
		return outbox_fail_native(err, OUTBOX_ECONN, errno,
					  "%s: cannot wait for the server", s->where);
	return OUTBOX_OK;
}

/* Everything that was asked is on its way. */
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

struct pg_arg pg_now(const struct pg_store *s)
{
	return s->client_clock ? ARG_TIME(s->clock->wall(s->clock)) : ARG_TIME(0);
}

struct pg_arg pg_new_token(const struct pg_store *s)
{
	return ARG_INT8((int64_t)(s->random->next(s->random) >> 1));
}

/* ---- one transaction in one round trip -------------------------------------------------------- */

static bool is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* One transaction: a statement as often as there are arguments for it; sql NULL: the one that was prepared. */
struct asked {
	enum pg_mode mode;
	const char *sql;
	struct pg_hot *hots;
	size_t count;
	const char *first; /* a statement before them; NULL: none */
	const char *last;  /* one behind them, with arguments; NULL: none */
	const struct pg_params *last_params;
	bool alone; /* the one statement is a transaction by itself, as plain_session() made them */
};

/* Read to the end of the pipeline. The first error is the one that counts; results between the first and the last are
 * the takers'. */
static int read_pipeline(struct pg_store *s, const struct asked *asked, outbox_time deadline,
			 struct outbox_error *err)
{
	size_t before = asked->alone ? 0 : asked->first ? 2 : 1; /* with BEGIN */
	int r, status = OUTBOX_OK;

	for (size_t statement = 0, nulls = 0; nulls < 2;) {
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
		if (statement >= before && statement - before < asked->count && status == OUTBOX_OK) {
			struct pg_taker *taker = asked->hots[statement - before].taker;

			status = taker->take(taker, result, err);
			result = NULL;
		}
	}
	return status != OUTBOX_OK ? status : pg_fail(s, NULL, err);
}

#define HOT_NAME "outbox"
#define PREFETCH_NAME "outbox_prefetch"
#define LOOK_NAME "outbox_look"

static int send_prepared(struct pg_store *s, const char *name, const struct pg_params *p)
{
	return PQsendQueryPrepared(s->conn, name, p->count, p->values, p->lengths, p->formats, 1);
}

static int send_text(struct pg_store *s, const char *sql, const struct pg_params *p)
{
	return PQsendQueryParams(s->conn, sql, p->count, p->types, p->values, p->lengths,
				 p->formats, 1);
}

static int send_plain(struct pg_store *s, const char *sql)
{
	return PQsendQueryParams(s->conn, sql, 0, NULL, NULL, NULL, NULL, 1);
}

static int send_end(struct pg_store *s, const struct asked *asked)
{
	if (asked->last && !send_text(s, asked->last, asked->last_params))
		return 0;
	return (asked->alone || send_plain(s, "COMMIT")) && PQpipelineSync(s->conn);
}

static int send_begin(struct pg_store *s, const struct asked *asked)
{
	if (asked->alone)
		return 1;
	return send_plain(s, asked->mode == PG_WRITE
				     ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
				     : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") &&
	       (!asked->first || send_plain(s, asked->first));
}

static int send_pipeline(struct pg_store *s, const struct asked *asked, struct outbox_error *err)
{
	int sent = PQenterPipelineMode(s->conn) && send_begin(s, asked);

	for (size_t i = 0; sent && i < asked->count; i++)
		sent = asked->sql ? send_text(s, asked->sql, &asked->hots[i].params)
				  : send_prepared(s, HOT_NAME, &asked->hots[i].params);
	sent = sent && send_end(s, asked);
	for (size_t i = 0; sent && i < asked->count; i++)
		if (asked->hots[i].prefetch)
			sent = send_prepared(s, PREFETCH_NAME, &asked->hots[i].prefetch->params) &&
			       PQpipelineSync(s->conn);
	return sent ? OUTBOX_OK : pg_fail(s, NULL, err);
}

/* The pipeline is read to its end, or the connection is not to be used again. */
static void end_pipeline(struct pg_store *s)
{
	if (!s->broken && PQstatus(s->conn) == CONNECTION_OK && !PQexitPipelineMode(s->conn))
		s->broken = true;
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
}

/* One answer to what was asked after the last call; keep: it is wanted. */
static int read_one_prefetch(struct pg_store *s, bool keep, outbox_time deadline,
			     PGresult **ret_rows, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (int nulls = 0; r == OUTBOX_OK;) {
		_cleanup_(pg_clearp) PGresult *result = NULL;

		r = next_result(s, deadline, &result, err);
		nulls = result ? 0 : nulls + 1;
		if (r == OUTBOX_OK && nulls == 2)
			r = pg_fail(s, NULL, err);
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
			break;
		if (keep && !*ret_rows && PQresultStatus(result) == PGRES_TUPLES_OK) {
			*ret_rows = result;
			result = NULL;
		}
	}
	return r;
}

/* All of them. That one failed is nobody's error; each is given to its owner, with rows or without. */
static int read_prefetch(struct pg_store *s, bool keep, outbox_time deadline,
			 struct outbox_error *err)
{
	struct pg_prefetch *first = s->prefetch, *prefetch, *next;
	int r = OUTBOX_OK;

	s->prefetch = NULL;
	for (prefetch = first; prefetch; prefetch = next) {
		PGresult *rows = NULL;

		next = prefetch->next;
		if (r == OUTBOX_OK)
			r = read_one_prefetch(s, keep, deadline, &rows, err);
		prefetch->take(prefetch, rows);
	}
	if (first)
		end_pipeline(s);
	return r;
}

/* Outside of a pipeline: what was sent, unless that failed, and all of its answer. The first error counts. */
static int finish_plain(struct pg_store *s, int sent, outbox_time deadline, struct outbox_error *err)
{
	int r = sent ? flush(s, deadline, err) : pg_fail(s, NULL, err), status = OUTBOX_OK;

	while (r == OUTBOX_OK) {
		_cleanup_(pg_clearp) PGresult *result = NULL;

		r = next_result(s, deadline, &result, err);
		if (r != OUTBOX_OK || !result)
			break;
		if (status == OUTBOX_OK && !is_good(result) &&
		    PQresultStatus(result) != PGRES_EMPTY_QUERY)
			status = pg_fail(s, result, err);
	}
	return r != OUTBOX_OK ? r : status;
}

/* After an error the transaction is still there, aborted. */
static void roll_back(struct pg_store *s, outbox_time deadline)
{
	if (s->broken || PQtransactionStatus(s->conn) == PQTRANS_IDLE)
		return;
	if (finish_plain(s, PQsendQuery(s->conn, "ROLLBACK"), deadline, NULL) != OUTBOX_OK)
		s->broken = true;
}

static int fail_gone(struct pg_store *s, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONN, "%s: the connection is gone", s->where);
}

int pg_prefetch_read(struct pg_store *s, struct outbox_error *err)
{
	return s->broken ? fail_gone(s, err) : read_prefetch(s, true, deadline_of(s), err);
}

/* What was asked after the call, in that order. */
static struct pg_prefetch *chain_prefetches(const struct asked *asked)
{
	struct pg_prefetch *first = NULL;

	for (size_t i = asked->count; i-- > 0;) {
		if (!asked->hots[i].prefetch)
			continue;
		asked->hots[i].prefetch->next = first;
		first = asked->hots[i].prefetch;
	}
	return first;
}

static int call(struct pg_store *s, const struct asked *asked, struct outbox_error *err)
{
	outbox_time deadline;
	int r;

	r = pg_prefetch_read(s, err);
	if (r != OUTBOX_OK)
		return r;
	deadline = deadline_of(s);
	r = send_pipeline(s, asked, err);
	if (r == OUTBOX_OK)
		r = flush(s, deadline, err);
	if (r == OUTBOX_OK)
		r = read_pipeline(s, asked, deadline, err);
	s->prefetch = s->broken ? NULL : chain_prefetches(asked);
	if (r == OUTBOX_OK && s->prefetch)
		return r; /* its answer comes while the caller works */
	if (!s->broken && read_prefetch(s, false, deadline, NULL) != OUTBOX_OK)
		s->broken = true;
	end_pipeline(s);
	if (r != OUTBOX_OK)
		roll_back(s, deadline);
	return r;
}

/* "@" becomes the schema. */
static int expand(const struct pg_store *s, const char *sql, struct buf *out,
		  struct outbox_error *err)
{
	for (; *sql; sql++) {
		if (*sql == '@')
			buf_printf(out, "%s.", s->quoted);
		else
			buf_char(out, *sql);
	}
	return out->failed ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}

static int call_text(struct pg_store *s, const char *sql, struct asked *asked,
		     struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SQL_MAX);
	int r = expand(s, sql, &text, err);

	if (r != OUTBOX_OK)
		return r;
	asked->sql = buf_str(&text);
	return call(s, asked, err);
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
	struct pg_hot hot = { .taker = &keeper.base };
	int r;

	if (!pg_params_init(&hot.params, args))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = call_text(s, sql, &(struct asked){ .mode = mode, .hots = &hot, .count = 1 }, err);
	pg_params_deinit(&hot.params);
	if (r == OUTBOX_OK && ret_result)
		*ret_result = keeper.rows;
	else
		PQclear(keeper.rows);
	return r;
}

int pg_script(struct pg_store *s, const char *sql, struct outbox_error *err)
{
	outbox_time deadline;
	int r;

	r = pg_prefetch_read(s, err);
	if (r != OUTBOX_OK)
		return r;
	deadline = deadline_of(s);
	r = finish_plain(s, PQsendQuery(s->conn, sql), deadline, err);
	if (PQstatus(s->conn) != CONNECTION_OK)
		s->broken = true;
	if (r != OUTBOX_OK)
		roll_back(s, deadline);
	return r;
}

static int prepare(struct pg_store *s, const char *name, const char *sql,
		   const struct pg_params *params, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SQL_MAX);
	int r;

	r = expand(s, sql, &text, err);
	if (r != OUTBOX_OK)
		return r;
	return finish_plain(s,
			    PQsendPrepare(s->conn, name, buf_str(&text), params->count,
					  params->types),
			    deadline_of(s), err);
}

/*
 * What every function of ours sets for itself and every transaction says, for a statement that is neither. The session
 * is ours.
 */
static int plain_session(struct pg_store *s, struct outbox_error *err)
{
	char settings[500];

	snprintf(settings, sizeof(settings),
		 "SET search_path = %s; SET row_security = off; SET jit = off;"
		 " SET max_parallel_workers_per_gather = 0; SET enable_bitmapscan = off;"
		 " SET default_transaction_isolation = 'read committed';"
		 " SET default_transaction_read_only = off; SET default_transaction_deferrable = off",
		 s->quoted);
	return pg_script(s, settings, err);
}

/* Once for each connection, when first needed. */
static int prepare_hot(struct pg_store *s, const char *sql, const struct asked *asked,
		       struct outbox_error *err)
{
	const struct pg_prefetch *prefetch = chain_prefetches(asked);
	int r = OUTBOX_OK;

	if (!s->prepared) {
		r = plain_session(s, err);
		if (r == OUTBOX_OK)
			r = prepare(s, HOT_NAME, sql, &asked->hots[0].params, err);
		s->prepared = r == OUTBOX_OK;
	}
	if (r == OUTBOX_OK && prefetch && !s->prepared_prefetch) {
		r = prepare(s, PREFETCH_NAME, prefetch->sql, &prefetch->params, err);
		s->prepared_prefetch = r == OUTBOX_OK;
	}
	return r;
}

int pg_hot_op(struct pg_store *s, const char *sql, struct pg_hot *hots, size_t count,
	      const struct pg_around *around, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf last = BUF_INIT(SQL_MAX);
	struct asked asked = { .mode = PG_WRITE, .hots = hots, .count = count };
	char share[200];
	int r = around->last ? expand(s, around->last, &last, err) : OUTBOX_OK;

	asked.last = around->last ? buf_str(&last) : NULL;
	asked.last_params = &around->last_params;
	snprintf(share, sizeof(share), "SELECT %s.outbox_share_moment(%s)", s->quoted,
		 around->settles ? "true" : "false");
	asked.first = count > 1 ? share : NULL;
	if (r != OUTBOX_OK) {
		/* no memory for it */
	} else if (s->broken) {
		r = fail_gone(s, err);
	} else if (!s->direct) {
		for (size_t i = 0; i < count; i++)
			hots[i].prefetch = NULL;
		r = call_text(s, sql, &asked, err);
	} else {
		r = prepare_hot(s, sql, &asked, err);
		asked.alone = count == 1 && !asked.last;
		if (r == OUTBOX_OK)
			r = call(s, &asked, err);
	}
	for (size_t i = 0; i < count; i++)
		pg_params_deinit(&hots[i].params);
	return r;
}

/* The answer to one statement outside of a pipeline. */
static int finish_look(struct pg_store *s, int sent, PGresult **ret_result, struct outbox_error *err)
{
	outbox_time deadline = deadline_of(s);
	int r = sent ? flush(s, deadline, err) : pg_fail(s, NULL, err);

	for (bool ended = false; r == OUTBOX_OK && !ended;) {
		_cleanup_(pg_clearp) PGresult *result = NULL;

		r = next_result(s, deadline, &result, err);
		ended = !result;
		if (r == OUTBOX_OK && result && !is_good(result))
			r = pg_fail(s, result, err);
		if (r == OUTBOX_OK && result) {
			PQclear(*ret_result);
			*ret_result = result;
			result = NULL;
		}
	}
	return r;
}

int pg_look_op(struct pg_store *s, const char *sql, const struct pg_args *args,
	       PGresult **ret_result, struct outbox_error *err)
{
	_cleanup_(pg_params_deinit) struct pg_params params = { 0 };
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SQL_MAX);
	int r = pg_prefetch_read(s, err);

	if (r == OUTBOX_OK && !pg_params_init(&params, args))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK && s->direct && !s->prepared_look) {
		r = prepare(s, LOOK_NAME, sql, &params, err);
		s->prepared_look = r == OUTBOX_OK;
	}
	if (r == OUTBOX_OK && !s->direct)
		r = expand(s, sql, &text, err);
	if (r != OUTBOX_OK)
		return r;
	return finish_look(s,
			   s->direct ? send_prepared(s, LOOK_NAME, &params)
				     : send_text(s, buf_str(&text), &params),
			   ret_result, err);
}
