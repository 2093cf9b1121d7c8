/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two bodies, both Alertmanager's: what it sends to its webhook receivers (version 4), which nearly everything that
 * takes alerts understands, and what it takes at /api/v2/alerts itself. The same labels in both, and from
 * contrib/prometheus/outbox.rules.yml: the same alert is the same, whoever tells it.
 */
#include "base/text.h"
#include "fields/json_value.h"
#include "telemetry/webhook.h"

#include <stdio.h>

/* An alert that Alertmanager is not told again by then is over for it: the relay that told it is gone. */
#define STILL_TRUE_FOR (5 * OUTBOX_MINUTES)
#define STILL_TRUE_REPEATS 3 /* some may be missed */
#define TOLD_ONCE (365 * OUTBOX_DAYS)

static const char *severity(enum health_level level)
{
	return level == LEVEL_UNHEALTHY ? "critical" : level == LEVEL_DEGRADED ? "warning" : "info";
}

static json_t *labels(const struct hook_alert *alert)
{
	char name[80];
	json_t *object;

	snprintf(name, sizeof(name), "outbox_%s", alert->rule);
	object = json_pack("{s:s, s:s, s:o}", "alertname", name, "severity", severity(alert->level),
			   "source", json_text(alert->source));
	if (object && alert->target[0])
		json_object_set_new(object, "target", json_text(alert->target));
	return object;
}

static json_t *annotations(const struct hook_alert *alert)
{
	char summary[256];

	snprintf(summary, sizeof(summary), "%s%s%s: %s", alert->source, alert->target[0] ? "/" : "",
		 alert->target, alert->rule);
	return json_pack("{s:o, s:o, s:o}", "summary", json_text(summary), "description",
			 json_text(alert->text), "runbook_url", json_text(alert->runbook));
}

static outbox_time still_true_for(outbox_time repeat)
{
	if (repeat > TOLD_ONCE / STILL_TRUE_REPEATS)
		return TOLD_ONCE;
	return repeat * STILL_TRUE_REPEATS > STILL_TRUE_FOR ? repeat * STILL_TRUE_REPEATS
							    : STILL_TRUE_FOR;
}

static json_t *plain(const struct hook_alert *alert, outbox_time now, outbox_time repeat)
{
	outbox_time end = alert->resolved ? alert->resolved : now + still_true_for(repeat);

	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "labels", labels(alert), "annotations",
			 annotations(alert), "startsAt", json_time(alert->since), "endsAt",
			 json_time(end), "generatorURL", "");
}

static json_t *told(const struct hook_alert *alert)
{
	char identity[256], fingerprint[24], since[TIME_TEXT_MAX];

	snprintf(identity, sizeof(identity), "%s\n%s\n%s", alert->rule, alert->source, alert->target);
	snprintf(fingerprint, sizeof(fingerprint), "%016llx",
		 (unsigned long long)text_hash(identity));
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:s, s:s}", "status",
			 alert->resolved ? "resolved" : "firing", "labels", labels(alert),
			 "annotations", annotations(alert), "startsAt",
			 time_format(alert->since, since), "endsAt",
			 alert->resolved ? json_time(alert->resolved)
					 : json_string("0001-01-01T00:00:00Z"),
			 "generatorURL", "", "fingerprint", fingerprint);
}

static json_t *whole(const char *receiver, json_t *list, bool firing)
{
	return json_pack("{s:s, s:s, s:i, s:s, s:s, s:{}, s:{}, s:{}, s:s, s:o}", "version", "4",
			 "groupKey", "outbox", "truncatedAlerts", 0, "status",
			 firing ? "firing" : "resolved", "receiver", receiver, "groupLabels",
			 "commonLabels", "commonAnnotations", "externalURL", "", "alerts", list);
}

char *hook_body(const struct config_alert *config, const struct hook_alert *alerts, size_t count,
		outbox_time now)
{
	bool to_alertmanager = config->format == CONFIG_ALERT_ALERTMANAGER;
	json_t *list = json_array(), *body;
	bool firing = false;
	char *text;

	for (size_t i = 0; list && i < count; i++) {
		json_t *alert =
			to_alertmanager ? plain(&alerts[i], now, config->repeat) : told(&alerts[i]);

		firing |= !alerts[i].resolved;
		if (json_array_append_new(list, alert) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	if (!list)
		return NULL;
	body = to_alertmanager ? list : whole(config->name, list, firing);
	text = body ? json_dumps(body, JSON_STYLE) : NULL;
	json_decref(body);
	return text;
}
