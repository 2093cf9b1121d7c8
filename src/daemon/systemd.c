/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READY once every source was tried: a database that is away is no reason to fail the unit, since the source is tried
 * for ever and STATUS names it. The watchdog gets its sign of life from the thread that obeys signals, and only while no
 * worker and no start is stuck in one call for longer than any of them may take.
 */
#include "daemon/systemd.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define PATIENCE (30 * OUTBOX_SECONDS)

void systemd_init(struct systemd *n)
{
	uint64_t limit = 0;

	*n = (struct systemd){ 0 };
	if (sd_watchdog_enabled(0, &limit) > 0)
		n->watchdog = (outbox_time)limit;
}

static void send_status(struct systemd *n, struct daemon *daemon)
{
	char status[sizeof(n->status)];

	daemon_describe(daemon, status, sizeof(status));
	if (strcmp(status, n->status) == 0)
		return;
	snprintf(n->status, sizeof(n->status), "%s", status);
	sd_notifyf(0, "STATUS=%s", status);
}

static void feed_watchdog(struct systemd *n, struct daemon *daemon)
{
	outbox_time patience = n->watchdog / 2 > PATIENCE ? n->watchdog / 2 : PATIENCE;

	if (!n->watchdog || mono_now() < n->feed_at)
		return;
	n->feed_at = mono_now() + n->watchdog / 3;
	if (daemon_alive(daemon, patience))
		sd_notify(0, "WATCHDOG=1");
}

void systemd_report(struct systemd *n, struct daemon *daemon)
{
	enum daemon_phase phase = daemon_phase(daemon);

	send_status(n, daemon);
	if (phase == DAEMON_READY && !n->ready) {
		n->ready = true;
		sd_notify(0, "READY=1");
	}
	if ((phase == DAEMON_DRAINING || phase == DAEMON_DONE) && !n->stopping) {
		n->stopping = true;
		sd_notify(0, "STOPPING=1");
	}
	feed_watchdog(n, daemon);
}

void systemd_reloading(struct systemd *n)
{
	n->ready = false;
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)mono_now());
}

outbox_time systemd_wait(const struct systemd *n)
{
	outbox_time wait = n->feed_at - mono_now();

	if (!n->watchdog || wait > OUTBOX_MINUTES)
		return OUTBOX_MINUTES;
	return wait > 0 ? wait : 0;
}
