/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/watchdog.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Descriptors above are taken as new ones. */
#define KNOWN_MAX 65536

struct watchdog {
	pthread_t thread;
	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t changed;
	bool ending, armed, bitten;
	struct timespec when;
	int fd;   /* -1: find it */
	int port; /* to find it by */
	unsigned char known[KNOWN_MAX / 8];
};

/* ---- finding the socket of a handshake ---------------------------------------------------------- */

/* Is it a TCP socket, blocking, connected to that port? */
static bool in_handshake(int fd, int port)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_NONBLOCK) ||
	    getpeername(fd, (struct sockaddr *)&peer, &size) != 0)
		return false;
	if (peer.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&peer)->sin_port) == port;
	if (peer.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&peer)->sin6_port) == port;
	return false;
}

/* Note every candidate that is there (note), or shut down those that were not. */
static void look_around(struct watchdog *w, bool note)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	if (note)
		memset(w->known, 0, sizeof(w->known));
	while (folder && (entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe): its own DIR */
		long fd = strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.' || fd < 0 || fd >= KNOWN_MAX ||
		    !in_handshake((int)fd, w->port))
			continue;
		if (note)
			w->known[fd / 8] |= (unsigned char)(1u << (fd % 8));
		else if (!(w->known[fd / 8] & (1u << (fd % 8))))
			shutdown((int)fd, SHUT_RDWR);
	}
	if (folder)
		closedir(folder);
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void *watch(void *argument)
{
	struct watchdog *w = argument;

	pthread_mutex_lock(&w->mutex);
	while (!w->ending) {
		int r;

		if (!w->armed) {
			pthread_cond_wait(&w->changed, &w->mutex);
			continue;
		}
		r = pthread_cond_timedwait(&w->changed, &w->mutex, &w->when);
		if (r != ETIMEDOUT || !w->armed || w->ending)
			continue;
		w->armed = false;
		w->bitten = true;
		if (w->fd >= 0)
			shutdown(w->fd, SHUT_RDWR);
		else
			look_around(w, false);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static bool start(struct watchdog *w)
{
	sigset_t all, before;
	bool started;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	started = pthread_create(&w->thread, NULL, watch, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

struct watchdog *watchdog_new(void)
{
	struct watchdog *w = calloc(1, sizeof(*w));
	pthread_condattr_t attributes;

	if (!w)
		return NULL;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (start(w))
		return w;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->mutex);
	free(w);
	return NULL;
}

struct watchdog *watchdog_free(struct watchdog *w)
{
	if (!w)
		return NULL;
	pthread_mutex_lock(&w->mutex);
	w->ending = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->mutex);
	free(w);
	return NULL;
}

static void arm(struct watchdog *w, int fd, int port, outbox_time left)
{
	outbox_time at;

	if (left < 0)
		left = 0;
	if (left > OUTBOX_DAYS)
		left = OUTBOX_DAYS;
	pthread_mutex_lock(&w->mutex);
	w->fd = fd;
	w->port = port;
	if (fd < 0)
		look_around(w, true);
	/* Real time, also where a test owns the clock: the wait it ends is real. */
	clock_gettime(CLOCK_MONOTONIC, &w->when);
	at = w->when.tv_nsec / 1000 + left;
	w->when.tv_sec += at / OUTBOX_SECONDS;
	w->when.tv_nsec = at % OUTBOX_SECONDS * 1000;
	w->armed = true;
	w->bitten = false;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

void watchdog_arm(struct watchdog *w, int fd, outbox_time left)
{
	arm(w, fd, 0, left);
}

void watchdog_arm_handshake(struct watchdog *w, int port, outbox_time left)
{
	arm(w, -1, port, left);
}

bool watchdog_disarm(struct watchdog *w)
{
	bool bitten;

	if (!w)
		return false;
	pthread_mutex_lock(&w->mutex);
	w->armed = false;
	bitten = w->bitten;
	pthread_mutex_unlock(&w->mutex);
	return bitten;
}
