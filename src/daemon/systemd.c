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

void systemd_init(struct systemd *s)
{
	uint64_t limit = 0;

	*s = (struct systemd){ 0 };
	if (sd_watchdog_enabled(0, &limit) > 0)
		s->watchdog = (outbox_time)limit;
}

static void send_status(struct systemd *s, struct daemon *daemon)
{
	char status[sizeof(s->status)];

	daemon_describe(daemon, status, sizeof(status));
	if (strcmp(status, s->status) == 0)
		return;
	snprintf(s->status, sizeof(s->status), "%s", status);
	sd_notifyf(0, "STATUS=%s", status);
}

static void feed_watchdog(struct systemd *s, struct daemon *daemon)
{
	outbox_time patience = s->watchdog / 2 > PATIENCE ? s->watchdog / 2 : PATIENCE;

	if (!s->watchdog || mono_now() < s->feed_at)
		return;
	s->feed_at = mono_now() + s->watchdog / 3;
	if (daemon_alive(daemon, patience))
		sd_notify(0, "WATCHDOG=1");
}

void systemd_report(struct systemd *s, struct daemon *daemon)
{
	enum daemon_phase phase = daemon_phase(daemon);

	send_status(s, daemon);
	if (phase == DAEMON_READY && !s->ready) {
		s->ready = true;
		sd_notify(0, "READY=1");
	}
	if ((phase == DAEMON_DRAINING || phase == DAEMON_DONE) && !s->stopping) {
		s->stopping = true;
		sd_notify(0, "STOPPING=1");
	}
	feed_watchdog(s, daemon);
}

void systemd_reloading(struct systemd *s)
{
	s->ready = false;
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)mono_now());
}

outbox_time systemd_wait(const struct systemd *s)
{
	outbox_time wait = s->feed_at - mono_now();

	if (!s->watchdog || wait > OUTBOX_MINUTES)
		return OUTBOX_MINUTES;
	return wait > 0 ? wait : 0;
}
