/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_INTERNAL_H
#define DAEMON_INTERNAL_H

#include "daemon/source.h"
#include "fields/fields.h"

struct daemon {
	struct daemon_setup setup;
	struct generation *first;  /* held; what the process was started with */
	pthread_mutex_t reloading; /* one at a time; guards the next three */
	bool started;
	void (*reloaded)(void *context);
	void *reloaded_context;
	pthread_mutex_t lock;          /* guards what follows */
	struct generation *generation; /* held; what the configuration says now */
	struct source *sources[FIELD_LIST_MAX];
	size_t n_sources;
	struct source *leaving[FIELD_LIST_MAX]; /* that a reload removed, until they are drained */
	size_t n_leaving;
	struct outbox_relay_counts past; /* of sources that are gone */
	_Atomic bool draining;
	_Atomic bool refused; /* the last reload was */
};

/* Leave only the source that setup names. */
int daemon_choose(const struct daemon *daemon, struct config *config,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Forget those that a reload removed: the ones that are drained, or all, waiting for them. Under reloading. */
void daemon_bury(struct daemon *daemon, bool all);

#endif
