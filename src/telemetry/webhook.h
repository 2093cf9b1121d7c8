/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_WEBHOOK_H
#define TELEMETRY_WEBHOOK_H

/*
 * One who is told of alerts, by a thread of its own. It is handed what fires now and works out itself what it has not
 * said yet; so nobody ever waits for it, and what it could not say it says later: how things are then.
 */

#include "operate/health.h"

#define WEBHOOK_ALERTS_MAX 500 /* what does not fit is counted and told in the journal */

struct webhook;

/* One alert, as it is to be told. */
struct webhook_alert {
	char source[64], target[64]; /* target "": the source itself */
	const char *rule;
	enum health_level level;
	char text[300], runbook[RUNBOOK_LINK_MAX];
	outbox_time since;    /* wall */
	outbox_time resolved; /* wall; 0: it fires */
};

int webhook_start(const struct config_alert *config, struct webhook **ret_webhook,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Was it made from the same settings? */
bool webhook_is(struct webhook *webhook, const struct config_alert *config);
const char *webhook_name(const struct webhook *webhook);

/* What fires at `wall`. Never waits. */
void webhook_note(struct webhook *webhook, const struct health_finding *findings, size_t count,
		  outbox_time wall);

/* End soon; webhook_left() says when webhook_free() will not wait. */
void webhook_leave(struct webhook *webhook);
bool webhook_left(struct webhook *webhook);
struct webhook *webhook_free(struct webhook *webhook);

/* What is sent; a new text, NULL: out of memory. now: wall. */
char *webhook_body(const struct config_alert *config, const struct webhook_alert *alerts,
		   size_t count, outbox_time now);

#endif
