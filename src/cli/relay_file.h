/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_FILE_H
#define CLI_RELAY_FILE_H

#include "cli/relay_options.h"
#include "config/config.h"

/*
 * The configuration that says what `outbox relay`'s options say, so that a daemon has one way to its relays. The options
 * were checked by relay_setup_make() before, in their own words.
 */
int relay_file_make(const struct relay_values *given, const char *store, struct config **ret_config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
