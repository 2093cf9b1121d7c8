/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schema from the tables, for editors that complete and check while one types. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "config/schema.h"

#define DURATION "^([0-9]+(\\.[0-9]+)?(us|ms|s|m|h|d))+$"

static json_t *map_schema(const struct schema *schema);

/* NULL instead of a value that lacks something. */
static json_t *unless(bool failed, json_t *value)
{
	if (!failed)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *words(const struct schema_key *key)
{
	json_t *list = json_array();
	const struct outbox_policy *policy;
	int failed = 0;

	for (size_t i = 0; key->type == SCHEMA_CHOICE && key->choices[i].name; i++)
		failed |= json_array_append_new(list, json_string(key->choices[i].name));
	for (size_t i = 0; key->type == SCHEMA_PRESET && (policy = outbox_policy_at(i)); i++)
		failed |= json_array_append_new(list, json_string(policy->name));
	return json_pack("{s:o}", "enum", unless(failed, list));
}

static json_t *pattern(const char *text)
{
	return json_pack("{s:s, s:s}", "type", "string", "pattern", text);
}

static json_t *one_or_more(json_t *item)
{
	/* O with NULL is refused, and so is what is packed of it */
	json_t *both = json_pack("[O, {s:s, s:O}]", item, "type", "array", "items", item);

	json_decref(item);
	return json_pack("{s:o}", "anyOf", both);
}

static json_t *value_schema(const struct schema_key *key)
{
	switch (key->type) {
	case SCHEMA_NAME:
		return pattern("^[a-z][a-z0-9_-]{0,62}$");
	case SCHEMA_URL:
		return pattern("^[a-z][a-z0-9+.-]*:");
	case SCHEMA_TEXT:
	case SCHEMA_SECRET:
		return json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
	case SCHEMA_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case SCHEMA_NUMBER:
		return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
				 (json_int_t)key->min, "maximum", (json_int_t)key->max);
	case SCHEMA_FACTOR:
		return json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", key->min,
				 "maximum", key->max);
	case SCHEMA_SIZE:
		return json_pack("{s:[{s:s, s:i}, o]}", "anyOf", "type", "integer", "minimum", 1,
				 pattern("^[0-9]+(B|K|KiB|M|MiB|G|GiB)?$"));
	case SCHEMA_DURATION:
		return pattern(DURATION);
	case SCHEMA_KEEP:
		return json_pack("{s:[{s:s}, o]}", "anyOf", "const", "forever", pattern(DURATION));
	case SCHEMA_RATE:
		return pattern("^([0-9]+/(s|min|h)|none)$");
	case SCHEMA_START:
		return pattern("^(oldest|now|[0-9]{4}-[0-9]{2}-[0-9]{2}T.*)$");
	case SCHEMA_CHOICE:
	case SCHEMA_PRESET:
		return words(key);
	case SCHEMA_GLOBS:
		return one_or_more(json_pack("{s:s, s:i}", "type", "string", "minLength", 1));
	case SCHEMA_DURATIONS:
		return one_or_more(pattern(DURATION));
	case SCHEMA_GROUP:
		return map_schema(key->group);
	case SCHEMA_LIST:
		return json_pack("{s:s, s:i, s:i, s:o}", "type", "array", "minItems", 1, "maxItems",
				 SCHEMA_LIST_MAX, "items", map_schema(key->group));
	}
	return NULL;
}

static json_t *key_schema(const struct schema_key *key)
{
	_cleanup_(buf_deinit) struct buf about = BUF_INIT(1000);
	json_t *value = value_schema(key), *whole;

	if (!value)
		return NULL;
	buf_printf(&about, "%s%s", key->help, RESTART_WORDS(key));
	if (key->type == SCHEMA_GROUP || key->type == SCHEMA_LIST)
		return unless(about.failed || json_object_set_new(value, "description",
								  json_string(buf_str(&about))),
			      value);
	/* whatever the type, a variable may stand for it */
	if (key->otherwise)
		buf_printf(&about, " (default: %s)", key->otherwise);
	whole = json_pack("{s:s, s:[o, {s:s, s:s}]}", "description", buf_str(&about), "anyOf",
			  value, "type", "string", "pattern", "\\$\\{");
	if (whole && key->fallback)
		whole = unless(json_object_set_new(whole, "default", json_string(key->fallback)),
			       whole);
	return unless(about.failed, whole);
}

static json_t *map_schema(const struct schema *schema)
{
	json_t *properties = json_object(), *required = json_array();
	int failed = 0;

	for (size_t i = 0; i < schema->count; i++) {
		const struct schema_key *key = &schema->keys[i];

		failed |= json_object_set_new(properties, key->name, key_schema(key));
		if (key->required)
			failed |= json_array_append_new(required, json_string(key->name));
	}
	return unless(failed,
		      json_pack("{s:s, s:b, s:o, s:o}", "type", "object", "additionalProperties", 0,
				"properties", properties, "required", required));
}

json_t *config_json_schema(void)
{
	json_t *root = map_schema(&schema_root);
	int failed = 0;

	if (!root)
		return NULL;
	failed |= json_object_set_new(root, "$schema",
				      json_string("https://json-schema.org/draft/2020-12/schema"));
	failed |= json_object_set_new(root, "title", json_string("outbox.yaml"));
	return unless(failed, root);
}
