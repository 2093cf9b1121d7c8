/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_EVENTS_CASES_TEST_H
#define CLIENT_EVENTS_CASES_TEST_H

/* What a unit of work must do on every database: the same cases, each beside an outbox of its own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <outbox/events.h>

#include <stdbool.h>

struct events_fixture {
	struct outbox_events *events; /* closed and opened anew by reopen() */
	struct outbox_error err;
	/* SQL on the connection of the events; false: it failed */
	bool (*try_sql)(struct events_fixture *fixture, const char *sql);
	/* the first column of all rows of a query, committed ones, with a space between them */
	const char *(*rows)(struct events_fixture *fixture, const char *sql);
	void (*reopen)(struct events_fixture *fixture, const struct outbox_events_config *config);
	char text[1000]; /* of rows() */
};

#define EVENTS_CASES 13

/* EVENTS_CASES of them. */
const struct CMUnitTest *events_cases(CMFixtureFunction setup, CMFixtureFunction teardown);

/* For cases of one database. */
void events_run(struct events_fixture *f, const char *sql);
void events_add(struct events_fixture *f, const char *id);
void events_begin(struct events_fixture *f);
void events_flush(struct events_fixture *f);
const char *events_ids(struct events_fixture *f);

#endif
