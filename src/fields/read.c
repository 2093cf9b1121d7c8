/* SPDX-License-Identifier: Apache-2.0 */
/* What callers give, into a struct: every mistake is told with the field, the value and the remedy. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"
#include "fields/fields.h"

#include <outbox/arena.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80

struct reading {
	const struct field *field;
	struct outbox_arena *arena;
	void *at; /* where its value goes */
};

/* What a value that is wrong looks like, cut and escaped. */
static const char *shown_json(char out[SHOWN], const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	text_shown(out, SHOWN,
		   json_is_string(value) ? json_string_value(value)
		   : text                ? text
					 : "?");
	free(text);
	return out;
}

static void remedy(const struct field *field, struct buf *out)
{
	switch (field->type) {
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		if (field->max)
			buf_printf(out, "a whole number from %" PRId64 " to %" PRId64, field->min,
				   field->max);
		else
			buf_text(out, "a whole number");
		return;
	case FIELD_BOOL:
		buf_text(out, "true or false");
		return;
	case FIELD_TIME:
		buf_text(out, "a time like 2026-11-15T18:00:00Z, or +5m");
		return;
	case FIELD_AGO:
		buf_text(out, "an age like 7d, or a time like 2026-11-15T18:00:00Z");
		return;
	case FIELD_MAP:
		buf_text(out, "an object of texts");
		return;
	case FIELD_LIST:
		buf_printf(out, "a list of %" PRId64 " to %" PRId64 " texts", field->min, field->max);
		return;
	default:
		break;
	}
	if (!field->words)
		buf_text(out, "a text");
	for (size_t i = 0; field->words && field->words[i]; i++)
		buf_printf(out, "%s%s",
			   i == 0                ? ""
			   : field->words[i + 1] ? ", "
						 : " or ",
			   field->words[i]);
}

static int wrong(const struct field *field, const char *shown, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(400);

	remedy(field, &text);
	return outbox_fail(err, OUTBOX_EINVAL, "%s: \"%s\" cannot be; write %s", field->name, shown,
			   buf_str(&text));
}

static int wrong_text(const struct field *field, const char *value, struct outbox_error *err)
{
	char shown[SHOWN];

	return wrong(field, text_shown(shown, sizeof(shown), value), err);
}

static int set_number(const struct reading *reading, int64_t number, struct outbox_error *err)
{
	const struct field *field = reading->field;
	char text[32];

	if (field->max ? number < field->min || number > field->max : number < 0) {
		snprintf(text, sizeof(text), "%" PRId64, number);
		return wrong(field, text, err);
	}
	if (field->type == FIELD_INT)
		*(int *)reading->at = (int)number;
	else if (field->type == FIELD_COUNT)
		*(size_t *)reading->at = (size_t)number;
	else
		*(int64_t *)reading->at = number;
	return OUTBOX_OK;
}

static int set_text(const struct reading *reading, const char *text, struct outbox_error *err)
{
	const struct field *field = reading->field;
	bool known = !field->words;
	char *copy;

	for (size_t i = 0; !known && field->words[i]; i++)
		known = strcmp(field->words[i], text) == 0;
	if (!known || !*text)
		return wrong_text(field, text, err);
	copy = outbox_arena_text(reading->arena, text);
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*(const char **)reading->at = copy;
	return OUTBOX_OK;
}

static int set_time(const struct reading *reading, const char *text, struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time now = clock->wall(clock), duration, time;
	bool past = reading->field->type == FIELD_AGO;

	if (past && duration_parse(text, &duration, NULL) == OUTBOX_OK && duration < now)
		time = now - duration;
	else if (time_parse(text, now, &time, NULL) != OUTBOX_OK || (past && time > now))
		return wrong_text(reading->field, text, err);
	*(outbox_time *)reading->at = time;
	return OUTBOX_OK;
}

static int set_texts(const struct reading *reading, const json_t *list, struct outbox_error *err)
{
	const struct field *field = reading->field;
	struct field_texts texts = { .count = json_array_size(list) };
	char shown[SHOWN];

	if (texts.count < (size_t)field->min || texts.count > (size_t)field->max) {
		snprintf(shown, sizeof(shown), "a list of %zu", texts.count);
		return wrong(field, shown, err);
	}
	texts.items = outbox_arena_alloc(reading->arena, texts.count * sizeof(*texts.items));
	if (!texts.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < texts.count; i++) {
		struct reading one = { &(struct field){ .name = field->name, .type = FIELD_TEXT },
				       reading->arena, &texts.items[i] };
		const json_t *item = json_array_get(list, i);
		int r;

		if (!json_is_string(item))
			return wrong(field, shown_json(shown, item), err);
		r = set_text(&one, json_string_value(item), err);
		if (r)
			return r;
	}
	*(struct field_texts *)reading->at = texts;
	return OUTBOX_OK;
}

static int set_map(const struct reading *reading, json_t *object, struct outbox_error *err)
{
	struct field_map map = { .given = true };
	char shown[SHOWN];
	const char *name;
	json_t *value;

	map.items = outbox_arena_alloc(reading->arena,
				       (json_object_size(object) + 1) * sizeof(*map.items));
	if (!map.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	json_object_foreach(object, name, value)
	{
		struct outbox_header *item = &map.items[map.count++];

		if (!json_is_string(value))
			return wrong(reading->field, shown_json(shown, value), err);
		item->name = outbox_arena_text(reading->arena, name);
		item->value = outbox_arena_text(reading->arena, json_string_value(value));
		if (!item->name || !item->value)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*(struct field_map *)reading->at = map;
	return OUTBOX_OK;
}

static int set_several(const struct reading *reading, const json_t *value, struct outbox_error *err)
{
	char shown[SHOWN];

	if (reading->field->type == FIELD_LIST && json_is_array(value))
		return set_texts(reading, value, err);
	if (reading->field->type == FIELD_MAP && json_is_object(value))
		return set_map(reading, (json_t *)value, err);
	return wrong(reading->field, shown_json(shown, value), err);
}

static int set_json(const struct reading *reading, const json_t *value, struct outbox_error *err)
{
	char shown[SHOWN];

	switch (reading->field->type) {
	case FIELD_TEXT:
		if (json_is_string(value))
			return set_text(reading, json_string_value(value), err);
		break;
	case FIELD_TIME:
	case FIELD_AGO:
		if (json_is_string(value))
			return set_time(reading, json_string_value(value), err);
		break;
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		if (json_is_integer(value))
			return set_number(reading, json_integer_value(value), err);
		break;
	case FIELD_BOOL:
		if (json_is_boolean(value)) {
			*(bool *)reading->at = json_is_true(value);
			return OUTBOX_OK;
		}
		break;
	default:
		return set_several(reading, value, err);
	}
	return wrong(reading->field, shown_json(shown, value), err);
}

int fields_read_text(const struct field *field, const char *text, struct outbox_arena *arena,
		     void *values, struct outbox_error *err)
{
	struct reading reading = { field, arena, (char *)values + field->offset };
	int64_t number;

	switch (field->type) {
	case FIELD_TEXT:
		return set_text(&reading, text, err);
	case FIELD_TIME:
	case FIELD_AGO:
		return set_time(&reading, text, err);
	case FIELD_BOOL:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return wrong_text(field, text, err);
		*(bool *)reading.at = strcmp(text, "true") == 0;
		return OUTBOX_OK;
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		if (number_parse(field->name, text, 0, INT64_MAX, &number, NULL) != OUTBOX_OK)
			return wrong_text(field, text, err);
		return set_number(&reading, number, err);
	default:
		return outbox_fail(err, OUTBOX_EINTERNAL, "%s cannot be read from a query",
				   field->name);
	}
}

static const struct field *find(const struct record *record, const char *name,
				struct nearest *nearest)
{
	nearest_init(nearest, name);
	for (size_t i = 0; record && i < record->count; i++) {
		if (strcmp(record->fields[i].name, name) == 0)
			return &record->fields[i];
		nearest_offer(nearest, record->fields[i].name);
	}
	return NULL;
}

int fields_check_name(const struct record *record, const char *what, const char *name,
		      struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	struct nearest nearest;
	char shown[SHOWN];

	if (find(record, name, &nearest))
		return OUTBOX_OK;
	text_shown(shown, sizeof(shown), name);
	if (nearest.best)
		return outbox_fail(err, OUTBOX_EINVAL, "there is no %s \"%s\"; did you mean %s?",
				   what, shown, nearest.best);
	for (size_t i = 0; record && i < record->count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", record->fields[i].name);
	return outbox_fail(err, OUTBOX_EINVAL, "there is no %s \"%s\"; there %s%s", what, shown,
			   names.size ? "are: " : "is none to give", buf_str(&names));
}

int fields_read(const struct record *record, const json_t *object, struct outbox_arena *arena,
		void *values, struct outbox_error *err)
{
	struct nearest nearest;
	const char *name;
	json_t *value;
	int r = OUTBOX_OK;

	json_object_foreach((json_t *)object, name, value)
	{
		const struct field *field = find(record, name, &nearest);

		if (!field)
			return fields_check_name(record, "field", name, err);
		/* null too: who computes a field must not get its default for what went wrong */
		r = set_json(&(struct reading){ field, arena, (char *)values + field->offset },
			     value, err);
		if (r)
			return r;
	}
	for (size_t i = 0; record && i < record->count; i++) {
		const struct field *field = &record->fields[i];
		_cleanup_(buf_deinit) struct buf text = BUF_INIT(400);

		if (!(field->flags & FIELD_REQUIRED))
			continue;
		if (json_object_get(object, field->name))
			continue;
		remedy(field, &text);
		return outbox_fail(err, OUTBOX_EINVAL, "%s is missing; write %s%s%s", field->name,
				   buf_str(&text), field->help ? ": " : "",
				   field->help ? field->help : "");
	}
	return OUTBOX_OK;
}
