/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_RUN_H
#define CLI_RELAY_RUN_H

#include <outbox/relay.h>

enum relay_mode { RELAY_DAEMON = 1, RELAY_ONCE, RELAY_UNTIL_IDLE };

/* Relays that run side by side, one for each source. */
struct relay_runs {
	struct outbox_relay *const *relays;
	size_t count;
	enum relay_mode mode;
	outbox_time timeout;
	struct outbox_error *failed; /* how each ended; status 0: well */
};

/*
 * Run until all are done or told to stop: the first SIGINT, SIGTERM or SIGHUP lets the batches in flight
 * end within timeout, a second one leaves the process at once (exit code 128 + signal). ret_signal is the
 * signal that ended it, 0 for none. The signals must have been blocked with stop_block() before the
 * relays were made. An error is one of running at all; failed[] has those of the relays.
 */
int relay_run(const struct relay_runs *runs, int *ret_signal,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
