/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_OPTIONS_H
#define CLI_RELAY_OPTIONS_H

/* From `outbox relay`'s options, many of them NAME=VALUE, or from the file that they name, to a configuration. */

#include "cli/cli.h"
#include "daemon/daemon.h"

struct relay_values {
	struct list to, match, match_header, envelope, order, start, dead_letter, kind, policy,
		hold, bands, rate, max_size;
	const char *workers, *batch, *batch_bytes, *lease, *poll;
	const char *retain_delivered, *retain_failed, *shutdown_timeout, *instance, *listen;
	const char *config, *source;
	struct list set;
	bool once, until_idle;
};

/* ret_setup borrows the values' texts, the configuration is a copy. EINVAL names the option and the remedy. */
int relay_configure(struct cli *cli, const struct relay_values *given,
		    struct daemon_setup *ret_setup, struct config **ret_config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
