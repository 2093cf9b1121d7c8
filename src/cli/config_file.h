/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFIG_FILE_H
#define CLI_CONFIG_FILE_H

/* --config FILE and --set KEY=VALUE, for the commands that take them. */

#include "cli/cli.h"
#include "config/config.h"
#include "daemon/configure.h"

#define CONFIG_FILE "outbox.yaml" /* where none is named */

/* A line each on stderr, as a compiler does. */
void problems_tell(const struct problems *problems);

/* configure() with this process's environment, without the files of the admin server; every problem is printed. */
int config_open_told(const char *file, const struct list *sets, bool secrets,
		     struct config **ret_config, struct outbox_error *err) OUTBOX_MUSTCHECK;

DEFINE_CLEANUP(struct config *, config_free)

#endif
