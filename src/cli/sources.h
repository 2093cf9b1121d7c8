/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SOURCES_H
#define CLI_SOURCES_H

/*
 * The store as a source of outbox.yaml: no URL and no password on the command line, where everybody on
 * the machine can read them.
 */

#include "cli/cli.h"

#include <jansson.h>

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

/* What a command does with one source; name is NULL where the store was named. *ret_json: what it says with --json. */
typedef int (*source_fn)(struct cli *cli, const char *name, void *context, json_t **ret_json,
			 struct outbox_error *err);

/*
 * Do it with every source that was chosen. Of several, one that fails is told in its place and hides no other: the
 * exit code is that of the first of them, and with --json the answers are in {"sources": [...]}, each with its name.
 * headed: for people the name of each is printed first.
 */
int sources_each(struct cli *cli, source_fn one, void *context, bool headed,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The same for what only one of them has, usually: cli->store is open, and where one() says ENOTFOUND nothing is told.
 * ENOTFOUND when none has it; ECONN when one that may have it cannot be asked.
 */
int sources_find(struct cli *cli, source_fn one, void *context,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
