/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EXITS_H
#define CLI_EXITS_H

/* Exit codes: documented in outbox(1) and stable. The table in exits.c is the only place. */

#include <stddef.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_REPORTED = 1,
	EXIT_USAGE = 2,
	EXIT_DUE = 2, /* upgrade --check, as other tools that plan changes do */
	EXIT_NOT_FOUND = 3,
	EXIT_CONFLICT = 4,
	EXIT_UNREACHABLE = 5,
	EXIT_AUTH = 6,
	EXIT_SCHEMA = 7,
	EXIT_FULL = 8,
	EXIT_FENCED = 9,
	EXIT_NOT_CONFIRMED = 10,
	EXIT_BUSY = 11,
	EXIT_TIMED_OUT = 12,
	EXIT_UNSUPPORTED = 13,
	EXIT_BAD_DATA = 14,
	EXIT_INTERNAL = 70,
	EXIT_MEMORY = 71,
	EXIT_SIGNAL = 128 /* plus the signal's number */
};

struct exit_row {
	int code;
	int status;       /* enum outbox_status that leads here; -1: none */
	const char *name; /* for JSON */
	const char *meaning;
};

/* The exit code for an enum outbox_status. */
int exit_of(int status);

/* The name of a code, "notfound"; "signal" for codes from 128 on. */
const char *exit_name(int code);

/* The i-th row; NULL behind the last. Rows of one code stand together, the first has the meaning. */
const struct exit_row *exit_at(size_t i);

#endif
