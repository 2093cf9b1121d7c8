/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_GENERATION_H
#define DAEMON_GENERATION_H

/* A configuration in use, with a relay's own for each source; whoever uses it holds it. */

#include "config/config.h"

struct generation {
	struct config *config;
	struct outbox_relay_config *relays; /* in the order of config->sources */
	_Atomic int holders;
};

/* config is taken over, also on failure. */
int generation_new(struct config *config, struct generation **ret_generation,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
struct generation *generation_hold(struct generation *generation);
/* The last one frees it. NULL is legal. */
void generation_drop(struct generation *generation);

#endif
