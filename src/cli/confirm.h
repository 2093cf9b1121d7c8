/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFIRM_H
#define CLI_CONFIRM_H

/*
 * Asking before something cannot be undone. Only a person at a terminal is asked; a script must say
 * --yes. Not confirmed is a failure with an exit code of its own.
 */

#include "cli/cli.h"

/* The person must type name. what: "drop removes every message and ..." */
int confirm_name(struct cli *cli, bool yes, const char *what, const char *name,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* y or n. question: "requeue 1,204 deliveries to partner" */
int confirm_yes(struct cli *cli, bool yes, const char *question,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
