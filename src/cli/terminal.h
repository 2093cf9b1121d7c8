/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* A person at a terminal: asked before something cannot be undone, shown how far the work is. */

#include "cli/cli.h"
#include "cli/signals.h"
#include "operate/bulk.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Asking before something cannot be undone. Only a person at a terminal is asked; a script must say
 * --yes. Not confirmed is a failure with an exit code of its own.
 */

/* The person must type name. what: "drop removes every message and ..." */
int confirm_name(struct cli *cli, bool yes, const char *what, const char *name,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* y or n. question: "requeue 1,204 deliveries to partner" */
int confirm_yes(struct cli *cli, bool yes, const char *question,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Work in bulk, which a signal ends between two pages. A progress bar is on stderr if that is a terminal, and gone when
 * the work is done.
 */
struct shown_work {
	struct bulk bulk; /* hand this in */
	const char *what; /* "requeued" */
	int64_t total;    /* 0: not known */
	outbox_time began, shown;
	bool bar;    /* somebody sees it */
	double rate; /* not faster than so many a second; 0: as fast as it can */
	sigset_t signals;
	int signal; /* that ended it; 0: none */
};

void work_begin(struct shown_work *work, const char *what, int64_t total);
void work_end(struct shown_work *work);

#endif
