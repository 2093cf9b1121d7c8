/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTAGES_H
#define CLI_OUTAGES_H

/*
 * What a single run (--once) says about targets out of reach. The relay announces its next try, but
 * there is none: the run ends. So such lines are kept until the end, lose that promise, and the one
 * that the run's own error tells anyway is left out.
 */

#include "base/buf.h"

#include <outbox/error.h>
#include <outbox/log.h>

#include <pthread.h>

struct outages {
	pthread_mutex_t lock; /* workers log from their threads */
	struct buf lines;     /* a target and its reason each, both end with NUL */
	const char *source;   /* in front of each line that is logged; NULL: there is only one */
};

void outages_init(struct outages *outages, const char *source);
void outages_deinit(struct outages *outages);

/* The relay's log callback; the context is a struct outages. */
void outages_log(void *context, const struct outbox_log_event *event);

/* Log what was kept, but not what err (NULL: none) says. */
void outages_tell(struct outages *outages, const struct outbox_error *err);

#endif
