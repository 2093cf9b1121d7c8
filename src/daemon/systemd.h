/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SYSTEMD_H
#define DAEMON_SYSTEMD_H

/* The service manager, where there is one (NOTIFY_SOCKET, WATCHDOG_USEC). Without one all of it does nothing. */

#include "daemon/daemon.h"

struct notify {
	bool ready, stopping;
	char status[400];     /* as it was last sent */
	outbox_time watchdog; /* the manager's limit; 0: none */
	outbox_time feed_at;  /* mono: the next sign of life is due */
};

void notify_init(struct notify *notify);

/* Tell what is new: readiness, the status line, the end; and that we live, if we do. */
void notify_look(struct notify *notify, struct daemon *daemon);

/* A reload begins; notify_look() reports its end. */
void notify_reloading(struct notify *notify);

/* How long until it wants to look again. */
outbox_time notify_wait(const struct notify *notify);

#endif
