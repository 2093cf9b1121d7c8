/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/notes.h"

#include <outbox/clock.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* A server that complains without end is not listened to without end. */
#define NOTES_MAX 4096
#define CLOSED_WAIT (100 * OUTBOX_MILLISECONDS)

struct notes {
	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t closed;
	int refs;
	int fd;
	char *texts[NOTES_MAX]; /* a ring */
	size_t first, count;
};

struct notes *notes_new(void)
{
	struct notes *notes = calloc(1, sizeof(*notes));
	pthread_condattr_t attributes;

	if (!notes)
		return NULL;
	notes->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notes->fd < 0) {
		free(notes);
		return NULL;
	}
	pthread_mutex_init(&notes->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&notes->closed, &attributes);
	pthread_condattr_destroy(&attributes);
	notes->refs = 1;
	return notes;
}

struct notes *notes_unref(struct notes *notes)
{
	int refs;

	if (!notes)
		return NULL;
	pthread_mutex_lock(&notes->mutex);
	refs = --notes->refs;
	if (refs == 1)
		pthread_cond_signal(&notes->closed);
	pthread_mutex_unlock(&notes->mutex);
	if (refs > 0)
		return NULL;
	while (notes->count > 0) {
		free(notes->texts[notes->first]);
		notes->first = (notes->first + 1) % NOTES_MAX;
		notes->count--;
	}
	close(notes->fd);
	pthread_cond_destroy(&notes->closed);
	pthread_mutex_destroy(&notes->mutex);
	free(notes);
	return NULL;
}

int notes_fd(const struct notes *notes)
{
	return notes->fd;
}

static void on_error(natsConnection *nc, natsSubscription *subscription, natsStatus status,
		     void *closure)
{
	struct notes *notes = closure;
	const char *text = nats_GetLastError(NULL);
	char *copy;

	(void)nc;
	(void)subscription;
	copy = strdup(text ? text : natsStatus_GetText(status));
	if (!copy)
		return;
	pthread_mutex_lock(&notes->mutex);
	if (notes->count < NOTES_MAX) {
		notes->texts[(notes->first + notes->count++) % NOTES_MAX] = copy;
		copy = NULL;
	}
	eventfd_write(notes->fd, 1);
	pthread_mutex_unlock(&notes->mutex);
	free(copy);
}

static void on_closed(natsConnection *nc, void *closure)
{
	(void)nc;
	notes_unref(closure);
}

natsStatus notes_attach(struct notes *notes, natsOptions *options)
{
	natsStatus s = natsOptions_SetErrorHandler(options, on_error, notes);

	if (s == NATS_OK)
		s = natsOptions_SetClosedCB(options, on_closed, notes);
	if (s != NATS_OK)
		return s;
	pthread_mutex_lock(&notes->mutex);
	notes->refs++;
	pthread_mutex_unlock(&notes->mutex);
	return NATS_OK;
}

void notes_detach(struct notes *notes)
{
	notes_unref(notes);
}

void notes_await_closed(struct notes *notes)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time at = clock->mono(clock) + CLOSED_WAIT;
	struct timespec limit = { .tv_sec = at / OUTBOX_SECONDS,
				  .tv_nsec = at % OUTBOX_SECONDS * 1000 };

	pthread_mutex_lock(&notes->mutex);
	while (notes->refs > 1)
		if (pthread_cond_timedwait(&notes->closed, &notes->mutex, &limit) != 0)
			break;
	pthread_mutex_unlock(&notes->mutex);
}

char *notes_take(struct notes *notes)
{
	char *text = NULL;
	eventfd_t ignored;

	pthread_mutex_lock(&notes->mutex);
	if (notes->count > 0) {
		text = notes->texts[notes->first];
		notes->first = (notes->first + 1) % NOTES_MAX;
		notes->count--;
	}
	if (notes->count == 0)
		eventfd_read(notes->fd, &ignored);
	pthread_mutex_unlock(&notes->mutex);
	return text;
}
