/* SPDX-License-Identifier: Apache-2.0 */
#include "config/check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/url.h"
#include "config/schema.h"
#include "core/bands.h"
#include "core/retry.h"
#include "core/routing.h"

#include <string.h>

#define URL_MAX_BYTES ((size_t)16 << 10)
#define DEFAULT_BATCH 500

static void check_password(const struct node *map, const char *url, const char *password,
			   struct problems *problems)
{
	const char *host = strstr(url, "://");
	size_t size = host ? strcspn(host + 3, "/?") : 0;
	const char *at = host ? memrchr(host + 3, '@', size) : NULL;

	if (!password)
		return;
	if (!host)
		problems_about(problems, node_find(map, "password"),
			       "the URL has no host, so no password is used; remove it");
	else if (at && memchr(host + 3, ':', (size_t)(at - host) - 3))
		problems_about(problems, node_find(map, "password"),
			       "the URL already has a password; keep one of the two");
}

void check_source(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_source *source = value;

	check_password(map, source->store, source->password, problems);
}

/* What a band is, and what can be said only once. */
static void check_bands(const struct node *map, const struct config_target *target,
			struct problems *problems)
{
	const struct node *priority = node_find(node_find(map, "match"), "priority");
	char shown[80];

	for (size_t i = 0; i < target->match.priority.count; i++) {
		unsigned band = band_parse(target->match.priority.items[i]);

		if (!band || band == OUTBOX_BAND_NONE)
			problems_about(problems, priority,
				       "\"%s\" is not one of high, normal or low",
				       text_shown(shown, sizeof(shown),
						  target->match.priority.items[i]));
	}
	if (target->bands && priority)
		problems_about(
			problems, priority,
			"cannot be combined with bands, which make a target for each priority; remove one of the two");
	if (target->bands && target->match.nothing)
		problems_about(
			problems, node_find(map, "bands"),
			"cannot be combined with match.nothing: such a target has no bands; remove one of the two");
	if (target->burst && !target->rate.count)
		problems_about(problems, node_find(map, "burst"),
			       "has no effect without a rate; add rate, or remove burst");
}

/* By name: a pattern would let out what nobody thought of. */
static void check_headers(const struct node *map, const struct config_target *target,
			  struct problems *problems)
{
	char shown[80];

	for (size_t i = 0; i < target->headers.count; i++)
		if (strpbrk(target->headers.items[i], "*?"))
			problems_about(problems, node_find(map, "headers"),
				       "\"%s\" is a pattern; write each name",
				       text_shown(shown, sizeof(shown), target->headers.items[i]));
}

static bool is_web(const char *url)
{
	char scheme[8];

	return url_scheme(url, scheme, sizeof(scheme)) &&
	       (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
}

/* Keys of one kind of target. */
static void check_web(const struct node *map, const struct config_target *target,
		      struct problems *problems)
{
	static const char *const keys[] = { "sign", "bearer", "allow_private" };

	for (size_t i = 0; target->to && !is_web(target->to) && i < ARRAY_SIZE(keys); i++)
		if (node_find(map, keys[i]))
			problems_about(
				problems, node_find(map, keys[i]),
				"is for http:// and https:// targets, which this is not; remove it");
}

void check_sign(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_sign *sign = value;

	if (map && !sign->hmac && !sign->ed25519)
		problems_about(problems, map,
			       "has no key; write hmac: file:PATH or ed25519: file:PATH");
}

/* What was written as the i-th value of a list, which may be one value. */
static const struct node *node_item(const struct node *list, size_t i)
{
	const struct node *item = list && list->kind == NODE_LIST ? list->first : list;

	for (; i && item && item->next; i--)
		item = item->next;
	return item;
}

void check_match(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_match *match = value;

	for (size_t i = 0; i < match->headers.count; i++) {
		struct outbox_route route = { .headers = &match->headers.items[i], .n_headers = 1 };
		struct outbox_error err = OUTBOX_ERROR_INIT;

		if (route_check(&route, &err) != OUTBOX_OK)
			problems_about(problems, node_item(node_find(map, "headers"), i), "%s",
				       error_rest(&err));
	}
}

void check_target(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_target *target = value;
	const struct node *published = node_find(node_find(map, "match"), "published");

	check_password(map, target->to, target->password, problems);
	check_web(map, target, problems);
	check_bands(map, target, problems);
	if (target->external && target->envelope)
		problems_about(problems, node_find(map, "envelope"),
			       "an external target has an envelope of its own; remove one of the two");
	if (!target->external && target->headers.count)
		problems_about(
			problems, node_find(map, "headers"),
			"an internal target gets all headers; remove this key, or write external: true");
	check_headers(map, target, problems);
	if (target->external && published && !target->match.published)
		problems_about(
			problems, published,
			"cannot be false: an external target gets only published messages; remove this key");
	if (target->order == OUTBOX_ORDER_NONE && target->hold)
		problems_about(problems, node_find(map, "hold"),
			       "cannot be combined with order: none, where nothing waits behind a failed message; remove one of "
			       "the two");
}

static void policy_make(const struct config_retry *retry, struct outbox_policy *ret_policy)
{
	struct outbox_policy policy = *retry->preset;

	if (retry->max_attempts >= 0)
		policy.max_attempts = (int)retry->max_attempts;
	if (retry->jitter >= 0)
		policy.jitter_percent = (int)retry->jitter;
	if (retry->budget)
		policy.budget = retry->budget;
	if (retry->schedule.count) {
		policy.n_schedule = retry->schedule.count;
		memcpy(policy.schedule, retry->schedule.items, sizeof(policy.schedule));
		policy.base = policy.cap = 0;
		policy.factor = 0;
		/* the schedule's length is the limit, unless people say another */
		if (retry->max_attempts < 0)
			policy.max_attempts = (int)retry->schedule.count + 1;
	} else if (retry->base || retry->factor > 0 || retry->cap) {
		policy.n_schedule = 0;
	}
	if (retry->base)
		policy.base = retry->base;
	if (retry->factor > 0)
		policy.factor = retry->factor;
	if (retry->cap)
		policy.cap = retry->cap;
	*ret_policy = policy;
}

void check_retry(const struct node *map, const void *value, struct problems *problems)
{
	static const char *const growing[] = { "base", "factor", "cap" };
	const struct config_retry *retry = value;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_policy policy;

	if (!map)
		return;
	for (size_t i = 0; retry->schedule.count && i < ARRAY_SIZE(growing); i++)
		if (node_find(map, growing[i])) {
			problems_about(
				problems, node_find(map, growing[i]),
				"cannot be combined with schedule, which lists every delay; remove one of the two");
			return;
		}
	policy_make(retry, &policy);
	if (retry_check(&policy, &err))
		problems_about(problems, map, "%s", err.message);
}

void check_relay(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_relay *relay = value;

	if (relay->breaker_min > relay->breaker_max)
		problems_about(problems,
			       node_find(map, node_find(map, "breaker_min") ? "breaker_min"
									    : "breaker_max"),
			       "breaker_min is above breaker_max; the first pause cannot be longer than "
			       "the longest");
}

/* Where a target's failures go; NULL: nowhere, or to another relay's target, which the store knows. */
static const struct node *dead_letter_of(const struct node *list, const struct node *target)
{
	const struct node *name = node_find(target, "dead_letter");

	return name && name->text ? node_named(list, name->text) : NULL;
}

static bool leads_back(const struct node *list, const struct node *target)
{
	const struct node *at = dead_letter_of(list, target);

	for (size_t steps = 0; at && at != target && steps <= FIELD_LIST_MAX; steps++)
		at = dead_letter_of(list, at);
	return at == target;
}

static void check_dead_letters(const struct node *list, struct problems *problems)
{
	for (const struct node *item = list->first; item; item = item->next) {
		const struct node *dead = node_find(item, "dead_letter");
		const struct node *at = dead_letter_of(list, item);
		const struct node *external = node_find(at, "external");

		if (leads_back(list, item))
			problems_about(
				problems, dead,
				"it leads back to this target; a dead letter must end somewhere");
		if (external && external->text && strcmp(external->text, "true") == 0)
			problems_about(problems, dead,
				       "\"%s\" is external, and messages that fail here may not be meant for outsiders; "
				       "name another target",
				       dead->text);
	}
}

void check_names(const struct node *list, struct problems *problems)
{
	check_dead_letters(list, problems);
	for (const struct node *item = list->first; item; item = item->next)
		for (const struct node *before = list->first; before != item; before = before->next) {
			const struct node *name = node_find(item, "name");

			if (!node_name(item) || !node_name(before) ||
			    strcmp(node_name(item), node_name(before)) != 0)
				continue;
			problems_about(problems, name,
				       "%s[%zu] has this name already; names are unique", list->key,
				       before->index);
			break;
		}
}

static int64_t first_set(int64_t own, int64_t relays, int64_t presets, int64_t fallback)
{
	return own ? own : relays ? relays : presets ? presets : fallback;
}

void target_complete(struct config_target *target, const struct config_relay *relay)
{
	struct config_retry *retry = &target->retry;
	struct outbox_policy *policy = &target->policy;

	policy_make(retry, policy);
	target->batch =
		first_set(target->batch, relay->batch, (int64_t)policy->batch, DEFAULT_BATCH);
	target->lease = first_set(target->lease, relay->lease, policy->lease, 15 * OUTBOX_SECONDS);
	target->poll = first_set(target->poll, relay->poll, policy->poll, 250 * OUTBOX_MILLISECONDS);
	policy->batch = (size_t)target->batch;
	policy->lease = target->lease;
	policy->poll = target->poll;
	/* what is shown is what is done */
	retry->max_attempts = policy->max_attempts;
	retry->jitter = policy->jitter_percent;
	retry->budget = policy->budget;
	retry->schedule.count = policy->n_schedule;
	memcpy(retry->schedule.items, policy->schedule, sizeof(policy->schedule));
	retry->base = policy->n_schedule ? 0 : policy->base;
	retry->factor = policy->n_schedule ? 0 : policy->factor;
	retry->cap = policy->n_schedule ? 0 : policy->cap;
}

int url_add_password(const char *url, const char *password, struct outbox_arena *arena,
		     const char **ret_url, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(URL_MAX_BYTES);
	const char *host = strstr(url, "://"), *at;
	char *copy;

	if (!password || !host) {
		*ret_url = url;
		return OUTBOX_OK;
	}
	host += 3;
	at = memrchr(host, '@', strcspn(host, "/?"));
	buf_append(&out, url, (size_t)((at ? at : host) - url));
	buf_char(&out, ':');
	url_escape(&out, password, "");
	buf_printf(&out, "%s%s", at ? "" : "@", at ? at : host);
	copy = out.failed ? NULL : outbox_arena_text(arena, buf_str(&out));
	if (out.size)
		explicit_bzero(out.data, out.size);
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_url = copy;
	return OUTBOX_OK;
}

static bool was_read(const char *secret)
{
	return secret && strncmp(secret, "file:", 5) != 0;
}

/* One more option behind the #. */
static void add_option(struct buf *out, const char *name, const char *value)
{
	size_t hash = strcspn(buf_str(out), "#");

	buf_char(out, hash < out->size ? '&' : '#');
	buf_printf(out, "%s=", name);
	url_escape(out, value, "");
}

static void add_keys(struct buf *out, const struct config_sign *sign)
{
	const char *const keys[] = { sign->hmac, sign->ed25519, sign->previous };
	struct buf list = BUF_INIT(URL_MAX_BYTES);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (was_read(keys[i]))
			buf_printf(&list, "%s%s", list.size ? "," : "", keys[i]);
	if (list.size)
		add_option(out, "secret", buf_str(&list));
	if (list.size && sign->preset)
		add_option(out, "sign", sign->preset == 2 ? "hermodr" : "standard");
	if (list.data)
		explicit_bzero(list.data, list.capacity);
	out->failed |= list.failed;
	buf_deinit(&list);
}

int target_url(const struct config_target *target, const char *password, struct outbox_arena *arena,
	       const char **ret_url, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(URL_MAX_BYTES), networks = BUF_INIT(4096);
	int r = url_add_password(target->to, password, arena, ret_url, err);

	if (r || !is_web(target->to))
		return r;
	buf_text(&out, *ret_url);
	add_keys(&out, &target->sign);
	if (was_read(target->bearer))
		add_option(&out, "token", target->bearer);
	for (size_t i = 0; i < target->allow_private.count; i++)
		buf_printf(&networks, "%s%s", i ? "," : "", target->allow_private.items[i]);
	if (networks.size)
		add_option(&out, "allow_private", buf_str(&networks));
	*ret_url = out.failed || networks.failed ? NULL : outbox_arena_text(arena, buf_str(&out));
	if (out.data)
		explicit_bzero(out.data, out.capacity);
	return *ret_url ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}
