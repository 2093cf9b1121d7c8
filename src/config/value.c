/* SPDX-License-Identifier: Apache-2.0 */
/* From text to type and back: one function a type, one switch each way. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/rate.h"
#include "base/text.h"
#include "base/url.h"
#include "config/config.h"
#include "config/schema.h"
#include "core/routing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GLOBS_MAX 64

static int parse_text(const char *text, struct outbox_arena *arena, const char **value,
		      struct outbox_error *err)
{
	char *copy = outbox_arena_text(arena, text);

	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*value = copy;
	return OUTBOX_OK;
}

static int check_name(const char *text, struct outbox_error *err)
{
	char shown[80];

	if (target_name_check(text, NULL) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a name; write a lower-case letter, then up to %d of a-z, "
			   "0-9, _ and -",
			   text_shown(shown, sizeof(shown), text), OUTBOX_TARGET_NAME_MAX - 1);
}

static int check_url(const char *text, struct outbox_error *err)
{
	char scheme[32], masked[200], shown[120];

	if (url_scheme(text, scheme, sizeof(scheme)))
		return OUTBOX_OK;
	url_mask(text, masked, sizeof(masked));
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a URL; write a scheme and a colon first, like sqlite:app.db "
			   "or amqp://mq/",
			   text_shown(shown, sizeof(shown), masked));
}

static int parse_bool(const char *text, bool *value, struct outbox_error *err)
{
	char shown[80];

	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is neither true nor false",
				   text_shown(shown, sizeof(shown), text));
	*value = text[0] == 't';
	return OUTBOX_OK;
}

static int parse_number(const struct schema_key *key, const char *text, int64_t *value,
			struct outbox_error *err)
{
	int64_t min = (int64_t)key->min, max = (int64_t)key->max;
	char shown[80];

	if (number_parse("", text, min, max, value, NULL) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a whole number from %" PRId64 " to %" PRId64,
			   text_shown(shown, sizeof(shown), text), min, max);
}

static int parse_factor(const struct schema_key *key, const char *text, double *value,
			struct outbox_error *err)
{
	char shown[80], *end = NULL;
	/* no hexadecimal, no inf, no sign: what a person would write */
	bool plain = strspn(text, "0123456789.") == strlen(text) && strlen(text) < 20;
	double number = plain ? strtod(text, &end) : -1;

	if (!plain || end == text || *end || number < key->min || number > key->max)
		return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is not a number from %g to %g",
				   text_shown(shown, sizeof(shown), text), key->min, key->max);
	*value = number;
	return OUTBOX_OK;
}

static int parse_duration(enum schema_type type, const char *text, outbox_time *value,
			  struct outbox_error *err)
{
	outbox_time duration;
	char shown[80];

	if (type == SCHEMA_KEEP && strcmp(text, "forever") == 0) {
		*value = OUTBOX_NEVER;
		return OUTBOX_OK;
	}
	if (duration_parse(text, &duration, NULL) != OUTBOX_OK || duration <= 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is not a duration; write 500ms, 5s, 1m30s%s",
				   text_shown(shown, sizeof(shown), text),
				   type == SCHEMA_KEEP ? ", 7d or forever" : ", 2h or 7d");
	*value = duration;
	return OUTBOX_OK;
}

static int unknown_word(const char *text, const struct nearest *nearest, const struct buf *names,
			struct outbox_error *err)
{
	char shown[80];

	text_shown(shown, sizeof(shown), text);
	if (nearest->best)
		return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is none of %s; did you mean %s?",
				   shown, buf_str(names), nearest->best);
	return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is none of %s", shown, buf_str(names));
}

static int parse_choice(const struct schema_choice *choices, const char *text, int *value,
			struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(200);
	struct nearest nearest;

	nearest_init(&nearest, text);
	for (; choices->name; choices++) {
		if (strcmp(choices->name, text) == 0) {
			*value = choices->value;
			return OUTBOX_OK;
		}
		nearest_offer(&nearest, choices->name);
		buf_printf(&names, "%s%s", names.size ? ", " : "", choices->name);
	}
	return unknown_word(text, &nearest, &names, err);
}

static int parse_start(const char *text, struct config_start *value, struct outbox_error *err)
{
	struct config_start start = { .where = OUTBOX_START_TIME };
	char shown[80];

	if (strcmp(text, "oldest") == 0)
		start.where = OUTBOX_START_OLDEST;
	else if (strcmp(text, "now") == 0)
		start.where = OUTBOX_START_NOW;
	else if (text[0] == '+' || time_parse(text, 0, &start.time, NULL) != OUTBOX_OK)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is neither oldest, now nor a time; write a time like "
				   "2026-11-15T18:00:00Z",
				   text_shown(shown, sizeof(shown), text));
	*value = start;
	return OUTBOX_OK;
}

static int parse_preset(const char *text, const struct outbox_policy **value,
			struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(200);
	const struct outbox_policy *policy = outbox_policy_find(text);
	struct nearest nearest;

	if (policy) {
		*value = policy;
		return OUTBOX_OK;
	}
	nearest_init(&nearest, text);
	for (size_t i = 0; (policy = outbox_policy_at(i)); i++) {
		nearest_offer(&nearest, policy->name);
		buf_printf(&names, "%s%s", i ? ", " : "", policy->name);
	}
	return unknown_word(text, &nearest, &names, err);
}

int value_parse(const struct schema_key *key, const char *text, struct outbox_arena *arena,
		void *value, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (!*text)
		return outbox_fail(err, OUTBOX_EINVAL, "is empty; write a value, or leave it out");
	switch (key->type) {
	case SCHEMA_NAME:
		r = check_name(text, err);
		return r ? r : parse_text(text, arena, value, err);
	case SCHEMA_URL:
		r = check_url(text, err);
		return r ? r : parse_text(text, arena, value, err);
	case SCHEMA_TEXT:
	case SCHEMA_SECRET:
		return parse_text(text, arena, value, err);
	case SCHEMA_BOOL:
		return parse_bool(text, value, err);
	case SCHEMA_NUMBER:
		return parse_number(key, text, value, err);
	case SCHEMA_FACTOR:
		return parse_factor(key, text, value, err);
	case SCHEMA_SIZE:
		return size_parse(text, value, err);
	case SCHEMA_DURATION:
	case SCHEMA_KEEP:
		return parse_duration(key->type, text, value, err);
	case SCHEMA_CHOICE:
		return parse_choice(key->choices, text, value, err);
	case SCHEMA_RATE:
		return rate_parse(text, value, err);
	case SCHEMA_START:
		return parse_start(text, value, err);
	case SCHEMA_PRESET:
		return parse_preset(text, value, err);
	case SCHEMA_GLOBS:
	case SCHEMA_DURATIONS:
		return value_add(key, text, arena, value, err);
	case SCHEMA_GROUP:
	case SCHEMA_LIST:
		break;
	}
	return outbox_fail(err, OUTBOX_EINTERNAL, "%s has no single value", key->name);
}

static int add_glob(const char *text, struct outbox_arena *arena, struct config_texts *list,
		    struct outbox_error *err)
{
	struct outbox_route route = { .types = &text, .n_types = 1 };
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	const char *message = cause.message;

	if (list->count == GLOBS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "more than %d; use globs", GLOBS_MAX);
	if (route_check(&route, &cause)) {
		message += strncmp(message, "route: ", 7) == 0 ? 7 : 0;
		return outbox_fail(err, OUTBOX_EINVAL, "%s", message);
	}
	if (!list->items)
		list->items = outbox_arena_alloc(arena, GLOBS_MAX * sizeof(*list->items));
	if (!list->items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return parse_text(text, arena, &list->items[list->count++], err);
}

int value_add(const struct schema_key *key, const char *text, struct outbox_arena *arena,
	      void *value, struct outbox_error *err)
{
	struct config_durations *durations = value;
	int r;

	if (!*text)
		return outbox_fail(err, OUTBOX_EINVAL, "is empty; write a value, or leave it out");
	if (key->type == SCHEMA_GLOBS)
		return add_glob(text, arena, value, err);
	if (durations->count == OUTBOX_SCHEDULE_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "more than %d delays", OUTBOX_SCHEDULE_MAX);
	r = parse_duration(SCHEMA_DURATION, text, &durations->items[durations->count], err);
	durations->count += r == OUTBOX_OK;
	return r;
}

bool value_is_list(enum schema_type type)
{
	return type == SCHEMA_GLOBS || type == SCHEMA_DURATIONS;
}
