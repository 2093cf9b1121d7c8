/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

/* A progress bar on stderr, shown only when that is a terminal and gone when the work is done. */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "requeued" */
	int64_t total;    /* 0: not known */
	outbox_time began, shown;
	bool on;
};

void progress_start(struct progress *progress, const char *what, int64_t total);
void progress_show(struct progress *progress, int64_t done);
void progress_end(struct progress *progress);

#endif
