/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of fields as JSON Schema. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "fields/fields.h"

#define DURATION "^([0-9]+(\\.[0-9]+)?(us|ms|s|m|h|d))+$"

/* Texts of one form. */
static const char *const patterns[FIELD_TYPES] = {
	[FIELD_NAME] = "^[a-z][a-z0-9_-]{0,62}$",
	[FIELD_URL] = "^[a-z][a-z0-9+.-]*:",
	[FIELD_SEQ] = "^-?[0-9]+$",
	[FIELD_START] = "^(oldest|now|[0-9]{4}-[0-9]{2}-[0-9]{2}T.*)$",
	[FIELD_DURATION] = DURATION,
	[FIELD_RATE] = "^([0-9]+/(s|min|h)|none)$",
};

/* NULL instead of a value that lacks something. */
static json_t *unless(bool failed, json_t *value)
{
	if (!failed)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *pattern(const char *text)
{
	return json_pack("{s:s, s:s}", "type", "string", "pattern", text);
}

static json_t *words(const struct field *field, enum fields_use use)
{
	json_t *list = json_array();
	const char *word;
	int failed = 0;

	for (size_t i = 0; (word = field_word_at(field, i)); i++)
		failed |= json_array_append_new(list, json_string(word));
	if (use == FIELDS_OUT && (field->flags & FIELD_NULL))
		failed |= json_array_append_new(list, json_null());
	return json_pack("{s:s, s:o}", "type", "string", "enum", unless(failed, list));
}

static json_t *text(enum fields_use use)
{
	return use == FIELDS_OUT ? json_pack("{s:s}", "type", "string")
				 : json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
}

static json_t *number(const char *type, const struct field *field, enum fields_use use)
{
	if (use == FIELDS_OUT || !field->max)
		return json_pack("{s:s}", "type", type);
	return json_pack("{s:s, s:I, s:I}", "type", type, "minimum", (json_int_t)field->min,
			 "maximum", (json_int_t)field->max);
}

static json_t *list_of(json_t *items, int64_t min, int64_t max)
{
	return json_pack("{s:s, s:o, s:I, s:I}", "type", "array", "items", items, "minItems",
			 (json_int_t)min, "maxItems", (json_int_t)max);
}

static json_t *one_or_more(json_t *item)
{
	/* O with NULL is refused, and so is what is packed of it */
	json_t *both = json_pack("[O, {s:s, s:O}]", item, "type", "array", "items", item);

	json_decref(item);
	return json_pack("{s:o}", "anyOf", both);
}

static json_t *other_record(const struct field *field, enum fields_use use)
{
	return use == FIELDS_FILE
		       ? fields_schema(field->of, use)
		       : json_pack("{s:o}", "$ref",
				   json_sprintf("#/components/schemas/%s", field->of->name));
}

/* Types of several texts, of other records, and those that may be written in two ways. */
static json_t *composed(const struct field *field, enum fields_use use)
{
	switch (field->type) {
	case FIELD_BYTES:
		return json_pack("{s:[{s:s, s:i}, o]}", "anyOf", "type", "integer", "minimum", 1,
				 pattern("^[0-9]+(B|K|KiB|M|MiB|G|GiB)?$"));
	case FIELD_KEEP:
		return json_pack("{s:[{s:s}, o]}", "anyOf", "const", "forever", pattern(DURATION));
	case FIELD_TEXTS:
		return list_of(text(use), field->min, field->max);
	case FIELD_GLOBS:
		return one_or_more(text(use));
	case FIELD_DURATIONS:
		return one_or_more(pattern(DURATION));
	case FIELD_MAP:
		return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
				 "string");
	case FIELD_OBJECT:
		return other_record(field, use);
	case FIELD_LIST:
		if (use == FIELDS_FILE)
			return list_of(other_record(field, use), 1, FIELD_LIST_MAX);
		return json_pack("{s:s, s:o}", "type", "array", "items", other_record(field, use));
	default: /* of the command line only */
		return NULL;
	}
}

static json_t *type_schema(const struct field *field, enum fields_use use)
{
	if (field_word_at(field, 0))
		return words(field, use);
	if (patterns[field->type])
		return pattern(patterns[field->type]);
	switch (field->type) {
	case FIELD_TEXT:
	case FIELD_CHARS:
	case FIELD_SECRET:
		return text(use);
	case FIELD_TIME:
	case FIELD_AGO:
		return use == FIELDS_OUT
			       ? json_pack("{s:s, s:s}", "type", "string", "format", "date-time")
			       : json_pack("{s:s}", "type", "string");
	case FIELD_INT:
	case FIELD_NUMBER:
	case FIELD_COUNT:
		return number("integer", field, use);
	case FIELD_FACTOR:
	case FIELD_SECONDS:
	case FIELD_THOUSANDTHS:
		return number("number", field, use);
	case FIELD_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	default:
		return composed(field, use);
	}
}

/* Whatever the type, a variable may stand for it; the default is said. */
static json_t *key_schema(const struct field *field, json_t *value)
{
	_cleanup_(buf_deinit) struct buf about = BUF_INIT(1000);
	json_t *whole;

	buf_printf(&about, "%s%s", field->help, FIELD_RESTART_WORDS(field));
	if (field->type == FIELD_OBJECT || field->type == FIELD_LIST)
		return unless(about.failed || json_object_set_new(value, "description",
								  json_string(buf_str(&about))),
			      value);
	if (field->otherwise)
		buf_printf(&about, " (default: %s)", field->otherwise);
	whole = json_pack("{s:s, s:[o, {s:s, s:s}]}", "description", buf_str(&about), "anyOf",
			  value, "type", "string", "pattern", "\\$\\{");
	if (whole && field->fallback)
		whole = unless(json_object_set_new(whole, "default", json_string(field->fallback)),
			       whole);
	return unless(about.failed, whole);
}

json_t *field_schema(const struct field *field, enum fields_use use)
{
	json_t *schema = type_schema(field, use), *type = json_object_get(schema, "type");
	int failed = 0;

	if (!schema || use == FIELDS_FILE)
		return schema ? key_schema(field, schema) : NULL;
	if ((field->flags & FIELD_NULL) && type)
		failed |= json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
	if (field->help)
		failed |= json_object_set_new(schema, "description", json_string(field->help));
	return unless(failed, schema);
}

static int add_fields(const struct record *record, enum fields_use use, json_t *properties,
		      json_t *required)
{
	int failed = record->base ? add_fields(record->base, use, properties, required) : 0;

	for (size_t i = 0; i < record->count; i++) {
		const struct field *field = &record->fields[i];
		bool there = use == FIELDS_OUT ? !(field->flags & FIELD_ABSENT)
					       : field->flags & FIELD_REQUIRED;

		failed |= json_object_set_new(properties, field->name, field_schema(field, use));
		if (there)
			failed |= json_array_append_new(required, json_string(field->name));
	}
	return failed;
}

json_t *fields_schema(const struct record *record, enum fields_use use)
{
	json_t *properties = json_object(), *required = json_array();
	int failed = add_fields(record, use, properties, required);

	return unless(failed, json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties",
					properties, "required", required, "additionalProperties", 0));
}
