/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RELAY_DAEMON_H
#define CLI_RELAY_DAEMON_H

#include "daemon/daemon.h"

#include <signal.h>

/*
 * Run the daemon until it ends by itself or is told to: SIGINT and SIGTERM drain it, a second one leaves the process at
 * once (exit code 128 + signal), SIGHUP reads the configuration again, or ends what would end by itself. The signals
 * must have been blocked with signals_block() before any thread was started. *ret_signal: which one ended it; 0: none. What
 * daemon_stop() says is returned.
 */
int relay_daemon_run(struct daemon *daemon, const sigset_t *signals, int *ret_signal,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* For struct daemon_setup. */
void relay_daemon_wake(void);

#endif
