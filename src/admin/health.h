/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_HEALTH_H
#define ADMIN_HEALTH_H

/* Health from rules: pure, from what was seen to findings. */

#include <outbox/clock.h>

enum health_level { LEVEL_HEALTHY = 0, LEVEL_DEGRADED, LEVEL_UNHEALTHY };

struct health_finding {
	const char *rule; /* "failed", "overdue", "backlog" ...: also the alert's name */
	enum health_level level;
	const char *source, *target; /* target may be NULL */
	outbox_time since;           /* wall: how long this has been so */
	char text[300];              /* what is the matter, with the number and the limit */
};

const char *health_level_name(enum health_level level);

#endif
