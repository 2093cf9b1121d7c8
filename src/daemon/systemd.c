/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READY once every source was tried: a database that is away is no reason to fail the unit, since the source is tried
 * for ever and STATUS names it. The watchdog gets its sign of life from the thread that obeys signals, and only while no
 * worker and no start is stuck in one call for longer than any of them may take.
 *
 * The protocol is a datagram for each state, and stable: sd_notify(3) shows it for programs without libsystemd, which
 * would bring four more libraries into every start of the program.
 */
#include "daemon/systemd.h"

#include "base/clock.h"
#include "base/text.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE (30 * OUTBOX_SECONDS)

/* A manager that does not listen is no concern of the relay. */
static void notify(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length > sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, length);
	if (path[0] == '@') /* an abstract address, which begins with NUL */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

/* WATCHDOG_PID is there to keep a parent's watchdog from its children. */
static outbox_time watchdog_limit(void)
{
	const char *limit_text = getenv("WATCHDOG_USEC"), *pid_text = getenv("WATCHDOG_PID");
	int64_t limit, pid;

	if (!limit_text || number_parse("WATCHDOG_USEC", limit_text, 1, INT64_MAX, &limit, NULL))
		return 0;
	if (pid_text &&
	    (number_parse("WATCHDOG_PID", pid_text, 1, INT32_MAX, &pid, NULL) || pid != getpid()))
		return 0;
	return limit;
}

void systemd_init(struct systemd *s)
{
	*s = (struct systemd){ .watchdog = watchdog_limit() };
}

static void send_status(struct systemd *s, struct daemon *daemon)
{
	char status[sizeof(s->status)], state[sizeof(status) + sizeof("STATUS=")];

	daemon_describe(daemon, status, sizeof(status));
	if (strcmp(status, s->status) == 0)
		return;
	snprintf(s->status, sizeof(s->status), "%s", status);
	snprintf(state, sizeof(state), "STATUS=%s", status);
	notify(state);
}

static void feed_watchdog(struct systemd *s, struct daemon *daemon)
{
	outbox_time patience = s->watchdog / 2 > PATIENCE ? s->watchdog / 2 : PATIENCE;

	if (!s->watchdog || mono_now() < s->feed_at)
		return;
	s->feed_at = mono_now() + s->watchdog / 3;
	if (daemon_alive(daemon, patience))
		notify("WATCHDOG=1");
}

void systemd_report(struct systemd *s, struct daemon *daemon)
{
	enum daemon_phase phase = daemon_phase(daemon);

	send_status(s, daemon);
	if (phase == DAEMON_READY && !s->ready) {
		s->ready = true;
		notify("READY=1");
	}
	if ((phase == DAEMON_DRAINING || phase == DAEMON_DONE) && !s->stopping) {
		s->stopping = true;
		notify("STOPPING=1");
	}
	feed_watchdog(s, daemon);
}

void systemd_reloading(struct systemd *s)
{
	char state[64];

	s->ready = false;
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)mono_now());
	notify(state);
}

outbox_time systemd_wait(const struct systemd *s)
{
	outbox_time wait = s->feed_at - mono_now();

	if (!s->watchdog || wait > OUTBOX_MINUTES)
		return OUTBOX_MINUTES;
	return wait > 0 ? wait : 0;
}
