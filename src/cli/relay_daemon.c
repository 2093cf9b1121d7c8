/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources' threads do the work, this one waits for signals, so that a second Ctrl-C is heard while the first is still
 * being obeyed. SIGUSR1, from this process to itself, makes it look at the daemon again.
 */
#include "cli/relay_daemon.h"

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

static void announce(struct daemon *daemon)
{
	size_t batches, messages;

	daemon_in_flight(daemon, &batches, &messages);
	stop_announce(batches, messages);
}

static void reload(struct daemon *daemon, struct notify *notify)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct daemon_reloaded reloaded;

	if (!problems)
		return;
	notify_reloading(notify);
	/* what is wrong is in the log */
	if (daemon_reload(daemon, false, problems, &reloaded, &err))
		return;
}

/* *stopping: a signal asked for the end before. */
static void obey(struct daemon *daemon, struct notify *notify, int signal, bool *stopping)
{
	if (signal == SIGHUP) {
		reload(daemon, notify);
	} else if (*stopping) {
		stop_at_once(signal);
	} else {
		*stopping = true;
		announce(daemon);
		daemon_drain(daemon);
	}
}

/* Passwords are in our memory: no core file, and no other process of this user may look. */
static void keep_secrets(void)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
}

int relay_daemon_run(struct daemon *daemon, const sigset_t *signals, struct outbox_error *err)
{
	struct services *services = NULL;
	struct stop_wish last = { 0 };
	bool stopping = false, told = false;
	struct notify notify;
	sigset_t all = *signals;
	int r;

	sigaddset(&all, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	keep_secrets();
	notify_init(&notify);
	r = services_start(daemon, &services, err);
	if (r == OUTBOX_OK)
		r = daemon_start(daemon, err);
	if (r) {
		/* those that run tell the services of what they do */
		if (services)
			(void)daemon_stop(daemon, NULL);
		services_stop(services);
		return r;
	}
	while (daemon_phase(daemon) != DAEMON_DONE) {
		int signal;

		notify_look(&notify, daemon);
		if (daemon_draining(daemon) && !stopping && !told)
			announce(daemon); /* somebody else asked for it */
		told = daemon_draining(daemon);
		signal = stop_wait(&all, notify_wait(&notify));
		/* a second SIGHUP is about what was written after the first */
		if (signal && signal != SIGUSR1 && (signal == SIGHUP || !stop_repeats(&last, signal)))
			obey(daemon, &notify, signal, &stopping);
	}
	notify_look(&notify, daemon);
	r = daemon_stop(daemon, err);
	services_stop(services);
	return r;
}
