/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is kept over a restart: what fires then is told again, with the same fingerprint and, where the store
 * knows it, the same beginning, so that receivers see one alert. An alert that ended while no relay ran
 * is not told to be over; receivers of Alertmanager's format let it expire.
 */
#include "telemetry/alerts.h"

#include "daemon/journal.h"
#include "telemetry/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOOKS_MAX 64 /* as many as the configuration can have */

struct known {
	char source[64], target[64];
	const char *rule;
	bool seen;
};

struct alerts {
	struct webhook *webhooks[HOOKS_MAX];
	size_t n_webhooks;
	struct webhook *leaving[HOOKS_MAX];
	size_t n_leaving;
	struct known known[WEBHOOK_ALERTS_MAX]; /* fired, and said so in the journal */
	size_t n_known;
};

struct alerts *alerts_new(void)
{
	return calloc(1, sizeof(struct alerts));
}

struct alerts *alerts_free(struct alerts *alerts)
{
	if (!alerts)
		return NULL;
	for (size_t i = 0; i < alerts->n_webhooks; i++)
		webhook_leave(alerts->webhooks[i]);
	for (size_t i = 0; i < alerts->n_webhooks; i++)
		webhook_free(alerts->webhooks[i]);
	for (size_t i = 0; i < alerts->n_leaving; i++)
		webhook_free(alerts->leaving[i]);
	free(alerts);
	return NULL;
}

/* ---- the journal --------------------------------------------------------------------------- */

static struct known *find_known(struct alerts *alerts, const struct health_finding *finding)
{
	for (size_t i = 0; i < alerts->n_known; i++) {
		struct known *known = &alerts->known[i];

		if (strcmp(known->rule, finding->rule) == 0 &&
		    strcmp(known->source, finding->source) == 0 &&
		    strcmp(known->target, finding->target ? finding->target : "") == 0)
			return known;
	}
	return NULL;
}

static void report_fired(struct alerts *alerts, const struct health_finding *finding)
{
	struct known *known = find_known(alerts, finding);
	struct about about = { .source = finding->source, .target = finding->target };

	if (known) {
		known->seen = true;
		return;
	}
	if (alerts->n_known == WEBHOOK_ALERTS_MAX)
		return;
	known = &alerts->known[alerts->n_known++];
	*known = (struct known){ .rule = finding->rule, .seen = true };
	snprintf(known->source, sizeof(known->source), "%s", finding->source);
	snprintf(known->target, sizeof(known->target), "%s", finding->target ? finding->target : "");
	journal(EVENT_ALERT_FIRED, &about, "%s (%s): %s", finding->rule,
		health_level_name(finding->level), finding->text);
}

static void report_changes(struct alerts *alerts, const struct health_finding *findings, size_t count)
{
	for (size_t i = 0; i < alerts->n_known; i++)
		alerts->known[i].seen = false;
	for (size_t i = 0; i < count; i++)
		report_fired(alerts, &findings[i]);
	for (size_t i = alerts->n_known; i-- > 0;) {
		const struct known *known = &alerts->known[i];
		struct about about = { .source = known->source,
				       .target = known->target[0] ? known->target : NULL };

		if (known->seen)
			continue;
		journal(EVENT_ALERT_RESOLVED, &about, "%s is over", known->rule);
		alerts->known[i] = alerts->known[--alerts->n_known];
	}
}

/* ---- who is told --------------------------------------------------------------------------- */

static bool is_wanted(struct webhook *webhook, const struct config *config)
{
	const struct config_alert *wanted = config->alerts.items;

	for (size_t i = 0; i < config->alerts.count; i++)
		if (webhook_is(webhook, &wanted[i]))
			return true;
	return false;
}

static bool is_there(const struct alerts *alerts, const struct config_alert *wanted)
{
	for (size_t i = 0; i < alerts->n_webhooks; i++)
		if (webhook_is(alerts->webhooks[i], wanted))
			return true;
	return false;
}

static void end_unwanted(struct alerts *alerts, const struct config *config)
{
	for (size_t i = alerts->n_leaving; i-- > 0;) {
		if (!webhook_left(alerts->leaving[i]))
			continue;
		webhook_free(alerts->leaving[i]);
		alerts->leaving[i] = alerts->leaving[--alerts->n_leaving];
	}
	for (size_t i = alerts->n_webhooks; i-- > 0;) {
		/* with so many still busy to leave, the next look will do */
		if (is_wanted(alerts->webhooks[i], config) || alerts->n_leaving == HOOKS_MAX)
			continue;
		webhook_leave(alerts->webhooks[i]);
		alerts->leaving[alerts->n_leaving++] = alerts->webhooks[i];
		alerts->webhooks[i] = alerts->webhooks[--alerts->n_webhooks];
	}
}

static void follow_config(struct alerts *alerts, const struct config *config)
{
	const struct config_alert *wanted = config->alerts.items;

	end_unwanted(alerts, config);
	for (size_t i = 0; i < config->alerts.count && alerts->n_webhooks < HOOKS_MAX; i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		if (is_there(alerts, &wanted[i]))
			continue;
		if (webhook_start(&wanted[i], &alerts->webhooks[alerts->n_webhooks], &err) ==
		    OUTBOX_OK)
			alerts->n_webhooks++;
		else
			journal(EVENT_ALERT_UNTOLD, NULL, "%s cannot be told: %s", wanted[i].name,
				err.message);
	}
}

void alerts_note(struct alerts *alerts, const struct config *config,
		 const struct health_finding *findings, size_t count, outbox_time wall)
{
	follow_config(alerts, config);
	report_changes(alerts, findings, count);
	for (size_t i = 0; i < alerts->n_webhooks; i++)
		webhook_note(alerts->webhooks[i], findings, count, wall);
}
