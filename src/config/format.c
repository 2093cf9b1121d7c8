/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/rate.h"
#include "base/text.h"
#include "base/url.h"
#include "config/config.h"
#include "config/schema.h"

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

static void format_choice(const struct schema_choice *choices, int value, struct buf *out)
{
	for (; choices->name; choices++)
		if (choices->value == value)
			buf_text(out, choices->name);
}

static void format_list(enum schema_type type, const void *value, struct buf *out)
{
	const struct config_durations *durations = value;
	const struct config_texts *texts = value;
	size_t count = type == SCHEMA_GLOBS ? texts->count : durations->count;

	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_text(out, ",");
		if (type == SCHEMA_GLOBS)
			buf_text(out, texts->items[i]);
		else
			format_duration(durations->items[i], out);
	}
}

static void format_number(const struct schema_key *key, int64_t number, struct buf *out)
{
	/* -1 and, where 0 is no value, 0 are "not set" */
	if (number >= 0 && (number > 0 || key->min <= 0))
		buf_printf(out, "%" PRId64, number);
}

static void format_start(const struct config_start *start, struct buf *out)
{
	char text[TIME_TEXT_MAX];

	if (start->where == OUTBOX_START_TIME)
		buf_text(out, time_format(start->time, text));
	else if (start->where)
		buf_text(out, start->where == OUTBOX_START_NOW ? "now" : "oldest");
}

void value_format(const struct schema_key *key, const void *value, struct buf *out)
{
	const char *text = NULL;
	char size[SIZE_TEXT_MAX], rate[RATE_TEXT_MAX];

	switch (key->type) {
	case SCHEMA_NAME:
	case SCHEMA_TEXT:
		text = *(const char *const *)value;
		buf_text(out, text ? text : "");
		return;
	case SCHEMA_URL:
		format_url(*(const char *const *)value, out);
		return;
	case SCHEMA_SECRET:
		format_secret(*(const char *const *)value, out);
		return;
	case SCHEMA_BOOL:
		buf_text(out, *(const bool *)value ? "true" : "false");
		return;
	case SCHEMA_NUMBER:
		format_number(key, *(const int64_t *)value, out);
		return;
	case SCHEMA_FACTOR:
		if (*(const double *)value > 0)
			buf_printf(out, "%g", *(const double *)value);
		return;
	case SCHEMA_SIZE:
		buf_text(out, size_exact(*(const int64_t *)value, size));
		return;
	case SCHEMA_DURATION:
	case SCHEMA_KEEP:
		format_duration(*(const outbox_time *)value, out);
		return;
	case SCHEMA_CHOICE:
		format_choice(key->choices, *(const int *)value, out);
		return;
	case SCHEMA_RATE:
		buf_text(out, rate_format(value, rate));
		return;
	case SCHEMA_START:
		format_start(value, out);
		return;
	case SCHEMA_PRESET:
		buf_text(out, (*(const struct outbox_policy *const *)value)->name);
		return;
	case SCHEMA_GLOBS:
	case SCHEMA_DURATIONS:
		format_list(key->type, value, out);
		return;
	case SCHEMA_GROUP:
	case SCHEMA_LIST:
		return;
	}
}

static void describe_words(const struct schema_key *key, struct buf *out)
{
	const struct outbox_policy *policy;

	if (key->type == SCHEMA_CHOICE) {
		for (size_t i = 0; key->choices[i].name; i++)
			buf_printf(out, "%s%s", i ? ", " : "", key->choices[i].name);
		return;
	}
	for (size_t i = 0; (policy = outbox_policy_at(i)); i++)
		buf_printf(out, "%s%s", i ? ", " : "", policy->name);
}

void value_describe(const struct schema_key *key, struct buf *out)
{
	switch (key->type) {
	case SCHEMA_NUMBER:
		buf_printf(out, "%g to %.0f", key->min, key->max);
		return;
	case SCHEMA_FACTOR:
		buf_printf(out, "a number from %g to %g", key->min, key->max);
		return;
	case SCHEMA_SIZE:
		buf_text(out, "a size: 65536, 64KiB, 8MiB");
		return;
	case SCHEMA_DURATION:
		buf_text(out, "a duration: 500ms, 5s, 7d");
		return;
	case SCHEMA_KEEP:
		buf_text(out, "a duration, or forever");
		return;
	case SCHEMA_RATE:
		buf_text(out, "50/s, 3000/min, 100/h or none");
		return;
	case SCHEMA_START:
		buf_text(out, "oldest, now or a time: 2026-11-15T18:00:00Z");
		return;
	case SCHEMA_CHOICE:
	case SCHEMA_PRESET:
		describe_words(key, out);
		return;
	case SCHEMA_BOOL:
		buf_text(out, "true or false");
		return;
	case SCHEMA_SECRET:
		buf_text(out, "file:PATH, ${VARIABLE} or the secret itself");
		return;
	case SCHEMA_GLOBS:
	case SCHEMA_DURATIONS:
		buf_text(out, "a list");
		return;
	case SCHEMA_URL:
		buf_text(out, "a URL");
		return;
	case SCHEMA_NAME:
		buf_text(out, "a-z, 0-9, _ and -");
		return;
	case SCHEMA_TEXT:
		buf_text(out, "a text");
		return;
	case SCHEMA_GROUP:
	case SCHEMA_LIST:
		return;
	}
}
