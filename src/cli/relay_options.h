/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_OPTIONS_H
#define CLI_RELAY_OPTIONS_H

/* From `outbox relay`'s options, many of them NAME=VALUE, to the relay's configuration. */

#include "cli/cli.h"

struct relay_values {
	struct list to, match, envelope, order, start, kind, policy, hold;
	int64_t workers, batch, batch_bytes;
	outbox_time lease, poll, retain_delivered, retain_failed, shutdown_timeout;
	const char *instance;
	bool once, until_idle;
};

struct relay_setup {
	struct outbox_relay_config config;
	struct outbox_target_config targets[LIST_MAX];
	char names[LIST_MAX][OUTBOX_TARGET_NAME_MAX + 1];
	const char *types[LIST_MAX][LIST_MAX];
	size_t count;
};

/* ret_setup is large (allocate it) and borrows the values' texts. */
int relay_setup_make(const struct relay_values *given, struct relay_setup *ret_setup,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
