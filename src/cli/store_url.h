/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORE_URL_H
#define CLI_STORE_URL_H

/* Which store a command works on. */

#include "cli/cli.h"

/*
 * --store, a source of --config, else OUTBOX_STORE, else a source of OUTBOX_CONFIG; and how a command
 * that is suggested names it. EINVAL when it is not clear which one is meant.
 */
int store_choose(struct cli *cli, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A URL of a command line that has a password in it: say on stderr who can read that, and the remedy. */
void url_warn(const char *option, const char *url);

/* The same of --set KEY=VALUE. */
void sets_warn(const struct list *sets);

bool store_is_postgres(const char *url);

/* The same as schema=NAME in the store's URL. EINVAL when that says something else. */
int store_add_schema(struct cli *cli, const char *schema, struct outbox_error *err) OUTBOX_MUSTCHECK;

enum partition { PARTITION_NONE = 1, PARTITION_AUTO };
extern const char *const partition_names[];

#endif
