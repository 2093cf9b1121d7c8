/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is kept over a restart: what fires then is reported again, with the same fingerprint and, where the store
 * knows it, the same beginning, so that receivers see one alert. The end of an alert that ended while no relay ran
 * is not reported; receivers of Alertmanager's format let it expire.
 */
#include "telemetry/alerts.h"

#include "daemon/journal.h"
#include "telemetry/webhook.h"

#include <stdlib.h>

#define WEBHOOKS_MAX \
	((size_t)2 * FIELD_LIST_MAX) /* those of the configuration, and some that leave */

struct alerts {
	struct webhook *webhooks[WEBHOOKS_MAX];
	size_t count;
};

struct alerts *alerts_new(void)
{
	return calloc(1, sizeof(struct alerts));
}

struct alerts *alerts_free(struct alerts *alerts)
{
	if (!alerts)
		return NULL;
	for (size_t i = 0; i < alerts->count; i++)
		webhook_leave(alerts->webhooks[i]);
	for (size_t i = 0; i < alerts->count; i++)
		webhook_free(alerts->webhooks[i]);
	free(alerts);
	return NULL;
}

static void report_changes(const struct sample *before, const struct sample *now)
{
	for (size_t i = 0; i < now->n_findings; i++) {
		const struct health_finding *finding = &now->findings[i];
		struct about about = { .source = finding->source, .target = finding->target };

		if (!sample_has(before, finding))
			journal(EVENT_ALERT_FIRED, &about, "%s (%s): %s", finding->rule,
				health_level_name(finding->level), finding->text);
	}
	for (size_t i = 0; before && i < before->n_findings; i++) {
		const struct health_finding *finding = &before->findings[i];
		struct about about = { .source = finding->source, .target = finding->target };

		if (!sample_has(now, finding))
			journal(EVENT_ALERT_RESOLVED, &about, "%s is over", finding->rule);
	}
}

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
	for (size_t i = 0; i < alerts->count; i++)
		if (webhook_is(alerts->webhooks[i], wanted))
			return true;
	return false;
}

static void follow_config(struct alerts *alerts, const struct config *config)
{
	const struct config_alert *wanted = config->alerts.items;

	for (size_t i = alerts->count; i-- > 0;)
		if (!is_wanted(alerts->webhooks[i], config) && webhook_leave(alerts->webhooks[i])) {
			webhook_free(alerts->webhooks[i]);
			alerts->webhooks[i] = alerts->webhooks[--alerts->count];
		}
	/* with too many still busy leaving, the next look will do */
	for (size_t i = 0; i < config->alerts.count && alerts->count < WEBHOOKS_MAX; i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		if (is_there(alerts, &wanted[i]))
			continue;
		if (webhook_start(&wanted[i], &alerts->webhooks[alerts->count], &err) == OUTBOX_OK)
			alerts->count++;
		else
			journal(EVENT_ALERT_UNTOLD, NULL, "cannot send alerts to %s: %s",
				wanted[i].name, err.message);
	}
}

void alerts_note(struct alerts *alerts, const struct config *config, const struct sample *before,
		 const struct sample *now)
{
	follow_config(alerts, config);
	report_changes(before, now);
	for (size_t i = 0; i < alerts->count; i++)
		webhook_note(alerts->webhooks[i], now->findings, now->n_findings, now->at);
}
