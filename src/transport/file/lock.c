/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer at a time, so that lines never interleave and nobody repairs a tail that is still being
 * written. A file is locked with flock(), which belongs to the open file: every transport opens its
 * own, so it also keeps workers of one process apart, and a killed process lets go at once. Standard
 * output is one open file for all, so there a mutex does it; it is global because standard output is.
 *
 * Both are asked for again and again with short sleeps: a blocking flock() knows no deadline.
 */

#include "transport/file/file.h"

#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <time.h>

#define PAUSE_MIN (200 * OUTBOX_MICROSECONDS)
#define PAUSE_MAX (5 * OUTBOX_MILLISECONDS)

static pthread_mutex_t stdout_turn = PTHREAD_MUTEX_INITIALIZER;

/* 0, or EWOULDBLOCK while somebody else writes, or what is wrong. */
static int try_lock(const struct file_transport *file)
{
	if (!file->path)
		return pthread_mutex_trylock(&stdout_turn) == 0 ? 0 : EWOULDBLOCK;
	return flock(file->fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

static void pause_for(outbox_time pause)
{
	struct timespec time = { .tv_sec = 0, .tv_nsec = (long)(pause * 1000) };

	nanosleep(&time, NULL);
}

int file_lock(struct file_transport *file, outbox_time deadline, struct outbox_error *err)
{
	outbox_time started = file->clock->mono(file->clock);
	outbox_time pause = PAUSE_MIN, slept = 0;

	for (;;) {
		int number = try_lock(file);

		if (number == 0)
			return OUTBOX_OK;
		if (number != EWOULDBLOCK && number != EINTR)
			return file_fail(file, number, "cannot lock", err);
		/* What was slept counts too: a frozen clock must not make this endless. */
		if (file->clock->mono(file->clock) >= deadline || slept >= deadline - started)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "%s: another writer kept it locked until the deadline",
					   file->shown);
		pause_for(pause);
		slept += pause;
		pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
	}
}

void file_unlock(struct file_transport *file)
{
	if (!file->path)
		pthread_mutex_unlock(&stdout_turn);
	else if (file->fd >= 0)
		flock(file->fd, LOCK_UN);
}
