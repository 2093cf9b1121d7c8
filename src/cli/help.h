/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

#define COMMON_MAX 5

/* The options that every command with these flags takes; the values go to struct cli. */
size_t common_options(unsigned flags, struct field ret_options[COMMON_MAX]);

/* `outbox COMMAND --help`, for people or as JSON. */
int help_command(const struct cli *cli, const struct command *command,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* `outbox policy --help`: the commands that begin with this word. False: there are none. */
bool help_family(const struct cli *cli, const char *word);

/* The command of this name or alias, or NULL. */
const struct command *command_find(const char *name);

/* EINVAL: "unknown command ...; did you mean ...?" */
int command_unknown(const char *name, struct outbox_error *err);

#endif
