/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources' threads do the work, this one waits for signals, so that a second Ctrl-C is heard while the first is still
 * being obeyed. SIGUSR1, from this process to itself, makes it look at the daemon again.
 */
#include "cli/relay_daemon.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/services.h"
#include "cli/signals.h"
#include "daemon/systemd.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void relay_daemon_wake(void)
{
	kill(getpid(), SIGUSR1);
}

static void reload(struct daemon *daemon, struct systemd *systemd)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct daemon_reloaded reloaded;

	if (!problems)
		return;
	systemd_reloading(systemd);
	/* what is wrong is in the log */
	if (daemon_reload(daemon, false, problems, &reloaded, &err))
		return;
}

/* Passwords are in our memory: no core file, and no other process of this user may look. */
static void keep_secrets(void)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
}

struct loop {
	struct daemon *daemon;
	struct systemd systemd;
	sigset_t signals;
	struct signal_wish last;
	int first;            /* the signal that asked for the end; 0: none did */
	outbox_time leave_at; /* mono: a single run does not hear of an end and is cut off then */
	bool announced;
};

static void announce_end(struct loop *loop)
{
	size_t batches, messages;

	daemon_in_flight(loop->daemon, &batches, &messages);
	signals_announce(batches, messages);
	loop->announced = true;
}

static void begin_end(struct loop *loop, int signal)
{
	const struct config *config = daemon_config(loop->daemon);

	loop->first = signal;
	if (daemon_mode(loop->daemon) == DAEMON_ONCE)
		loop->leave_at = mono_now() + config->relay.shutdown_timeout;
	daemon_config_done(loop->daemon, config);
	announce_end(loop);
	daemon_drain(loop->daemon);
}

static void obey_signal(struct loop *loop, int signal)
{
	if (signal == SIGHUP && daemon_mode(loop->daemon) == DAEMON_RUN)
		reload(loop->daemon,
		       &loop->systemd); /* a second one is about what was written after the first */
	else if (signal == SIGUSR1 || signals_repeat(&loop->last, signal))
		return;
	else if (loop->first)
		signals_leave(signal);
	else
		begin_end(loop, signal);
}

static void wait_for_end(struct loop *loop)
{
	while (daemon_phase(loop->daemon) != DAEMON_DONE) {
		outbox_time wait = systemd_wait(&loop->systemd), left = loop->leave_at - mono_now();
		int signal;

		systemd_report(&loop->systemd, loop->daemon);
		if (left <= 0)
			signals_leave(loop->first);
		if (daemon_draining(loop->daemon) && !loop->announced)
			announce_end(loop); /* somebody else asked for it */
		signal = signals_wait(&loop->signals, left < wait ? left : wait);
		if (signal)
			obey_signal(loop, signal);
	}
	systemd_report(&loop->systemd, loop->daemon);
}

int relay_daemon_run(struct daemon *daemon, const sigset_t *signals, int *ret_signal,
		     struct outbox_error *err)
{
	struct loop loop = { .daemon = daemon, .signals = *signals, .leave_at = OUTBOX_NEVER };
	struct services *services = NULL;
	int r = OUTBOX_OK;

	sigaddset(&loop.signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &loop.signals, NULL);
	keep_secrets();
	systemd_init(&loop.systemd);
	if (daemon_mode(daemon) == DAEMON_RUN)
		r = services_start(daemon, &services, err);
	if (r == OUTBOX_OK)
		r = daemon_start(daemon, err);
	if (r == OUTBOX_OK) {
		wait_for_end(&loop);
		*ret_signal = loop.first;
		r = daemon_stop(daemon, err);
	} else if (services) {
		/* those that run tell the services of what they do */
		(void)daemon_stop(daemon, NULL);
	}
	services_stop(services);
	return r;
}
