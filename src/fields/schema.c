/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as JSON Schema. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "fields/fields.h"

static json_t *reference(const struct shape *shape)
{
	return json_sprintf("#/components/schemas/%s", shape->name);
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

	if (in && !field->values)
		json_object_set_new(schema, "minLength", json_integer(1));
	if (!field->values)
		return schema;
	values = json_array();
	for (size_t i = 0; field->values[i]; i++)
		json_array_append_new(values, json_string(field->values[i]));
	if (!in && (field->flags & FIELD_NULL))
		json_array_append_new(values, json_null());
	json_object_set_new(schema, "enum", values);
	return schema;
}

static json_t *kind_schema(const struct field *field, bool in)
{
	switch (field->kind) {
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
	case FIELD_COUNT:
	case FIELD_SIZE:
		return integer(field, in);
	case FIELD_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case FIELD_SECONDS:
	case FIELD_NUMBER:
		return json_pack("{s:s}", "type", "number");
	case FIELD_LIST:
		return list(field, in);
	case FIELD_OBJECT:
		return json_pack("{s:o}", "$ref", reference(field->of));
	case FIELD_MAP:
		return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
				 "string");
	}
	return NULL;
}

json_t *field_schema(const struct field *field, bool in)
{
	json_t *schema = kind_schema(field, in);

	if (schema && (field->flags & FIELD_NULL) && json_object_get(schema, "type"))
		json_object_set_new(schema, "type",
				    json_pack("[O, s]", json_object_get(schema, "type"), "null"));
	if (schema && field->help)
		json_object_set_new(schema, "description", json_string(field->help));
	return schema;
}

static void add_fields(const struct shape *shape, bool in, json_t *properties, json_t *required)
{
	if (shape->base)
		add_fields(shape->base, in, properties, required);
	for (size_t i = 0; i < shape->count; i++) {
		const struct field *field = &shape->fields[i];
		bool wanted = in ? field->flags & FIELD_REQUIRED : !(field->flags & FIELD_ABSENT);

		json_object_set_new(properties, field->name, field_schema(field, in));
		if (wanted)
			json_array_append_new(required, json_string(field->name));
	}
}

json_t *shape_schema(const struct shape *shape, bool in)
{
	json_t *properties = json_object(), *required = json_array();

	add_fields(shape, in, properties, required);
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
			 "required", required, "additionalProperties", 0);
}
