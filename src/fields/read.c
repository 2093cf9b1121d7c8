/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that callers give, into a struct: every mistake is told with the field, the value and the remedy. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/text.h"
#include "fields/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80

static int reject_json(const struct field *field, const json_t *value, struct outbox_error *err)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	field_reject(field,
		     json_is_string(value) ? json_string_value(value)
		     : text                ? text
					   : "?",
		     err);
	free(text);
	return OUTBOX_EINVAL;
}

static int read_texts(const struct field *field, const json_t *list,
		      const struct field_context *context, void *at, struct outbox_error *err)
{
	size_t count = json_array_size(list);
	char shown[SHOWN];
	int r = OUTBOX_OK;

	if (count < (size_t)field->min || count > (size_t)field->max) {
		snprintf(shown, sizeof(shown), "a list of %zu", count);
		return field_reject(field, shown, err);
	}
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		const json_t *item = json_array_get(list, i);

		r = json_is_string(item)
			    ? field_add(field, json_string_value(item), context, at, err)
			    : reject_json(field, item, err);
	}
	return r;
}

static int read_map(const struct field *field, json_t *object, const struct field_context *context,
		    struct field_map *ret_map, struct outbox_error *err)
{
	struct field_map map = { .given = true };
	const char *name;
	json_t *value;

	map.items = outbox_arena_alloc(context->arena,
				       (json_object_size(object) + 1) * sizeof(*map.items));
	if (!map.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	json_object_foreach(object, name, value)
	{
		struct outbox_header *item = &map.items[map.count++];

		if (!json_is_string(value))
			return reject_json(field, value, err);
		item->name = outbox_arena_text(context->arena, name);
		item->value = outbox_arena_text(context->arena, json_string_value(value));
		if (!item->name || !item->value)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_map = map;
	return OUTBOX_OK;
}

/* A number and a bool must not come as strings, all else that is one text must. */
static int read_json(const struct field *field, const json_t *value,
		     const struct field_context *context, void *at, struct outbox_error *err)
{
	const char *text = NULL;
	char number[32];

	switch (field->type) {
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		text = json_is_integer(value) ? number : NULL;
		break;
	case FIELD_BOOL:
		text = json_is_true(value) ? "true" : json_is_false(value) ? "false" : NULL;
		break;
	case FIELD_TEXTS:
		return json_is_array(value) ? read_texts(field, value, context, at, err)
					    : reject_json(field, value, err);
	case FIELD_MAP:
		return json_is_object(value) ? read_map(field, (json_t *)value, context, at, err)
					     : reject_json(field, value, err);
	default:
		text = json_string_value(value);
		break;
	}
	return text ? field_parse(field, text, context, at, err) : reject_json(field, value, err);
}

int fields_read_text(const struct field *field, const char *text, struct outbox_arena *arena,
		     void *values, struct outbox_error *err)
{
	const struct field_context context = { .arena = arena, .now = wall_now() };
	int r = field_parse(field, text, &context, (char *)values + field->offset, err);

	return r ? outbox_wrap(err, "%s", field->name) : OUTBOX_OK;
}

const struct field *fields_find(const struct record *record, const char *name)
{
	for (size_t i = 0; record && i < record->count; i++)
		if (strcmp(record->fields[i].name, name) == 0)
			return &record->fields[i];
	return NULL;
}

static struct nearest near_field(const struct record *record, const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; record && i < record->count; i++)
		nearest_offer(&nearest, record->fields[i].name);
	return nearest;
}

const char *fields_nearest(const struct record *record, const char *name)
{
	return near_field(record, name).best;
}

int fields_check_name(const struct record *record, const char *what, const char *name,
		      struct outbox_error *err)
{
	struct nearest nearest = near_field(record, name);

	return fields_find(record, name) ? OUTBOX_OK
					 : nearest_fail(&nearest, OUTBOX_EINVAL, what, err);
}

static int missing(const struct field *field, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf form = BUF_INIT(400);

	/* that a text is one need not be said */
	if (field->type != FIELD_TEXT || field_word_at(field, 0) || !field->help)
		field_describe(field, &form);
	return outbox_fail(err, OUTBOX_EINVAL, "%s is missing: %s%s%s", field->name,
			   field->help ? field->help : "",
			   field->help && form.size ? "; write " : "", buf_str(&form));
}

int fields_read(const struct record *record, const json_t *object, struct outbox_arena *arena,
		void *values, struct outbox_error *err)
{
	const struct field_context context = { .arena = arena, .now = wall_now() };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		const struct field *field = fields_find(record, name);

		if (!field)
			return fields_check_name(record, "field", name, err);
		/* null too: who computes a field must not get its default for what went wrong */
		if (read_json(field, value, &context, (char *)values + field->offset, err))
			return outbox_wrap(err, "%s", field->name);
	}
	for (size_t i = 0; record && i < record->count; i++) {
		const struct field *field = &record->fields[i];

		if ((field->flags & FIELD_REQUIRED) && !json_object_get(object, field->name))
			return missing(field, err);
	}
	return OUTBOX_OK;
}
