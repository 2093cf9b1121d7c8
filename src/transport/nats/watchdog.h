/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_WATCHDOG_H
#define NATS_WATCHDOG_H

/*
 * libnats waits without end in three places: for the other side's part of a TLS handshake, for the rest of a TLS
 * record of which the beginning has come, and for the first PONG of a connection, where it notices its own timeout
 * and tries again. The watchdog is a thread that shuts the socket down when such a wait outlasts the deadline,
 * which ends it.
 */

#include <outbox/clock.h>

#include <stdbool.h>

struct watchdog;

/* NULL: out of memory or threads. */
struct watchdog *watchdog_new(void);
struct watchdog *watchdog_free(struct watchdog *watchdog);

/* Shut fd down in `left` from now, unless it is disarmed before. */
void watchdog_arm(struct watchdog *watchdog, int fd, outbox_time left);

/*
 * The same for a socket that only the library knows, while it connects: one to this port that was not there when
 * the dog was armed, and without SO_KEEPALIVE, which drivers set as soon as they know their socket. (Two that hang
 * at the same time in one process may end each other.)
 */
void watchdog_arm_connect(struct watchdog *watchdog, int port, outbox_time left);

/* NULL is legal. True: it was too late, it has bitten. */
bool watchdog_disarm(struct watchdog *watchdog);

#endif
