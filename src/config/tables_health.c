/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of health rules and of those who are told. */
#include "base/text.h"
#include "config/check.h"
#include "config/rules.h"
#include "config/schema.h"

#include <stdlib.h>
#include <string.h>

const char *const rule_names[RULE_COUNT] = {
	[RULE_SOURCE_DOWN] = "source_down", [RULE_RELAY_DOWN] = "relay_down",
	[RULE_NO_TARGET] = "no_target",     [RULE_FAILED] = "failed",
	[RULE_REFUSED] = "refused",         [RULE_UNSERVED] = "unserved",
	[RULE_OUTAGE] = "outage",           [RULE_NO_RELAY] = "no_relay",
	[RULE_LANES_IDLE] = "lanes_idle",   [RULE_OVERDUE] = "overdue",
	[RULE_BACKLOG] = "backlog",         [RULE_PENDING] = "pending",
	[RULE_SENDING] = "sending",         [RULE_LATENCY] = "latency",
	[RULE_RETRY_RATE] = "retry_rate",   [RULE_PAUSED] = "paused",
	[RULE_CLOSED] = "closed",           [RULE_CLEANUP] = "cleanup",
};

static const char *const formats[] = { NULL, "webhook", "alertmanager", NULL };

static const struct field health_keys[] = {
	{ KEY(DURATION, config_health, interval), .fallback = "5s", .min = 100 * OUTBOX_MILLISECONDS,
	  .max = OUTBOX_HOURS, .help = "sample every source this often" },
	{ KEY(DURATION, config_health, settle), .fallback = "30s",
	  .help = "how long a rule must hold before it fires, and not hold before it ends" },
	{ KEY(GLOBS, config_health, off), .otherwise = "none", .example = "[\"retry_rate\"]",
	  .help = "rules to ignore" },
	{ KEY(TEXT, config_health, runbook), .otherwise = "the page that was installed",
	  .example = "https://wiki.example/outbox",
	  .help = "where alerts link to; # and the rule's name are added" },
	{ KEY(NUMBER, config_health, failed), .min = 0, .max = OUTBOX_COUNT_CAP - 1,
	  .fallback = "0", .help = "unhealthy above this many failed deliveries" },
	{ KEY(DURATION, config_health, overdue), .fallback = "15m",
	  .help = "degraded when a delivery that can be sent is not finished after this" },
	{ KEY(NUMBER, config_health, backlog), .min = 0, .max = OUTBOX_COUNT_CAP - 1,
	  .fallback = "10000", .help = "degraded above this many unfinished deliveries" },
	{ KEY(NUMBER, config_health, pending), .min = 0, .max = OUTBOX_COUNT_CAP - 1,
	  .fallback = "1000", .help = "degraded above this many unread messages for pending_for" },
	{ KEY(DURATION, config_health, pending_for), .fallback = "5m",
	  .help = "how long pending must be exceeded" },
	{ KEY(DURATION, config_health, sending), .fallback = "30m",
	  .help = "degraded when deliveries are being sent and nothing has moved for this long" },
	{ KEY(DURATION, config_health, latency), .fallback = "5m",
	  .help = "degraded when messages that can be sent take longer than this on average" },
	{ KEY(NUMBER, config_health, retry_rate), .min = 0, .max = 100, .fallback = "10",
	  .help = "degraded above this percentage of refused tries in the last minute" },
};

static const struct field alert_keys[] = {
	{ KEY(NAME, config_alert, name), .flags = FIELD_REQUIRED, .example = "on-call",
	  .help = "the receiver's name; logs show it instead of the URL" },
	{ KEY(SECRET, config_alert, url), .flags = FIELD_REQUIRED,
	  .example = "https://hooks.example/outbox",
	  .help = "where to POST: http:// or https://, or file: for a URL that is a secret" },
	{ KEY(SECRET, config_alert, token), .otherwise = "none",
	  .example = "file:/run/secrets/hook", .help = "sent as Authorization: Bearer" },
	{ KEY(GLOBS, config_alert, rules), .otherwise = "every rule",
	  .example = "[\"failed\", \"outage\"]", .help = "only alerts of these rules" },
	{ KEY(WORD, config_alert, format), .words = formats, .fallback = "webhook",
	  .help = "webhook: as Alertmanager's webhooks; alertmanager: to Alertmanager itself" },
	{ KEY(DURATION, config_alert, timeout), .fallback = "10s",
	  .help = "time limit for one request; after that it is retried with growing delays" },
	{ KEY(KEEP, config_alert, repeat), .otherwise = "4h; to Alertmanager 1m", .example = "4h",
	  .help = "time after which an alert that still fires is sent again; forever: never" },
};

bool rule_matches_any(const char *glob)
{
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (glob_match(glob, rule_names[i]))
			return true;
	return false;
}

static void check_rules(const struct node *map, const char *key, const struct field_texts *globs,
			struct problems *problems)
{
	char shown[80];

	for (size_t i = 0; i < globs->count; i++)
		if (!rule_matches_any(globs->items[i]))
			problems_about(problems, node_find(map, key),
				       "there is no rule \"%s\"; outbox alerts --rules lists them",
				       text_shown(shown, sizeof(shown), globs->items[i]));
}

static void check_health(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_health *health = value;

	check_rules(map, "off", &health->off, problems);
}

bool check_loopback(const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
	size_t size = strcspn(host, *host == '[' ? "/?#" : ":/?#");

	if (*host == '[')
		size = strcspn(host, "]") + 1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == size && strncmp(host, names[i], size) == 0)
			return true;
	return false;
}

bool check_url_has_user(const char *url)
{
	const char *host = strstr(url, "://") + 3;

	return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

static bool is_file(const char *secret)
{
	return secret && strncmp(secret, "file:", 5) == 0;
}

void check_alert_url(const struct node *map, const struct config_alert *alert,
		     struct problems *problems)
{
	bool plain = strncmp(alert->url, "http://", 7) == 0;

	if (is_file(alert->url))
		return;
	if (!plain && strncmp(alert->url, "https://", 8) != 0)
		problems_about(problems, node_find(map, "url"),
			       "must begin with https:// or http://");
	else if (check_url_has_user(alert->url))
		problems_about(problems, node_find(map, "url"),
			       "must not have a user in it; use token");
	else if (plain && alert->token && !check_loopback(alert->url + 7))
		problems_about(problems, node_find(map, "token"),
			       "would cross the network in the clear; use https://");
}

static void check_alert(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_alert *alert = value;

	check_rules(map, "rules", &alert->rules, problems);
	check_alert_url(map, alert, problems);
}

const struct record schema_health = { SCHEMA(health_keys, config_health), .check = check_health };
const struct record schema_alert = { SCHEMA(alert_keys, config_alert), .check = check_alert };

int config_health_defaults(struct outbox_arena *arena, struct config_health *ret_health,
			   struct outbox_error *err)
{
	struct problems *problems = calloc(1, sizeof(*problems));
	struct config_health health = { 0 };
	int r = problems ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = schema_read(&schema_health, NULL, arena, problems, &health, err);
	if (r == OUTBOX_OK)
		*ret_health = health;
	free(problems);
	return r;
}
