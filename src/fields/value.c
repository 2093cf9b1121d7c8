/* SPDX-License-Identifier: Apache-2.0 */
/* From text to type, and what is said of a text that is none. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/rate.h"
#include "base/text.h"
#include "base/url.h"
#include "core/routing.h"
#include "fields/fields.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *field_word_at(const struct field *field, size_t i)
{
	if (field->type == FIELD_POLICY)
		return outbox_policy_at(i) ? outbox_policy_at(i)->name : NULL;
	return field->words ? field->words[i + !field->words[0]] : NULL;
}

bool field_is_list(enum field_type type)
{
	return type == FIELD_TEXTS || type == FIELD_GLOBS || type == FIELD_DURATIONS;
}

/* ---- what is wrong -------------------------------------------------------------------------- */

static int reject_word(const struct field *field, const char *text, const char *shown,
		       struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	struct nearest nearest;
	const char *word;

	nearest_init(&nearest, text);
	for (size_t i = 0; (word = field_word_at(field, i)); i++) {
		nearest_offer(&nearest, word);
		buf_printf(&names, "%s%s",
			   i == 0                        ? ""
			   : field_word_at(field, i + 1) ? ", "
							 : " or ",
			   word);
	}
	if (!field_word_at(field, 1)) /* who reads it need not be asked what was meant */
		nearest.best = NULL;
	return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is not %s%s%s%s%s", shown,
			   field_word_at(field, 1) ? "one of " : "", buf_str(&names),
			   nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
			   nearest.best ? "?" : "");
}

static int reject_number(const struct field *field, const char *shown, struct outbox_error *err)
{
	if (!field->max)
		return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is not a whole number", shown);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a %snumber from %" PRId64 " to %" PRId64, shown,
			   field->type == FIELD_FACTOR ? "" : "whole ", field->min, field->max);
}

static int reject_duration(const struct field *field, struct outbox_error *err)
{
	char min[DURATION_TEXT_MAX], max[DURATION_TEXT_MAX];

	if (!field->max)
		return outbox_fail(err, OUTBOX_EINVAL, "must be above 0; write a duration like 5s");
	return outbox_fail(err, OUTBOX_EINVAL, "must be between %s and %s",
			   duration_exact(field->min, min), duration_exact(field->max, max));
}

/* Behind "is"; the others are no text. */
static const char *const remedies[FIELD_TYPES] = {
	[FIELD_NAME] = "not a name; write a lower-case letter, then up to 62 of a-z, 0-9, _ and -",
	[FIELD_URL] = "not a URL; write a scheme and a colon first, like sqlite:app.db or amqp://mq/",
	[FIELD_BOOL] = "neither true nor false",
	[FIELD_BYTES] = "not a size; write 65536, 64KiB or 8MiB",
	[FIELD_TIME] = "not a time; write +5m or 2026-11-15T18:00:00Z",
	[FIELD_AGO] = "neither an age nor a time; write 7d or 2026-11-15T18:00:00Z",
	[FIELD_START] = "neither oldest, now nor a time; write a time like 2026-11-15T18:00:00Z",
	[FIELD_DURATION] = "not a duration; write 500ms, 5s, 1m30s, 2h or 7d",
	[FIELD_DURATIONS] = "not a duration; write 500ms, 5s, 1m30s, 2h or 7d",
	[FIELD_KEEP] = "not a duration; write 500ms, 5s, 1m30s, 7d or forever",
	[FIELD_RATE] = "not a rate; write 50/s, 3000/min or \"none\"",
	[FIELD_PER_SECOND] = "not a rate; write 50/s or 3000/min",
	[FIELD_MAP] = "not an object of texts",
};

int field_reject(const struct field *field, const char *text, struct outbox_error *err)
{
	char masked[200], shown[120];
	outbox_time duration;

	if (field->type == FIELD_URL)
		text = (url_mask(text, masked, sizeof(masked)), masked);
	text_shown(shown, field->type == FIELD_URL ? sizeof(shown) : 80, text);
	switch (field->type) {
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
	case FIELD_FACTOR:
		return reject_number(field, shown, err);
	case FIELD_DURATION:
	case FIELD_DURATIONS:
	case FIELD_KEEP:
		if (duration_parse(text, &duration, NULL) == OUTBOX_OK)
			return reject_duration(field, err);
		break;
	case FIELD_TEXTS:
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is not a list of %" PRId64 " to %" PRId64 " texts",
				   shown, field->min, field->max);
	default:
		break;
	}
	if (field_word_at(field, 0))
		return reject_word(field, text, shown, err);
	return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is %s", shown,
			   remedies[field->type] ? remedies[field->type] : "not a text");
}

/* ---- one function a type: false, it is none ------------------------------------------------- */

static bool parse_whole(const struct field *field, const char *text, void *value)
{
	int64_t most = field->max ? field->max : field->type == FIELD_INT ? INT_MAX : INT64_MAX;
	int64_t number;

	if (number_parse("", text, field->min, most, &number, NULL) != OUTBOX_OK)
		return false;
	if (field->type == FIELD_INT)
		*(int *)value = (int)number;
	else if (field->type == FIELD_COUNT)
		*(size_t *)value = (size_t)number;
	else
		*(int64_t *)value = number;
	return true;
}

static bool parse_factor(const struct field *field, const char *text, double *value)
{
	/* no hexadecimal, no inf, no sign: what a person would write */
	bool plain = strspn(text, "0123456789.") == strlen(text) && strlen(text) < 20;
	char *end = NULL;
	double number = plain ? strtod(text, &end) : -1;

	if (!plain || end == text || *end || number < (double)field->min ||
	    number > (double)field->max)
		return false;
	*value = number;
	return true;
}

static bool parse_bool(const char *text, bool *value)
{
	bool yes = strcmp(text, "true") == 0;

	if (yes || strcmp(text, "false") == 0)
		*value = yes;
	return yes || strcmp(text, "false") == 0;
}

static bool parse_duration(const struct field *field, const char *text, outbox_time *value)
{
	outbox_time duration;

	if (field->type == FIELD_KEEP && strcmp(text, "forever") == 0)
		duration = OUTBOX_NEVER;
	else if (duration_parse(text, &duration, NULL) != OUTBOX_OK || duration <= 0)
		return false;
	if (field->max && (duration < field->min || duration > field->max))
		return false;
	*value = duration;
	return true;
}

static bool parse_per_second(const char *text, double *value)
{
	struct rate rate;

	if (rate_parse(text, &rate, NULL) != OUTBOX_OK || !rate.count || rate.period > OUTBOX_MINUTES)
		return false;
	*value = (double)rate.count * OUTBOX_SECONDS / (double)rate.period;
	return true;
}

static bool parse_start(const char *text, struct field_start *value)
{
	struct field_start start = { .where = OUTBOX_START_TIME };

	if (strcmp(text, "oldest") == 0)
		start.where = OUTBOX_START_OLDEST;
	else if (strcmp(text, "now") == 0)
		start.where = OUTBOX_START_NOW;
	else if (text[0] == '+' || time_parse(text, 0, &start.time, NULL) != OUTBOX_OK)
		return false;
	*value = start;
	return true;
}

/* One of its words, or any text when it has none. */
static bool parse_word(const struct field *field, const char *text, void *value)
{
	const char *word;

	for (size_t i = 0; (word = field_word_at(field, i)); i++) {
		if (strcmp(word, text) != 0)
			continue;
		if (field->type == FIELD_WORD)
			*(int *)value = (int)i + !field->words[0];
		else if (field->type == FIELD_POLICY)
			*(const struct outbox_policy **)value = outbox_policy_at(i);
		return true;
	}
	return !field_word_at(field, 0);
}

static bool parse_value(const struct field *field, const char *text, void *value)
{
	char scheme[32];

	switch (field->type) {
	case FIELD_NAME:
		return target_name_check(text, NULL) == OUTBOX_OK;
	case FIELD_URL:
		return url_scheme(text, scheme, sizeof(scheme));
	case FIELD_BOOL:
		return parse_bool(text, value);
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		return parse_whole(field, text, value);
	case FIELD_FACTOR:
		return parse_factor(field, text, value);
	case FIELD_BYTES:
		return size_parse(text, value, NULL) == OUTBOX_OK;
	case FIELD_START:
		return parse_start(text, value);
	case FIELD_DURATION:
	case FIELD_KEEP:
		return parse_duration(field, text, value);
	case FIELD_RATE:
		return rate_parse(text, value, NULL) == OUTBOX_OK;
	case FIELD_PER_SECOND:
		return parse_per_second(text, value);
	default:
		return parse_word(field, text, value);
	}
}

/* "7d" is seven days before now; a time stands for itself. */
static int parse_ago(const struct field *field, const char *text, outbox_time now,
		     outbox_time *value, struct outbox_error *err)
{
	outbox_time duration;

	if (duration_parse(text, &duration, NULL) == OUTBOX_OK) {
		/* 0 would be taken as "any time", and before 1970 nothing happened here */
		if (duration >= now)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "goes back before 1970; write an age like 7d");
		*value = now - duration;
		return OUTBOX_OK;
	}
	if (time_parse(text, now, value, NULL) != OUTBOX_OK)
		return field_reject(field, text, err);
	if (*value > now)
		return outbox_fail(err, OUTBOX_EINVAL, "is in the future; write an age like 7d");
	return OUTBOX_OK;
}

static int copy_text(const char *text, struct outbox_arena *arena, const char **value,
		     struct outbox_error *err)
{
	const char *copy = arena ? outbox_arena_text(arena, text) : text;

	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*value = copy;
	return OUTBOX_OK;
}

int field_parse(const struct field *field, const char *text, const struct field_context *context,
		void *value, struct outbox_error *err)
{
	if (!*text)
		return outbox_fail(err, OUTBOX_EINVAL, "is empty; write a value, or leave it out");
	if (field_is_list(field->type))
		return field_add(field, text, context, value, err);
	if (field->type == FIELD_TIME)
		return time_parse(text, context->now, value, err);
	if (field->type == FIELD_AGO)
		return parse_ago(field, text, context->now, value, err);
	if (!parse_value(field, text, value))
		return field_reject(field, text, err);
	if (field->type == FIELD_TEXT || field->type == FIELD_NAME || field->type == FIELD_URL ||
	    field->type == FIELD_SECRET)
		return copy_text(text, context->arena, value, err);
	return OUTBOX_OK;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int check_glob(const char *text, struct outbox_error *err)
{
	struct outbox_route route = { .types = &text, .n_types = 1 };
	struct outbox_error cause = OUTBOX_ERROR_INIT;

	if (route_check(&route, &cause) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "%s", error_rest(&cause));
}

static int add_text(const struct field *field, const char *text, const struct field_context *context,
		    struct field_texts *list, struct outbox_error *err)
{
	size_t most = field->max ? (size_t)field->max : FIELD_LIST_MAX;

	if (list->count == most)
		return outbox_fail(err, OUTBOX_EINVAL, "more than %zu%s", most,
				   field->type == FIELD_GLOBS ? "; use globs" : "");
	if (!list->items)
		list->items = outbox_arena_alloc(context->arena, most * sizeof(*list->items));
	if (!list->items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return copy_text(text, context->arena, &list->items[list->count++], err);
}

int field_add(const struct field *field, const char *text, const struct field_context *context,
	      void *value, struct outbox_error *err)
{
	struct field_durations *durations = value;
	int r = OUTBOX_OK;

	if (!*text)
		return outbox_fail(err, OUTBOX_EINVAL, "is empty; write a value, or leave it out");
	if (field->type == FIELD_GLOBS)
		r = check_glob(text, err);
	if (field->type != FIELD_DURATIONS)
		return r ? r : add_text(field, text, context, value, err);
	if (durations->count == OUTBOX_SCHEDULE_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "more than %d delays", OUTBOX_SCHEDULE_MAX);
	if (!parse_duration(field, text, &durations->items[durations->count]))
		return field_reject(field, text, err);
	durations->count++;
	return OUTBOX_OK;
}
