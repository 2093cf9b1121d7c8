/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/connect.h"

#include "base/cleanup.h"

#include <poll.h>
#include <string.h>

#define OLDEST_SERVER 130000

static void no_notices(void *context, const PGresult *notice)
{
	(void)context;
	(void)notice;
}

static int drive(struct pg_store *s, outbox_time deadline, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	PostgresPollingStatusType want = PGRES_POLLING_WRITING;

	while (want != PGRES_POLLING_OK) {
		struct pollfd fd = { .fd = PQsocket(s->conn),
				     .events = want == PGRES_POLLING_READING ? POLLIN : POLLOUT };
		outbox_time left = deadline - clock->mono(clock);

		if (want == PGRES_POLLING_FAILED)
			return pg_refused(s, err);
		if (left <= 0 || poll(&fd, 1, (int)(left / OUTBOX_MILLISECONDS) + 1) == 0)
			return outbox_fail(err, OUTBOX_ECONN, "%s: no connection in time", s->where);
		want = PQconnectPoll(s->conn);
	}
	return OUTBOX_OK;
}

int pg_connect(struct pg_store *s, const struct pg_settings *settings, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	int r;

	s->conn = PQconnectStartParams(settings->keys, settings->values, 0);
	if (!s->conn)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (PQstatus(s->conn) == CONNECTION_BAD)
		return pg_refused(s, err);
	r = drive(s, clock->mono(clock) + settings->connect_timeout, err);
	if (r != OUTBOX_OK)
		return r;
	PQsetNoticeReceiver(s->conn, no_notices, NULL);
	if (PQsetnonblocking(s->conn, 1) != 0)
		return pg_fail(s, NULL, err);
	if (PQserverVersion(s->conn) < OLDEST_SERVER)
		return outbox_fail(err, OUTBOX_ENOTSUP,
				   "%s: PostgreSQL %d is too old; 13 or later is needed", s->where,
				   PQserverVersion(s->conn) / 10000);
	return OUTBOX_OK;
}
