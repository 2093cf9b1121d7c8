/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exits.h"

#include "base/cleanup.h"

#include <outbox/error.h>

static const struct exit_row rows[] = {
	{ EXIT_OK, OUTBOX_OK, "ok", "done" },
	{ EXIT_REPORTED, -1, "reported",
	  "done, but something is wrong: deliveries failed, or doctor warns" },
	{ EXIT_USAGE, OUTBOX_EINVAL, "usage",
	  "wrong arguments, options, URL or data; upgrade --check: an upgrade is due" },
	{ EXIT_USAGE, OUTBOX_ECONFIG, "usage", NULL },
	{ EXIT_NOT_FOUND, OUTBOX_ENOTFOUND, "notfound",
	  "no such database, message, target or policy" },
	{ EXIT_CONFLICT, OUTBOX_ECONFLICT, "conflict",
	  "the delivery's state does not allow it, it is being sent, or the file exists" },
	{ EXIT_UNREACHABLE, OUTBOX_ECONN, "unreachable",
	  "the database or broker is unreachable, or an I/O error" },
	{ EXIT_UNREACHABLE, OUTBOX_EGONE, "unreachable", NULL },
	{ EXIT_AUTH, OUTBOX_EAUTH, "auth", "refused: user, password or permissions" },
	{ EXIT_SCHEMA, OUTBOX_ESCHEMA, "schema",
	  "no outbox in the database, or its schema is older or newer than this program" },
	{ EXIT_FULL, OUTBOX_EFULL, "full", "disk full or quota reached" },
	{ EXIT_FENCED, OUTBOX_EFENCED, "fenced", "the lane was lost to another relay" },
	{ EXIT_NOT_CONFIRMED, -1, "notconfirmed", "not confirmed: nothing was changed" },
	{ EXIT_BUSY, OUTBOX_EBUSY, "busy", "another process has locked the database; try again" },
	{ EXIT_TIMED_OUT, OUTBOX_ETIMEDOUT, "timedout", "no answer in time" },
	{ EXIT_UNSUPPORTED, OUTBOX_ENOTSUP, "unsupported", "this driver or this build cannot do it" },
	{ EXIT_BAD_DATA, OUTBOX_EPROTO, "baddata",
	  "stored data is inconsistent (a position beyond the log: outbox realign), or the other side broke its protocol" },
	{ EXIT_INTERNAL, OUTBOX_EINTERNAL, "internal", "a bug in outbox" },
	{ EXIT_MEMORY, OUTBOX_ENOMEM, "memory", "out of memory" },
	{ EXIT_SIGNAL, -1, "signal", "128 + N: ended early by signal N" },
};

int exit_of(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].status == status)
			return rows[i].code;
	return EXIT_INTERNAL;
}

const char *exit_name(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == code)
			return rows[i].name;
	return code > EXIT_SIGNAL ? "signal" : "internal";
}

const struct exit_row *exit_at(size_t i)
{
	return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}
