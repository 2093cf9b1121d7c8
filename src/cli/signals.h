/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

/* SIGINT, SIGTERM and SIGHUP as requests to end, for commands that run until they are told to. */

#include <outbox/clock.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Block them in this thread and all it starts; what arrives is kept until it is asked for. */
void signals_block(sigset_t *ret_set);

/* timeout(1) and others signal the process and its group: two signals, one wish. Zeroed before the first. */
struct signal_wish {
	int signal;
	outbox_time at;
};
bool signals_repeat(struct signal_wish *last, int signal);

/* Wait up to `wait` for one of the set; 0 when none came. */
int signals_wait(const sigset_t *set, outbox_time wait);

/* The end was asked for: say what is still in flight. */
void signals_announce(size_t batches, size_t messages);

/* End here, with whatever is in flight. */
_Noreturn void signals_leave(int signal);

#endif
