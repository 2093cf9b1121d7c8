/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_WEBHOOK_H
#define TELEMETRY_WEBHOOK_H

/*
 * One receiver of alerts, with a thread of its own. It is handed what fires now and works out itself what it has not
 * sent yet; so nobody ever waits for it, and what it could not send it sends later: how things are then.
 */

#include "operate/health.h"

#define WEBHOOK_ALERTS_MAX 500 /* the journal says when there are more */

struct webhook;

/* One alert, as it is sent. */
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

/* Was it made from the same settings? Not while it leaves. */
bool webhook_is(struct webhook *webhook, const struct config_alert *config);

/* What fires at `wall`. Never waits. */
void webhook_note(struct webhook *webhook, const struct health_finding *findings, size_t count,
		  outbox_time wall);

/* End soon. True: it has ended, and webhook_free() will not wait. */
bool webhook_leave(struct webhook *webhook);
struct webhook *webhook_free(struct webhook *webhook);

/* What is sent; a new text, NULL: out of memory. now: wall. */
char *webhook_body(const struct config_alert *config, const struct webhook_alert *alerts,
		   size_t count, outbox_time now);

#endif
