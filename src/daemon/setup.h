/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SETUP_H
#define DAEMON_SETUP_H

/* How a daemon was started; the same for all its sources and as long as it runs. */

#include "relay/metrics.h"

#include <stddef.h>

enum daemon_mode {
	DAEMON_RUN = 0,   /* until it is asked to end */
	DAEMON_ONCE,      /* what is due now */
	DAEMON_UNTIL_IDLE /* until nothing is left but deferred and failed deliveries */
};

/* Gets a report of every settled batch of every source; must be quick and must not block. */
typedef void (*daemon_observer)(void *context, const char *source, const struct batch_report *report);

struct daemon_setup {
	enum daemon_mode mode;
	const char *file; /* NULL: the configuration was made of options, nothing can be read again */
	const char *const *sets;
	size_t n_sets;
	const char *only; /* run this source alone; NULL: all */
	/* Somebody who waits should look at the daemon again; from any thread, must be quick. NULL: nobody does. */
	void (*wake)(void);
	daemon_observer observer; /* NULL: nobody */
	void *observer_context;
};

static inline void setup_wake(const struct daemon_setup *setup)
{
	if (setup->wake)
		setup->wake();
}

#endif
