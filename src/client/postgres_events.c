/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libpq cannot hold a COMMIT, but it tells of each result that the application gets, and the server names the command that
 * a result is of. A rollback to a savepoint has the same name as one of the transaction: which it was is seen later, by
 * whether a transaction is open, or another one has begun.
 */
#include <outbox/postgres.h>

#include "base/cleanup.h"
#include "client/events.h"
#include "client/postgres_watch.h"
#include "client/publish.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct events {
	struct outbox_events base;
	struct pg_watch watch; /* its connection */
	bool rolled_back;      /* to a savepoint, or at all; or a statement failed */
};

static bool is_open(PGconn *conn)
{
	return conn && PQtransactionStatus(conn) != PQTRANS_IDLE &&
	       PQtransactionStatus(conn) != PQTRANS_UNKNOWN;
}

static void on_result(struct pg_watch *watch, const PGresult *result)
{
	struct events *events = container_of(watch, struct events, watch);
	/* libpq lacks a const */
	const char *tag = PQcmdStatus((PGresult *)(uintptr_t)result);

	if (events->base.state != UNIT_OPEN)
		return;
	/* Behind a failure, too, a BEGIN goes well only when the transaction has ended: a COMMIT may fail. */
	if (strcmp(tag, "ROLLBACK") == 0 || PQresultStatus(result) == PGRES_FATAL_ERROR)
		events->rolled_back = true;
	else if (strcmp(tag, "COMMIT") == 0 || strcmp(tag, "PREPARE TRANSACTION") == 0)
		events_over(&events->base, true);
	else if (events->rolled_back &&
		 (strcmp(tag, "BEGIN") == 0 || strcmp(tag, "START TRANSACTION") == 0))
		events_over(&events->base, false);
}

/* Its transaction went with the session, unless it was committed before. */
static void on_reset(struct pg_watch *watch)
{
	struct events *events = container_of(watch, struct events, watch);

	if (events->base.state == UNIT_OPEN)
		events_end(&events->base);
}

static int check(struct outbox_events *base, struct outbox_error *err)
{
	struct events *events = (struct events *)base;

	if (!events->watch.conn)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"events: the connection was closed; free the object before the connection");
	return is_open(events->watch.conn) ? OUTBOX_OK : publish_check_autocommit(0, err);
}

static int join(struct outbox_events *base, struct outbox_error *err)
{
	(void)err;
	((struct events *)base)->rolled_back = false;
	return OUTBOX_OK;
}

/* Without a COMMIT it was rolled back, or the connection is gone. */
static void settle(struct outbox_events *base)
{
	if (base->state == UNIT_OPEN && !is_open(((struct events *)base)->watch.conn))
		events_end(base);
}

static bool holds(const struct outbox_events *base)
{
	return base->marked;
}

static void free_events(struct outbox_events *base)
{
	struct events *events = (struct events *)base;

	pg_watch_end(&events->watch);
	events_deinit(base);
	free(events);
}

static const struct events_ops events_ops = {
	.check = check,
	.join = join,
	.settle = settle,
	.holds = holds,
	.free = free_events,
};

int outbox_events_new_pg(struct outbox_events **ret_events, PGconn *conn,
			 const struct outbox_events_config *config, struct outbox_error *err)
{
	struct outbox_events_config view = events_config(config);
	struct outbox_publisher *publisher = NULL;
	struct events *events;
	int r;

	if (view.flags & OUTBOX_PIPELINE)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "events: OUTBOX_PIPELINE has no use here; a flush is one statement");
	r = outbox_publisher_new_pg(&publisher, conn, view.flags, err);
	if (r != OUTBOX_OK)
		return r;
	events = calloc(1, sizeof(*events));
	if (!events) {
		outbox_publisher_free(publisher);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	events->watch = (struct pg_watch){ .conn = conn, .result = on_result, .reset = on_reset };
	r = events_init(&events->base, &events_ops, publisher, &view, err);
	if (r == OUTBOX_OK)
		r = pg_watch_begin(&events->watch, err);
	if (r == OUTBOX_OK)
		*ret_events = &events->base;
	else
		free_events(&events->base);
	return r;
}
