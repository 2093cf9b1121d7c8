/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/webhook.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "base/wait.h"
#include "daemon/journal.h"
#include "telemetry/http_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 50 /* alerts in one request */
#define PAUSE_MIN OUTBOX_SECONDS
#define PAUSE_MAX (5 * OUTBOX_MINUTES)

struct entry {
	struct hook_alert alert;
	unsigned changed, told; /* counts of changes: told the newest when equal */
	outbox_time told_at;    /* mono */
	bool seen;
};

struct hook {
	struct waiting waiting;
	pthread_t thread;
	struct outbox_arena *arena; /* of config */
	struct config_alert config;
	bool leaving, left;
	struct entry entries[HOOK_ALERTS_MAX];
	size_t count;
	bool full; /* said so */
	/* the thread's own */
	struct post *post;
	outbox_time pause; /* 0: the last request went well */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool hook_is(struct hook *hook, const struct config_alert *config)
{
	const struct config_alert *own = &hook->config;

	if (!same_text(own->name, config->name) || !same_text(own->url, config->url) ||
	    !same_text(own->token, config->token) || own->format != config->format ||
	    own->timeout != config->timeout || own->repeat != config->repeat ||
	    own->rules.count != config->rules.count)
		return false;
	for (size_t i = 0; i < own->rules.count; i++)
		if (!same_text(own->rules.items[i], config->rules.items[i]))
			return false;
	return true;
}

const char *hook_name(const struct hook *hook)
{
	return hook->config.name;
}

/* ---- what is to be told -------------------------------------------------------------------- */

static bool wants(const struct hook *hook, const char *rule)
{
	for (size_t i = 0; i < hook->config.rules.count; i++)
		if (glob_match(hook->config.rules.items[i], rule))
			return true;
	return hook->config.rules.count == 0;
}

static struct entry *find(struct hook *hook, const struct health_finding *finding)
{
	const char *target = finding->target ? finding->target : "";

	for (size_t i = 0; i < hook->count; i++) {
		const struct hook_alert *alert = &hook->entries[i].alert;

		if (strcmp(alert->rule, finding->rule) == 0 &&
		    strcmp(alert->source, finding->source) == 0 && strcmp(alert->target, target) == 0)
			return &hook->entries[i];
	}
	return NULL;
}

static void say_full(struct hook *hook)
{
	if (!hook->full)
		journal(EVENT_ALERT_UNTOLD, NULL,
			"%s: more than %d alerts at once; the rest are not told to it",
			hook->config.name, HOOK_ALERTS_MAX);
	hook->full = true;
}

static void note(struct hook *hook, const struct health_finding *finding)
{
	struct entry *entry = find(hook, finding);
	bool begins = !entry || entry->alert.resolved;

	if (!entry && hook->count == HOOK_ALERTS_MAX) {
		say_full(hook);
		return;
	}
	if (!entry) {
		entry = &hook->entries[hook->count++];
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

void hook_note(struct hook *hook, const struct health_finding *findings, size_t count,
	       outbox_time wall)
{
	waiting_lock(&hook->waiting);
	for (size_t i = 0; i < hook->count; i++)
		hook->entries[i].seen = false;
	for (size_t i = 0; i < count; i++)
		if (wants(hook, findings[i].rule))
			note(hook, &findings[i]);
	for (size_t i = 0; i < hook->count; i++) {
		struct entry *entry = &hook->entries[i];

		if (entry->seen || entry->alert.resolved)
			continue;
		entry->alert.resolved = wall;
		entry->changed++;
	}
	waiting_ring(&hook->waiting);
	waiting_unlock(&hook->waiting);
}

/* ---- telling it ---------------------------------------------------------------------------- */

static bool is_due(const struct hook *hook, const struct entry *entry, outbox_time mono)
{
	if (entry->changed != entry->told)
		return true;
	return !entry->alert.resolved && hook->config.repeat != OUTBOX_NEVER &&
	       mono - entry->told_at >= hook->config.repeat;
}

struct letter {
	size_t count;
	struct hook_alert alerts[BATCH];
	unsigned changed[BATCH];
};

static void fill_letter(const struct hook *hook, outbox_time mono, struct letter *letter)
{
	letter->count = 0;
	for (size_t i = 0; i < hook->count && letter->count < BATCH; i++) {
		if (!is_due(hook, &hook->entries[i], mono))
			continue;
		letter->alerts[letter->count] = hook->entries[i].alert;
		letter->changed[letter->count++] = hook->entries[i].changed;
	}
}

/* Those of the letter are told as they were then; what is over and told is forgotten. */
static void mark_told(struct hook *hook, const struct letter *letter, outbox_time mono)
{
	for (size_t k = 0; k < letter->count; k++) {
		const struct hook_alert *sent = &letter->alerts[k];
		struct health_finding key = { .rule = sent->rule,
					      .source = sent->source,
					      .target = sent->target };
		struct entry *entry = find(hook, &key);

		entry->told = letter->changed[k];
		entry->told_at = mono;
		if (entry->alert.resolved && entry->told == entry->changed)
			*entry = hook->entries[--hook->count];
	}
	hook->full = hook->full && hook->count == HOOK_ALERTS_MAX;
}

static bool stop(void *context)
{
	struct hook *hook = context;
	bool leaving;

	waiting_lock(&hook->waiting);
	leaving = hook->leaving;
	waiting_unlock(&hook->waiting);
	return leaving;
}

static void free_text(char **text)
{
	free(*text);
}

static int send_letter(struct hook *hook, const struct letter *letter, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	char bearer[4200];
	const char *headers[] = { bearer, NULL };
	_cleanup_(free_text) char *body =
		hook_body(&hook->config, letter->alerts, letter->count, clock->wall(clock));
	struct post_request request = { .url = hook->config.url,
					.headers = hook->config.token ? headers : NULL,
					.body = body,
					.timeout = hook->config.timeout,
					.stop = stop,
					.context = hook };
	int r;

	if (!body)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	request.size = strlen(body);
	snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s",
		 hook->config.token ? hook->config.token : "");
	r = post_send(hook->post, &request, err);
	explicit_bzero(bearer, sizeof(bearer));
	return r;
}

/* One line when it goes wrong, one when it is well again; nothing in between. */
static void say(struct hook *hook, int r, const struct outbox_error *err)
{
	if (r && !hook->pause && !stop(hook))
		journal(EVENT_ALERT_UNTOLD, NULL, "%s cannot be told: %s; it is tried again",
			hook->config.name, err->message);
	if (!r && hook->pause)
		journal(EVENT_ALERT_TOLD, NULL, "%s is told again", hook->config.name);
	if (!r)
		hook->pause = 0;
	else
		hook->pause = !hook->pause                  ? PAUSE_MIN
			      : hook->pause * 2 > PAUSE_MAX ? PAUSE_MAX
							    : hook->pause * 2;
}

static void *run(void *context)
{
	struct hook *hook = context;
	struct outbox_clock *clock = outbox_clock_system();
	struct letter *letter = calloc(1, sizeof(*letter));
	outbox_time not_before = 0;

	waiting_lock(&hook->waiting);
	while (!hook->leaving && letter) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		outbox_time mono = clock->mono(clock);
		int r;

		fill_letter(hook, mono, letter);
		if (letter->count == 0 || mono < not_before) {
			/* what is repeated is looked for now and then */
			waiting_wait(&hook->waiting,
				     mono < not_before ? not_before - mono : OUTBOX_SECONDS);
			continue;
		}
		waiting_unlock(&hook->waiting);
		r = send_letter(hook, letter, &err);
		say(hook, r, &err);
		mono = clock->mono(clock);
		not_before = mono + hook->pause;
		waiting_lock(&hook->waiting);
		if (r == OUTBOX_OK)
			mark_told(hook, letter, mono);
	}
	hook->left = true;
	waiting_unlock(&hook->waiting);
	free(letter);
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static int copy_config(struct hook *hook, const struct config_alert *from, struct outbox_error *err)
{
	struct config_alert *to = &hook->config;
	bool whole;

	*to = *from;
	to->name = outbox_arena_text(hook->arena, from->name);
	to->url = outbox_arena_text(hook->arena, from->url);
	to->token = outbox_arena_text(hook->arena, from->token);
	to->rules.items = outbox_arena_alloc(hook->arena, (from->rules.count + 1) * sizeof(char *));
	whole = to->name && to->url && (!from->token || to->token) && to->rules.items;
	for (size_t i = 0; whole && i < from->rules.count; i++) {
		to->rules.items[i] = outbox_arena_text(hook->arena, from->rules.items[i]);
		whole = to->rules.items[i] != NULL;
	}
	return whole ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static void dispose(struct hook *hook)
{
	post_free(hook->post);
	outbox_arena_free(hook->arena);
	free(hook);
}

int hook_start(const struct config_alert *config, struct hook **ret_hook, struct outbox_error *err)
{
	struct hook *hook = calloc(1, sizeof(*hook));
	int r;

	if (!hook)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	hook->arena = outbox_arena_new((size_t)1 << 20);
	r = hook->arena ? copy_config(hook, config, err)
			: outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK)
		r = post_new(&hook->post, err);
	if (r == OUTBOX_OK)
		r = waiting_init(&hook->waiting, err);
	if (r == OUTBOX_OK && pthread_create(&hook->thread, NULL, run, hook) != 0) {
		waiting_deinit(&hook->waiting);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot start a thread");
	}
	if (r)
		dispose(hook);
	else
		*ret_hook = hook;
	return r;
}

void hook_leave(struct hook *hook)
{
	waiting_lock(&hook->waiting);
	hook->leaving = true;
	waiting_ring(&hook->waiting);
	waiting_unlock(&hook->waiting);
}

bool hook_left(struct hook *hook)
{
	bool left;

	waiting_lock(&hook->waiting);
	left = hook->left;
	waiting_unlock(&hook->waiting);
	return left;
}

struct hook *hook_free(struct hook *hook)
{
	if (!hook)
		return NULL;
	hook_leave(hook);
	pthread_join(hook->thread, NULL);
	waiting_deinit(&hook->waiting);
	dispose(hook);
	return NULL;
}
