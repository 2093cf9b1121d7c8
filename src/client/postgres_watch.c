/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection has one procedure of ours and a list of those who listen. libpq keeps a procedure until the
 * connection ends; with an empty list it does nothing.
 */
#include "client/postgres_watch.h"

#include <libpq-events.h>

static int on_event(PGEventId id, void *info, void *context);

static void tell_result(const PGEventResultCreate *event)
{
	struct pg_watch *watch = PQinstanceData(event->conn, on_event);

	for (; watch; watch = watch->next)
		if (watch->result)
			watch->result(watch, event->result);
}

static void tell_reset(PGconn *conn)
{
	struct pg_watch *watch = PQinstanceData(conn, on_event);

	for (; watch; watch = watch->next)
		if (watch->reset)
			watch->reset(watch);
}

static void tell_end(PGconn *conn)
{
	struct pg_watch *next, *watch = PQinstanceData(conn, on_event);

	for (; watch; watch = next) {
		next = watch->next;
		watch->next = NULL;
		watch->conn = NULL;
	}
}

/* Not 0: all is well, whatever we made of it. */
static int on_event(PGEventId id, void *info, void *context)
{
	(void)context;
	if (id == PGEVT_RESULTCREATE)
		tell_result(info);
	else if (id == PGEVT_CONNRESET)
		tell_reset(((PGEventConnReset *)info)->conn);
	else if (id == PGEVT_CONNDESTROY)
		tell_end(((PGEventConnDestroy *)info)->conn);
	return 1;
}

int pg_watch_begin(struct pg_watch *watch, struct outbox_error *err)
{
	/* Refused when it is there already. */
	PQregisterEventProc(watch->conn, on_event, "outbox", NULL);
	watch->next = PQinstanceData(watch->conn, on_event);
	return PQsetInstanceData(watch->conn, on_event, watch)
		       ? OUTBOX_OK
		       : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

void pg_watch_end(struct pg_watch *watch)
{
	struct pg_watch *first, **at = &first;

	if (!watch->conn)
		return;
	first = PQinstanceData(watch->conn, on_event);
	while (*at && *at != watch)
		at = &(*at)->next;
	if (*at)
		*at = watch->next;
	PQsetInstanceData(watch->conn, on_event, first);
	watch->conn = NULL;
}
