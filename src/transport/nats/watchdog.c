/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/watchdog.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define KNOWN_MAX 256

struct watchdog {
	pthread_t thread;
	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t changed;
	bool ending, armed, bitten;
	struct timespec when;
	int fd;   /* -1: find it */
	int port; /* to find it by */
	ino_t known[KNOWN_MAX];
	size_t n_known;
};

/* ---- finding the socket of a connect() -------------------------------------------------------------- */

/* Is it a TCP socket to that port, and none that a driver has taken into use? */
static bool is_connecting(int fd, int port)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t size = sizeof(peer), one = sizeof(int);
	int used = 0;

	if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &used, &one) != 0 || used)
		return false;
	if (peer.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&peer)->sin_port) == port;
	if (peer.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&peer)->sin6_port) == port;
	return false;
}

static void look_at(struct watchdog *w, int fd, bool note)
{
	struct stat st;

	if (!is_connecting(fd, w->port) || fstat(fd, &st) != 0)
		return;
	for (size_t i = 0; i < w->n_known; i++)
		if (w->known[i] == st.st_ino)
			return;
	if (!note)
		shutdown(fd, SHUT_RDWR);
	else if (w->n_known < KNOWN_MAX)
		w->known[w->n_known++] = st.st_ino;
}

/* Note every candidate that is there (note), or shut down those that were not. */
static void look_around(struct watchdog *w, bool note)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) /* NOLINT(concurrency-mt-unsafe): its own DIR */
		if (entry->d_name[0] != '.')
			look_at(w, (int)strtol(entry->d_name, NULL, 10), note);
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
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time at;

	if (left < 0)
		left = 0;
	if (left > OUTBOX_DAYS)
		left = OUTBOX_DAYS;
	pthread_mutex_lock(&w->mutex);
	w->fd = fd;
	w->port = port;
	w->n_known = 0;
	if (fd < 0)
		look_around(w, true);
	/* Real time, also where a test owns the clock: the wait it ends is real. */
	at = clock->mono(clock) + left;
	w->when = (struct timespec){ .tv_sec = at / OUTBOX_SECONDS,
				     .tv_nsec = at % OUTBOX_SECONDS * 1000 };
	w->armed = true;
	w->bitten = false;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

void watchdog_arm(struct watchdog *w, int fd, outbox_time left)
{
	arm(w, fd, 0, left);
}

void watchdog_arm_connect(struct watchdog *w, int port, outbox_time left)
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
