/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PUBLISH_LINES_H
#define CLI_PUBLISH_LINES_H

/* `outbox publish --from`: what was asked for, and what is said about it. */

#include "cli/cli.h"
#include "operate/lines/message_line.h"

struct publish_from {
	const char *path; /* "-": stdin */
	int format;       /* enum line_format */
	size_t batch;     /* 0: the default */
	bool skip_invalid, dry_run;
	const char *run; /* NULL: none */
};

/* The store is open. */
int publish_from(struct cli *cli, const struct publish_from *given,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
