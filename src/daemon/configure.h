/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONFIGURE_H
#define DAEMON_CONFIGURE_H

/* A configuration that can be run: what config_read() checks, and what only the drivers and the engine know. */

#include "config/config.h"

/*
 * Nothing is connected to and nothing is written. ECONFIG: problems says what is wrong, err how many there are; without
 * problems err says it. ENOTFOUND: no file.
 */
int configure(const struct config_input *input, struct config **ret_config,
	      struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * What only the databases know, of a configuration that is good: can each source be opened, has it an outbox of this
 * version, does every new target say where it starts. Nothing is written. ECONFIG: problems says what is wrong.
 */
int configure_connect(const struct config *config, struct problems *problems,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The source of this name; NULL: the only one. ENOTFOUND or EINVAL, with the names there are. */
int config_source_find(const struct config *config, const char *name,
		       const struct config_source **ret_source,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
