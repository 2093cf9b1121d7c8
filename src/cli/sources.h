/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SOURCES_H
#define CLI_SOURCES_H

/*
 * The store as a source of outbox.yaml: no URL and no password on the command line, where everybody on
 * the machine can read them.
 */

#include "cli/cli.h"

struct source_url {
	const char *name, *store;
};

/*
 * The source that --source names, or the only one; it becomes cli->store_url. With several and none
 * named, a command that can (COMMAND_MANY) gets all of them; for others that is EINVAL with the names.
 */
int sources_choose(struct cli *cli, const char *file, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Go on with cli->sources[i]; what was open is closed. */
void sources_use(struct cli *cli, size_t i);

void sources_drop(struct cli *cli);

#endif
