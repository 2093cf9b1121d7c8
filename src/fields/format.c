/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/rate.h"
#include "base/text.h"
#include "base/url.h"
#include "fields/fields.h"

#include <inttypes.h>
#include <string.h>

#define URL_SHOWN_MAX 2000

static void format_duration(outbox_time duration, struct buf *out)
{
	char text[DURATION_TEXT_MAX];

	if (duration == OUTBOX_NEVER)
		buf_text(out, "forever");
	else if (duration > 0)
		buf_text(out, duration_exact(duration, text));
}

/* The path of a secret's file is no secret. */
static void format_secret(const char *text, struct buf *out)
{
	if (text)
		buf_text(out, strncmp(text, "file:", 5) == 0 ? text : "***");
}

static void format_url(const char *text, struct buf *out)
{
	char masked[URL_SHOWN_MAX];

	if (!text)
		return;
	url_mask(text, masked, sizeof(masked));
	out->failed |= !masked[0]; /* no memory for it */
	buf_text(out, masked);
}

const char *field_word_name(const char *const *words, int value)
{
	for (int i = 0; i < value; i++)
		if (!words[i] && i > 0)
			return NULL;
	return value < 0 ? NULL : words[value];
}

static void format_list(enum field_type type, const void *value, struct buf *out)
{
	const struct field_durations *durations = value;
	const struct field_texts *texts = value;
	size_t count = type == FIELD_GLOBS ? texts->count : durations->count;

	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_text(out, ",");
		if (type == FIELD_GLOBS)
			buf_text(out, texts->items[i]);
		else
			format_duration(durations->items[i], out);
	}
}

static void format_number(const struct field *field, int64_t number, struct buf *out)
{
	/* -1 and, where 0 is no value, 0 are "not set" */
	if (number >= 0 && (number > 0 || field->min <= 0))
		buf_printf(out, "%" PRId64, number);
}

static void format_start(const struct field_start *start, struct buf *out)
{
	char text[TIME_TEXT_MAX];

	if (start->where == OUTBOX_START_TIME)
		buf_text(out, time_format(start->time, text));
	else if (start->where)
		buf_text(out, start->where == OUTBOX_START_NOW ? "now" : "oldest");
}

void field_format(const struct field *field, const void *value, struct buf *out)
{
	const char *text = NULL;
	char size[SIZE_TEXT_MAX], rate[RATE_TEXT_MAX];

	switch (field->type) {
	case FIELD_NAME:
	case FIELD_TEXT:
		text = *(const char *const *)value;
		buf_text(out, text ? text : "");
		return;
	case FIELD_URL:
		format_url(*(const char *const *)value, out);
		return;
	case FIELD_SECRET:
		format_secret(*(const char *const *)value, out);
		return;
	case FIELD_BOOL:
		buf_text(out, *(const bool *)value ? "true" : "false");
		return;
	case FIELD_NUMBER:
		format_number(field, *(const int64_t *)value, out);
		return;
	case FIELD_FACTOR:
		if (*(const double *)value > 0)
			buf_printf(out, "%g", *(const double *)value);
		return;
	case FIELD_BYTES:
		buf_text(out, size_exact(*(const int64_t *)value, size));
		return;
	case FIELD_DURATION:
	case FIELD_KEEP:
		format_duration(*(const outbox_time *)value, out);
		return;
	case FIELD_WORD:
		text = field_word_name(field->words, *(const int *)value);
		buf_text(out, text ? text : "");
		return;
	case FIELD_RATE:
		buf_text(out, rate_format(value, rate));
		return;
	case FIELD_START:
		format_start(value, out);
		return;
	case FIELD_POLICY:
		buf_text(out, (*(const struct outbox_policy *const *)value)->name);
		return;
	case FIELD_GLOBS:
	case FIELD_DURATIONS:
		format_list(field->type, value, out);
		return;
	default: /* no type of the configuration */
		return;
	}
}

void field_describe(const struct field *field, struct buf *out)
{
	static const char *const forms[FIELD_TYPES] = {
		[FIELD_TEXT] = "a text",
		[FIELD_NAME] = "a-z, 0-9, _ and -",
		[FIELD_URL] = "a URL",
		[FIELD_SECRET] = "file:PATH, ${VARIABLE} or the secret itself",
		[FIELD_BOOL] = "true or false",
		[FIELD_BYTES] = "a size: 65536, 64KiB, 8MiB",
		[FIELD_TIME] = "a time like 2026-11-15T18:00:00Z, or +5m",
		[FIELD_START] = "oldest, now or a time: 2026-11-15T18:00:00Z",
		[FIELD_DURATION] = "a duration: 500ms, 5s, 7d",
		[FIELD_KEEP] = "a duration, or forever",
		[FIELD_RATE] = "50/s, 3000/min, 100/h or none",
		[FIELD_GLOBS] = "a list",
		[FIELD_DURATIONS] = "a list",
	};
	const char *word;

	if (field->max && !forms[field->type])
		buf_printf(out, "%s%" PRId64 " to %" PRId64,
			   field->type == FIELD_FACTOR ? "a number from " : "", field->min,
			   field->max);
	else if (!field_word_at(field, 0) && forms[field->type])
		buf_text(out, forms[field->type]);
	for (size_t i = 0; (word = field_word_at(field, i)); i++)
		buf_printf(out, "%s%s", i ? ", " : "", word);
}
