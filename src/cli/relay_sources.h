/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_SOURCES_H
#define CLI_RELAY_SOURCES_H

/* A relay for each source, in one process: made one after the other, run side by side. */

#include "cli/relay_options.h"
#include "cli/relay_run.h"

#include <signal.h>

/* What came of it, filled in as far as it went, also when it failed. */
struct relay_end {
	bool ran;                          /* they were made, so there is something to count */
	struct outbox_relay_counts counts; /* of all of them */
	int signal;                        /* that ended it; 0: none */
};

int relay_sources_run(const struct relay_setup *setup, enum relay_mode mode, const sigset_t *signals,
		      struct relay_end *end, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
