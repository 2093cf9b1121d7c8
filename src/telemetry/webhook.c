/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/webhook.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/wait.h"
#include "config/compare.h"
#include "daemon/journal.h"
#include "fields/json_value.h"
#include "telemetry/http_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 50 /* alerts in one request */
#define PAUSE_MIN OUTBOX_SECONDS
#define PAUSE_MAX (5 * OUTBOX_MINUTES)

struct entry {
	struct webhook_alert alert;
	unsigned changed, sent; /* counts of changes: the newest was sent when equal */
	outbox_time sent_at;    /* mono */
	bool seen;
};

struct webhook {
	struct waiting waiting;
	pthread_t thread;
	struct outbox_arena *arena; /* of config */
	struct config_alert config;
	bool leaving, left;
	struct entry entries[WEBHOOK_ALERTS_MAX];
	size_t count;
	bool full; /* said so */
	/* the thread's own */
	struct http_post *post;
	outbox_time pause; /* 0: the last request went well */
};

bool webhook_is(struct webhook *webhook, const struct config_alert *config)
{
	return !webhook->leaving && config_alert_same(&webhook->config, config);
}

/* ---- what is to be sent -------------------------------------------------------------------- */

static bool wants_rule(const struct webhook *webhook, const char *rule)
{
	for (size_t i = 0; i < webhook->config.rules.count; i++)
		if (glob_match(webhook->config.rules.items[i], rule))
			return true;
	return webhook->config.rules.count == 0;
}

static struct entry *find_entry(struct webhook *webhook, const struct health_finding *finding)
{
	const char *target = finding->target ? finding->target : "";

	for (size_t i = 0; i < webhook->count; i++) {
		const struct webhook_alert *alert = &webhook->entries[i].alert;

		if (strcmp(alert->rule, finding->rule) == 0 &&
		    strcmp(alert->source, finding->source) == 0 && strcmp(alert->target, target) == 0)
			return &webhook->entries[i];
	}
	return NULL;
}

static void report_full(struct webhook *webhook)
{
	if (!webhook->full)
		journal(EVENT_ALERT_UNTOLD, NULL,
			"%s: more than %d alerts at once; the rest are not sent to it",
			webhook->config.name, WEBHOOK_ALERTS_MAX);
	webhook->full = true;
}

static void note_finding(struct webhook *webhook, const struct health_finding *finding)
{
	struct entry *entry = find_entry(webhook, finding);
	bool begins = !entry || entry->alert.resolved;

	if (!entry && webhook->count == WEBHOOK_ALERTS_MAX) {
		report_full(webhook);
		return;
	}
	if (!entry) {
		entry = &webhook->entries[webhook->count++];
		*entry = (struct entry){ .alert = { .rule = finding->rule } };
		snprintf(entry->alert.source, sizeof(entry->alert.source), "%s", finding->source);
		snprintf(entry->alert.target, sizeof(entry->alert.target), "%s",
			 finding->target ? finding->target : "");
	}
	entry->seen = true;
	entry->changed += begins;
	entry->alert.resolved = 0;
	entry->alert.level = finding->level;
	entry->alert.since = finding->since;
	snprintf(entry->alert.text, sizeof(entry->alert.text), "%s", finding->text);
	memcpy(entry->alert.runbook, finding->runbook, sizeof(entry->alert.runbook));
}

void webhook_note(struct webhook *webhook, const struct health_finding *findings, size_t count,
		  outbox_time wall)
{
	waiting_lock(&webhook->waiting);
	for (size_t i = 0; i < webhook->count; i++)
		webhook->entries[i].seen = false;
	for (size_t i = 0; i < count; i++)
		if (wants_rule(webhook, findings[i].rule))
			note_finding(webhook, &findings[i]);
	for (size_t i = 0; i < webhook->count; i++) {
		struct entry *entry = &webhook->entries[i];

		if (entry->seen || entry->alert.resolved)
			continue;
		entry->alert.resolved = wall;
		entry->changed++;
	}
	waiting_ring(&webhook->waiting);
	waiting_unlock(&webhook->waiting);
}

/* ---- sending it ---------------------------------------------------------------------------- */

static bool is_due(const struct webhook *webhook, const struct entry *entry, outbox_time mono)
{
	if (entry->changed != entry->sent)
		return true;
	return !entry->alert.resolved && webhook->config.repeat != OUTBOX_NEVER &&
	       mono - entry->sent_at >= webhook->config.repeat;
}

struct letter {
	size_t count;
	struct webhook_alert alerts[BATCH];
	unsigned changed[BATCH];
};

static void fill_letter(const struct webhook *webhook, outbox_time mono, struct letter *letter)
{
	letter->count = 0;
	for (size_t i = 0; i < webhook->count && letter->count < BATCH; i++) {
		if (!is_due(webhook, &webhook->entries[i], mono))
			continue;
		letter->alerts[letter->count] = webhook->entries[i].alert;
		letter->changed[letter->count++] = webhook->entries[i].changed;
	}
}

/* Those of the letter were sent as they were then; what is over, and sent as over, is forgotten. */
static void mark_sent(struct webhook *webhook, const struct letter *letter, outbox_time mono)
{
	for (size_t k = 0; k < letter->count; k++) {
		const struct webhook_alert *sent = &letter->alerts[k];
		struct health_finding key = { .rule = sent->rule,
					      .source = sent->source,
					      .target = sent->target };
		struct entry *entry = find_entry(webhook, &key);

		entry->sent = letter->changed[k];
		entry->sent_at = mono;
		if (entry->alert.resolved && entry->sent == entry->changed)
			*entry = webhook->entries[--webhook->count];
	}
	webhook->full = webhook->full && webhook->count == WEBHOOK_ALERTS_MAX;
}

static bool ask_stop(void *context)
{
	struct webhook *webhook = context;
	bool leaving;

	waiting_lock(&webhook->waiting);
	leaving = webhook->leaving;
	waiting_unlock(&webhook->waiting);
	return leaving;
}

static int send_letter(struct webhook *webhook, const struct letter *letter, struct outbox_error *err)
{
	char bearer[4200];
	const char *headers[] = { bearer, NULL };
	_cleanup_(cleanup_free) char *body =
		webhook_body(&webhook->config, letter->alerts, letter->count, wall_now());
	struct http_post_request request = { .url = webhook->config.url,
					     .headers = webhook->config.token ? headers : NULL,
					     .body = body,
					     .timeout = webhook->config.timeout,
					     .stop = ask_stop,
					     .context = webhook };
	int r;

	if (!body)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	request.size = strlen(body);
	snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s",
		 webhook->config.token ? webhook->config.token : "");
	r = http_post_send(webhook->post, &request, err);
	explicit_bzero(bearer, sizeof(bearer));
	return r;
}

/* One line when it goes wrong, one when it is well again; nothing in between. */
static void report_sent(struct webhook *webhook, int r, const struct outbox_error *err)
{
	if (r && !webhook->pause && !ask_stop(webhook))
		journal(EVENT_ALERT_UNTOLD, NULL, "cannot send alerts to %s: %s; it is tried again",
			webhook->config.name, err->message);
	if (!r && webhook->pause)
		journal(EVENT_ALERT_TOLD, NULL, "%s receives alerts again", webhook->config.name);
	if (!r)
		webhook->pause = 0;
	else
		webhook->pause = !webhook->pause                  ? PAUSE_MIN
				 : webhook->pause * 2 > PAUSE_MAX ? PAUSE_MAX
								  : webhook->pause * 2;
}

static void *run(void *context)
{
	struct webhook *webhook = context;
	struct letter *letter = calloc(1, sizeof(*letter));
	outbox_time not_before = 0;

	waiting_lock(&webhook->waiting);
	while (!webhook->leaving && letter) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		outbox_time mono = mono_now();
		int r;

		fill_letter(webhook, mono, letter);
		if (letter->count == 0 || mono < not_before) {
			/* what is repeated is looked for now and then */
			waiting_wait(&webhook->waiting,
				     mono < not_before ? not_before - mono : OUTBOX_SECONDS);
			continue;
		}
		waiting_unlock(&webhook->waiting);
		r = send_letter(webhook, letter, &err);
		report_sent(webhook, r, &err);
		mono = mono_now();
		not_before = mono + webhook->pause;
		waiting_lock(&webhook->waiting);
		if (r == OUTBOX_OK)
			mark_sent(webhook, letter, mono);
	}
	webhook->left = true;
	waiting_unlock(&webhook->waiting);
	free(letter);
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static int copy_config(struct webhook *webhook, const struct config_alert *from,
		       struct outbox_error *err)
{
	struct config_alert *to = &webhook->config;
	bool whole;

	*to = *from;
	to->name = outbox_arena_text(webhook->arena, from->name);
	to->url = outbox_arena_text(webhook->arena, from->url);
	to->token = outbox_arena_text(webhook->arena, from->token);
	to->rules.items =
		outbox_arena_alloc(webhook->arena, (from->rules.count + 1) * sizeof(char *));
	whole = to->name && to->url && (!from->token || to->token) && to->rules.items;
	for (size_t i = 0; whole && i < from->rules.count; i++) {
		to->rules.items[i] = outbox_arena_text(webhook->arena, from->rules.items[i]);
		whole = to->rules.items[i] != NULL;
	}
	return whole ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static void free_parts(struct webhook *webhook)
{
	http_post_free(webhook->post);
	outbox_arena_free(webhook->arena);
	free(webhook);
}

int webhook_start(const struct config_alert *config, struct webhook **ret_webhook,
		  struct outbox_error *err)
{
	struct webhook *webhook = calloc(1, sizeof(*webhook));
	int r;

	if (!webhook)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	webhook->arena = outbox_arena_new((size_t)1 << 20);
	r = webhook->arena ? copy_config(webhook, config, err)
			   : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = http_post_new(&webhook->post, err);
	if (r == OUTBOX_OK)
		r = waiting_init(&webhook->waiting, err);
	if (r == OUTBOX_OK && pthread_create(&webhook->thread, NULL, run, webhook) != 0) {
		waiting_deinit(&webhook->waiting);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	if (r)
		free_parts(webhook);
	else
		*ret_webhook = webhook;
	return r;
}

bool webhook_leave(struct webhook *webhook)
{
	bool left;

	waiting_lock(&webhook->waiting);
	webhook->leaving = true;
	left = webhook->left;
	waiting_ring(&webhook->waiting);
	waiting_unlock(&webhook->waiting);
	return left;
}

struct webhook *webhook_free(struct webhook *webhook)
{
	if (!webhook)
		return NULL;
	webhook_leave(webhook);
	pthread_join(webhook->thread, NULL);
	waiting_deinit(&webhook->waiting);
	free_parts(webhook);
	return NULL;
}

/* ---- what is sent --------------------------------------------------------------------------- */

/*
 * Two bodies, both Alertmanager's: what it sends to its webhook receivers (version 4), which nearly everything that
 * takes alerts understands, and what it takes at /api/v2/alerts itself. The same labels in both, and from
 * contrib/prometheus/outbox.rules.yml: the same alert is the same, whoever sends it.
 */

/* An alert that is not sent again by then is over for Alertmanager: the relay that sent it is gone. */
#define STILL_TRUE_FOR (5 * OUTBOX_MINUTES)
#define STILL_TRUE_REPEATS 3 /* some may be missed */
#define SENT_ONCE (365 * OUTBOX_DAYS)

static const char *severity(enum health_level level)
{
	return level == LEVEL_UNHEALTHY ? "critical" : level == LEVEL_DEGRADED ? "warning" : "info";
}

static json_t *make_labels(const struct webhook_alert *alert)
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

static json_t *make_annotations(const struct webhook_alert *alert)
{
	char summary[256];

	snprintf(summary, sizeof(summary), "%s%s%s: %s", alert->source, alert->target[0] ? "/" : "",
		 alert->target, alert->rule);
	return json_pack("{s:o, s:o, s:o}", "summary", json_text(summary), "description",
			 json_text(alert->text), "runbook_url", json_text(alert->runbook));
}

static outbox_time still_true_for(outbox_time repeat)
{
	if (repeat > SENT_ONCE / STILL_TRUE_REPEATS)
		return SENT_ONCE;
	return repeat * STILL_TRUE_REPEATS > STILL_TRUE_FOR ? repeat * STILL_TRUE_REPEATS
							    : STILL_TRUE_FOR;
}

static json_t *make_alertmanager_alert(const struct webhook_alert *alert, outbox_time now,
				       outbox_time repeat)
{
	outbox_time end = alert->resolved ? alert->resolved : now + still_true_for(repeat);

	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "labels", make_labels(alert), "annotations",
			 make_annotations(alert), "startsAt", json_time(alert->since), "endsAt",
			 json_time(end), "generatorURL", "");
}

static json_t *make_webhook_alert(const struct webhook_alert *alert)
{
	char identity[256], fingerprint[24], since[TIME_TEXT_MAX];

	snprintf(identity, sizeof(identity), "%s\n%s\n%s", alert->rule, alert->source, alert->target);
	snprintf(fingerprint, sizeof(fingerprint), "%016llx",
		 (unsigned long long)text_hash(identity));
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:s, s:s}", "status",
			 alert->resolved ? "resolved" : "firing", "labels", make_labels(alert),
			 "annotations", make_annotations(alert), "startsAt",
			 time_format(alert->since, since), "endsAt",
			 alert->resolved ? json_time(alert->resolved)
					 : json_string("0001-01-01T00:00:00Z"),
			 "generatorURL", "", "fingerprint", fingerprint);
}

static json_t *make_webhook_body(const char *receiver, json_t *list, bool firing)
{
	return json_pack("{s:s, s:s, s:i, s:s, s:s, s:{}, s:{}, s:{}, s:s, s:o}", "version", "4",
			 "groupKey", "outbox", "truncatedAlerts", 0, "status",
			 firing ? "firing" : "resolved", "receiver", receiver, "groupLabels",
			 "commonLabels", "commonAnnotations", "externalURL", "", "alerts", list);
}

char *webhook_body(const struct config_alert *config, const struct webhook_alert *alerts,
		   size_t count, outbox_time now)
{
	bool to_alertmanager = config->format == CONFIG_ALERT_ALERTMANAGER;
	json_t *list = json_array(), *body;
	bool firing = false;
	char *text;

	for (size_t i = 0; list && i < count; i++) {
		json_t *alert = to_alertmanager
					? make_alertmanager_alert(&alerts[i], now, config->repeat)
					: make_webhook_alert(&alerts[i]);

		firing |= !alerts[i].resolved;
		if (json_array_append_new(list, alert) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	if (!list)
		return NULL;
	body = to_alertmanager ? list : make_webhook_body(config->name, list, firing);
	text = body ? json_dumps(body, JSON_STYLE) : NULL;
	json_decref(body);
	return text;
}
