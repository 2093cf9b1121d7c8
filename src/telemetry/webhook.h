/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_WEBHOOK_H
#define TELEMETRY_WEBHOOK_H

/*
 * One who is told of alerts, by a thread of its own. It is handed what fires now and works out itself what it has not
 * said yet; so nobody ever waits for it, and what it could not say it says later: how things are then.
 */

#include "operate/health.h"

#define HOOK_ALERTS_MAX 500 /* what does not fit is counted and told in the journal */

struct hook;

/* One alert, as it is to be told. */
struct hook_alert {
	char source[64], target[64]; /* target "": the source itself */
	const char *rule;
	enum health_level level;
	char text[300], runbook[RUNBOOK_LINK_MAX];
	outbox_time since;    /* wall */
	outbox_time resolved; /* wall; 0: it fires */
};

int hook_start(const struct config_alert *config, struct hook **ret_hook,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Was it made from the same settings? */
bool hook_is(struct hook *hook, const struct config_alert *config);
const char *hook_name(const struct hook *hook);

/* What fires at `wall`. Never waits. */
void hook_note(struct hook *hook, const struct health_finding *findings, size_t count,
	       outbox_time wall);

/* End soon; hook_left() says when hook_free() will not wait. */
void hook_leave(struct hook *hook);
bool hook_left(struct hook *hook);
struct hook *hook_free(struct hook *hook);

/* What is sent; a new text, NULL: out of memory. now: wall. */
char *hook_body(const struct config_alert *config, const struct hook_alert *alerts, size_t count,
		outbox_time now);

#endif
