/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_POSTGRES_WATCH_H
#define CLIENT_POSTGRES_WATCH_H

/* Hear what happens to a connection that is the application's: libpq tells it to an event procedure. */

#include <outbox/error.h>

#include <libpq-fe.h>

struct pg_watch {
	struct pg_watch *next;
	PGconn *conn; /* NULL after PQfinish() */
	/* each result that the application gets, also one at a time; may be NULL */
	void (*result)(struct pg_watch *watch, const PGresult *result);
	/* PQreset(): the session it had is gone, and another one begins; may be NULL */
	void (*reset)(struct pg_watch *watch);
};

/* All but next is set. */
int pg_watch_begin(struct pg_watch *watch, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Also of one that was not begun. */
void pg_watch_end(struct pg_watch *watch);

#endif
