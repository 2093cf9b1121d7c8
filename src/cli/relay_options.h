/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_OPTIONS_H
#define CLI_RELAY_OPTIONS_H

/* From `outbox relay`'s options, many of them NAME=VALUE, to the relay's configuration. */

#include "cli/cli.h"

struct relay_values {
	struct list to, match, envelope, order, start, dead_letter, kind, policy, hold, bands, rate;
	int64_t workers, batch, batch_bytes;
	outbox_time lease, poll, retain_delivered, retain_failed, shutdown_timeout;
	const char *instance, *listen;
	const char *config, *source;
	struct list set;
	bool once, until_idle;
};

struct relay_source {
	const char *name; /* NULL: there is only one */
	const char *store;
	const struct outbox_target_config *targets; /* NULL: those of the setup */
	size_t n_targets;
};

/* However it was said, with options or in a file: what to run. */
struct relay_setup {
	struct outbox_relay_config config; /* for each source; its store is the source's */
	struct relay_source sources[LIST_MAX];
	size_t n_sources;
	outbox_time shutdown_timeout;
	struct config *file; /* what config borrows from; NULL: the options */
	const char *file_name;
	/* of the options */
	struct outbox_target_config targets[LIST_MAX];
	char names[LIST_MAX][OUTBOX_TARGET_NAME_MAX + 1];
	const char *types[LIST_MAX][LIST_MAX];
	size_t count;
};

/*
 * ret_setup is large (allocate it, zeroed) and borrows the values' texts. With --config the sources are
 * the file's; else there are none yet, the store is a matter of all commands.
 */
int relay_setup_make(const struct relay_values *given, struct relay_setup *ret_setup,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
/* EINVAL for an option that a file says instead. */
int relay_values_refuse(const struct relay_values *given, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct relay_setup *relay_setup_free(struct relay_setup *setup);

DEFINE_CLEANUP(struct relay_setup *, relay_setup_free)

#endif
