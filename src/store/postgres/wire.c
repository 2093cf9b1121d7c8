/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/wire.h"

#include <errno.h>
#include <poll.h>

outbox_time pg_deadline(const struct pg_store *s)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + s->timeout;
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
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time left = deadline - clock->mono(clock);
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

int pg_flush(struct pg_store *s, outbox_time deadline, struct outbox_error *err)
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

int pg_next_result(struct pg_store *s, outbox_time deadline, PGresult **ret_result,
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
