/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SYSTEMD_H
#define DAEMON_SYSTEMD_H

/* The service manager, where there is one (NOTIFY_SOCKET, WATCHDOG_USEC). Without one all of it does nothing. */

#include "daemon/daemon.h"

struct systemd {
	bool ready, stopping;
	char status[400];     /* as it was last sent */
	outbox_time watchdog; /* the manager's limit; 0: none */
	outbox_time feed_at;  /* mono: the next sign of life is due */
};

void systemd_init(struct systemd *s);

/* Tell what is new: readiness, the status line, the end; and that we live, if we do. */
void systemd_report(struct systemd *s, struct daemon *daemon);

/* A reload begins; systemd_report() reports its end. */
void systemd_reloading(struct systemd *s);

/* How long until it wants to look again. */
outbox_time systemd_wait(const struct systemd *s);

#endif
