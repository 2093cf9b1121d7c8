/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFIG_FILE_H
#define CLI_CONFIG_FILE_H

/* --config FILE and --set KEY=VALUE, for the commands that take them. */

#include "cli/cli.h"
#include "config/config.h"
#include "daemon/configure.h"

#define CONFIG_FILE "outbox.yaml" /* where none is named */

/*
 * Load with this process's environment, and check what only the drivers and the engine know, and all files that are
 * named. ECONFIG: problems says what is wrong, err how many there are; without problems err says it. ENOTFOUND: no
 * file.
 */
int config_check(const char *file, const struct list *sets, struct config **ret_config,
		 struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A line each on stderr, as a compiler does. */
void problems_tell(const struct problems *problems);

/* The same without the files of the admin server, which only the relay reads; every problem is told. */
int config_open_told(const char *file, const struct list *sets, bool secrets,
		     struct config **ret_config, struct outbox_error *err) OUTBOX_MUSTCHECK;

DEFINE_CLEANUP(struct config *, config_free)

#endif
