/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/fields.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/secrets.h"
#include "fields/json_value.h"

#include <string.h>

static json_t *text_json(const struct field *field, const char *text)
{
	_cleanup_(buf_deinit) struct buf hidden = BUF_INIT(text ? 4 * strlen(text) + 1 : 1);

	if (!text || !(field->flags & FIELD_UNTRUSTED))
		return json_text(text);
	hide_secrets(text, &hidden);
	return hidden.failed ? NULL : json_text(buf_str(&hidden));
}

static json_t *field_json(const struct field *field, const void *row)
{
	const void *at = (const char *)row + field->offset;

	if (field->make)
		return field->make(row);
	switch (field->type) {
	case FIELD_TEXT:
		return text_json(field, *(const char *const *)at);
	case FIELD_CHARS:
		return text_json(field, at);
	case FIELD_WORD:
		return json_text(field_word_name(field->words, *(const int *)at));
	case FIELD_SEQ:
		return json_seq(*(const int64_t *)at);
	case FIELD_TIME:
		return json_time(*(const outbox_time *)at);
	case FIELD_INT:
		return json_integer(*(const int *)at);
	case FIELD_NUMBER:
		return json_integer(*(const int64_t *)at);
	case FIELD_COUNT:
		return json_integer((json_int_t) * (const size_t *)at);
	case FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case FIELD_SECONDS:
		if ((field->flags & FIELD_NULL) && *(const outbox_time *)at == 0)
			return json_null();
		return json_seconds(*(const outbox_time *)at);
	case FIELD_THOUSANDTHS:
		return json_thousandths(*(const int64_t *)at);
	default: /* is made, or comes in only */
		return NULL;
	}
}

json_t *fields_json(const struct record *record, const void *row)
{
	json_t *object = record->base ? fields_json(record->base, row) : json_object();

	for (size_t i = 0; object && i < record->count; i++) {
		const struct field *field = &record->fields[i];
		json_t *value = field_json(field, row);

		if (!value && (field->flags & FIELD_ABSENT))
			continue;
		if (json_object_set_new(object, field->name, value)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *fields_list(const struct record *record, const void *rows, size_t count, size_t size)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++) {
		if (json_array_append_new(list, fields_json(record, (const char *)rows + i * size))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
