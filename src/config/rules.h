/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_RULES_H
#define CONFIG_RULES_H

/* The rules of health, which are also the names of alerts. Their meaning is in operate/rules.c and docs/runbook.md. */

#include <stdbool.h>

enum health_rule {
	RULE_SOURCE_DOWN = 0, /* the store does not answer */
	RULE_RELAY_DOWN,      /* it does, but its relay does not run */
	RULE_NO_TARGET,       /* messages, and nobody whom they are for */
	RULE_CLEANUP,         /* retention fails */
	RULE_FAILED,
	RULE_REFUSED,    /* relays refuse a lane */
	RULE_UNSERVED,   /* a relay that is configured for the target does not serve it */
	RULE_OUTAGE,     /* a relay cannot reach the target */
	RULE_CLOSED,     /* the target said that it is gone for good, and its relay paused it */
	RULE_NO_RELAY,   /* nobody holds a lane */
	RULE_LANES_IDLE, /* somebody holds some lanes, nobody the others */
	RULE_OVERDUE,
	RULE_BACKLOG,
	RULE_PENDING,
	RULE_SENDING,
	RULE_LATENCY,
	RULE_RETRY_RATE,
	RULE_PAUSED,
	RULE_COUNT
};

extern const char *const rule_names[RULE_COUNT];

/* Does a glob fit any rule? */
bool rule_matches_any(const char *glob);

#endif
