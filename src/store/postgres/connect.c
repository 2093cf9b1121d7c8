/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/connect.h"

#include "base/cleanup.h"

#include <errno.h>
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
	int n;

	while (want != PGRES_POLLING_OK) {
		struct pollfd fd = { .fd = PQsocket(s->conn),
				     .events = want == PGRES_POLLING_READING ? POLLIN : POLLOUT };
		outbox_time left = deadline - clock->mono(clock);

		if (want == PGRES_POLLING_FAILED)
			return pg_connect_error(s, err);
		n = left > 0 ? poll(&fd, 1, (int)(left / OUTBOX_MILLISECONDS) + 1) : 0;
		if (n == 0)
			return outbox_fail(err, OUTBOX_ECONN, "%s: no connection in time", s->where);
		if (n > 0 || errno != EINTR) /* asked too early, it would take "not yet" for "gone" */
			want = PQconnectPoll(s->conn);
	}
	return OUTBOX_OK;
}

/* Part i of a list "a,b,,d"; false: there is none. */
static bool part_of(const char *list, size_t i, char *out, size_t size)
{
	size_t length;

	for (; list && i > 0; i--) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	if (!list)
		return false;
	length = strcspn(list, ",");
	if (length >= size)
		return false;
	memcpy(out, list, length);
	out[length] = '\0';
	return true;
}

/* The settings with one host of the list, and its port. */
struct one_host {
	const char *values[PG_SETTINGS_MAX + 1];
	char host[256], port[16];
};

static bool pick_host(const struct pg_settings *settings, size_t i, struct one_host *one)
{
	memcpy(one->values, settings->values, sizeof(one->values));
	for (size_t k = 0; k < settings->count; k++) {
		bool host = strcmp(settings->keys[k], "host") == 0;
		bool port = strcmp(settings->keys[k], "port") == 0;

		if (host && !part_of(settings->values[k], i, one->host, sizeof(one->host)))
			return false;
		if (host)
			one->values[k] = one->host;
		/* one port may stand for all */
		if (port && strchr(settings->values[k], ',') &&
		    part_of(settings->values[k], i, one->port, sizeof(one->port)))
			one->values[k] = one->port;
	}
	return true;
}

static int connect_once(struct pg_store *s, const struct pg_settings *settings,
			const char *const *values, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();

	PQfinish(s->conn);
	s->broken = false;
	s->conn = PQconnectStartParams(settings->keys, values, 0);
	if (!s->conn)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	/* from the beginning: what a server says while it lets us in would go to stderr, as often as it likes */
	PQsetNoticeReceiver(s->conn, no_notices, NULL);
	if (PQstatus(s->conn) == CONNECTION_BAD)
		return pg_connect_error(s, err);
	return drive(s, clock->mono(clock) + settings->connect_timeout, err);
}

/* libpq goes on to the next host only when one refuses: each has a deadline of its own, since a machine
 * that is gone says nothing. */
static int connect_any(struct pg_store *s, const struct pg_settings *settings,
		       struct outbox_error *err)
{
	struct one_host one;
	int r;

	if (!settings->several)
		return connect_once(s, settings, settings->values, err);
	r = outbox_fail(err, OUTBOX_ECONFIG, "%s: no host", s->where);
	for (size_t i = 0; pick_host(settings, i, &one); i++) {
		r = connect_once(s, settings, one.values, err);
		if (r == OUTBOX_OK || r == OUTBOX_ENOMEM)
			return r;
	}
	return r;
}

int pg_connect(struct pg_store *s, const struct pg_settings *settings, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r;

	r = connect_any(s, settings, &why);
	if (r != OUTBOX_OK) {
		if (err)
			*err = why;
		return r;
	}
	if (PQsetnonblocking(s->conn, 1) != 0)
		return pg_fail(s, NULL, err);
	if (PQserverVersion(s->conn) < OLDEST_SERVER)
		return outbox_fail(err, OUTBOX_ENOTSUP,
				   "%s: PostgreSQL %d is too old; 13 or later is needed", s->where,
				   PQserverVersion(s->conn) / 10000);
	return OUTBOX_OK;
}
