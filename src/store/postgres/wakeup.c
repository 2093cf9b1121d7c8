/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The doorbell, see sql/postgres/bell.sql. It needs a session of its own (LISTEN, a lock held between
 * transactions), so behind a pooler there is none: a pooler makes up the process number that it tells its
 * clients, which is how it is known.
 */
#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

/* Is there a doorbell, and can this connection hear it? */
static int read_doorbell(struct pg_store *s, bool *ret_there, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r;

	r = pg_op(s, PG_READ, "SELECT @outbox_bell_hangs()", NULL, &row, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_there = pg_bool(row, 0, 0);
	if (*ret_there && !s->direct)
		return outbox_fail(
			err, OUTBOX_ENOTSUP,
			"the doorbell is not heard through a pooler; connect directly, or poll");
	return OUTBOX_OK;
}

/* Rings that came while nobody slept mean nothing: everybody looks once more anyway. True: there were any. */
static bool forget_rings(struct pg_store *s)
{
	PGnotify *ring;
	bool any = false;

	while ((ring = PQnotifies(s->conn))) {
		PQfreemem(ring);
		any = true;
	}
	return any;
}

/* What outbox_listen() says. */
enum { NOT_NOW, HOLDS_DOORBELL, HEARS_ANOTHERS };

/* Publishers go on ringing for who holds the bell; another's may be let go in this moment. */
static int go_on_listening(struct pg_store *s, bool *ret_again, struct outbox_error *err)
{
	if (!PQconsumeInput(s->conn))
		return pg_fail(s, NULL, err);
	forget_rings(s);
	*ret_again = !s->holds_doorbell;
	return OUTBOX_OK;
}

int pg_listen(struct outbox_store *store, int *ret_fd, bool *ret_again, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	bool there;
	int r;

	if (s->listening)
		return go_on_listening(s, ret_again, err);
	r = read_doorbell(s, &there, err);
	if (r != OUTBOX_OK)
		return r;
	if (!there) {
		*ret_fd = -1;
		*ret_again = false;
		return OUTBOX_OK;
	}
	r = pg_op(s, PG_WRITE, "SELECT @outbox_hear()", NULL, NULL, err);
	if (r != OUTBOX_OK)
		return r;
	forget_rings(s);
	r = pg_op(s, PG_WRITE, "SELECT @outbox_listen()", NULL, &row, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_fd = PQsocket(s->conn);
	*ret_again = pg_int(row, 0, 0) == NOT_NOW;
	s->holds_doorbell = pg_int(row, 0, 0) == HOLDS_DOORBELL;
	/* Perhaps the other one let go in this moment: nobody would ring any more. */
	if (forget_rings(s) && pg_int(row, 0, 0) == HEARS_ANOTHERS)
		*ret_again = true;
	s->listening = !*ret_again;
	return OUTBOX_OK;
}

int pg_stop_listening(struct outbox_store *store, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	int r = OUTBOX_OK;

	if (!PQconsumeInput(s->conn))
		return pg_fail(s, NULL, err);
	if (s->holds_doorbell)
		r = pg_op(s, PG_WRITE, "SELECT @outbox_awake()", NULL, NULL, err);
	s->holds_doorbell = false;
	s->listening = false;
	forget_rings(s);
	return r;
}
