/* SPDX-License-Identifier: Apache-2.0 */
/* Records as JSON Schema. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "fields/fields.h"

static json_t *reference(const struct record *record)
{
	return json_sprintf("#/components/schemas/%s", record->name);
}

static json_t *integer(const struct field *field, bool in)
{
	json_t *schema = json_pack("{s:s}", "type", "integer");

	if (in && field->max) {
		json_object_set_new(schema, "minimum", json_integer(field->min));
		json_object_set_new(schema, "maximum", json_integer(field->max));
	}
	return schema;
}

static json_t *list(const struct field *field, bool in)
{
	if (!in)
		return json_pack("{s:s, s:{s:o}}", "type", "array", "items", "$ref",
				 reference(field->of));
	return json_pack("{s:s, s:{s:s, s:i}, s:I, s:I}", "type", "array", "items", "type",
			 "string", "minLength", 1, "minItems", (json_int_t)field->min, "maxItems",
			 (json_int_t)field->max);
}

static json_t *text(const struct field *field, bool in)
{
	json_t *schema = json_pack("{s:s}", "type", "string"), *values;

	if (in && !field->words)
		json_object_set_new(schema, "minLength", json_integer(1));
	if (!field->words)
		return schema;
	values = json_array();
	for (size_t i = 0; field->words[i]; i++)
		json_array_append_new(values, json_string(field->words[i]));
	if (!in && (field->flags & FIELD_NULL))
		json_array_append_new(values, json_null());
	json_object_set_new(schema, "enum", values);
	return schema;
}

static json_t *type_schema(const struct field *field, bool in)
{
	switch (field->type) {
	case FIELD_TEXT:
	case FIELD_CHARS:
		return text(field, in);
	case FIELD_SEQ:
		return json_pack("{s:s, s:s}", "type", "string", "pattern", "^-?[0-9]+$");
	case FIELD_TIME:
	case FIELD_AGO:
		return in ? json_pack("{s:s}", "type", "string")
			  : json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		return integer(field, in);
	case FIELD_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case FIELD_SECONDS:
	case FIELD_THOUSANDTHS:
		return json_pack("{s:s}", "type", "number");
	case FIELD_LIST:
		return list(field, in);
	case FIELD_OBJECT:
		return json_pack("{s:o}", "$ref", reference(field->of));
	case FIELD_MAP:
		return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
				 "string");
	default: /* of the command line only */
		return NULL;
	}
}

json_t *field_schema(const struct field *field, bool in)
{
	json_t *schema = type_schema(field, in);

	if (schema && (field->flags & FIELD_NULL) && json_object_get(schema, "type"))
		json_object_set_new(schema, "type",
				    json_pack("[O, s]", json_object_get(schema, "type"), "null"));
	if (schema && field->help)
		json_object_set_new(schema, "description", json_string(field->help));
	return schema;
}

static void add_fields(const struct record *record, bool in, json_t *properties, json_t *required)
{
	if (record->base)
		add_fields(record->base, in, properties, required);
	for (size_t i = 0; i < record->count; i++) {
		const struct field *field = &record->fields[i];
		bool wanted = in ? field->flags & FIELD_REQUIRED : !(field->flags & FIELD_ABSENT);

		json_object_set_new(properties, field->name, field_schema(field, in));
		if (wanted)
			json_array_append_new(required, json_string(field->name));
	}
}

json_t *fields_schema(const struct record *record, bool in)
{
	json_t *properties = json_object(), *required = json_array();

	add_fields(record, in, properties, required);
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
			 "required", required, "additionalProperties", 0);
}
