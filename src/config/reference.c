/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made from the tables for people: JSON Schema, for editors that complete and check while one types, and a
 * file with every key, what it means and its default. What must be there is there; all the rest is commented out with its default or an example, so that taking
 * the # away is all it takes.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

static bool needs_quotes(const char *text)
{
	return text[0] != '[' && strpbrk(text, ":{}#&*!|>'\"%@`, ") != NULL;
}

static void write_key(const struct field *key, const char *lead, struct buf *out)
{
	const char *value = key->fallback ? key->fallback : key->example;
	const char *quote = needs_quotes(value) ? "\"" : "";

	buf_printf(out, "%s%s: %s%s%s\n", lead, key->name, quote, value, quote);
}

/* Where a map stands: by itself, in a list, in a list that is commented out with all that must be in it. */
enum place_of_map { ALONE, IN_LIST, IN_COMMENT };

static void write_map(const struct record *schema, size_t indent, enum place_of_map place,
		      struct buf *out);

static void write_help(const struct field *key, int indent, struct buf *out)
{
	_cleanup_(buf_deinit) struct buf form = BUF_INIT(400);

	field_describe(key, &form);
	out->failed |= form.failed;
	buf_printf(out, "%*s# %s%s", indent, "", key->help, FIELD_RESTART_WORDS(key));
	if (form.size)
		buf_printf(out, "\n%*s# (%s%s%s)", indent, "", buf_str(&form),
			   key->otherwise ? "; default: " : "",
			   key->otherwise ? key->otherwise : "");
	buf_char(out, '\n');
}

static void write_group(const struct field *key, int indent, struct buf *out)
{
	buf_printf(out, "%*s# %s%s\n%*s%s%s:\n", indent, "", key->help, FIELD_RESTART_WORDS(key),
		   indent, "", (key->flags & FIELD_REQUIRED) ? "" : "#", key->name);
	write_map(key->of, (size_t)indent + (key->type == FIELD_LIST ? 4 : 2),
		  key->type != FIELD_LIST         ? ALONE
		  : (key->flags & FIELD_REQUIRED) ? IN_LIST
						  : IN_COMMENT,
		  out);
}

static void write_map(const struct record *schema, size_t indent, enum place_of_map place,
		      struct buf *out)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct field *key = &schema->fields[i];
		char lead[64];
		int width = (int)indent;

		if (key->type == FIELD_OBJECT || key->type == FIELD_LIST) {
			if (indent == 0)
				buf_char(out, '\n');
			write_group(key, width, out);
			continue;
		}
		write_help(key, width, out);
		if (place != ALONE && i == 0)
			snprintf(lead, sizeof(lead), "%*s%s- ", width - 2, "",
				 place == IN_COMMENT ? "#" : "");
		else
			snprintf(lead, sizeof(lead), "%*s%s", width, "",
				 (key->flags & FIELD_REQUIRED) && place != IN_COMMENT ? "" : "#");
		write_key(key, lead, out);
	}
}

void config_reference(struct buf *out)
{
	buf_text(out, "# outbox.yaml: every key, as printed by: outbox config reference\n"
		      "# Lines that begin with # and a key show its default, or an example.\n"
		      "# ${VARIABLE} and ${VARIABLE:-default} can be used in any value.\n");
	write_map(&schema_root, 0, ALONE, out);
}

json_t *config_json_schema(void)
{
	json_t *root = fields_schema(&schema_root, FIELDS_FILE);

	if (!root ||
	    json_object_set_new(root, "$schema",
				json_string("https://json-schema.org/draft/2020-12/schema")) ||
	    json_object_set_new(root, "title", json_string("outbox.yaml"))) {
		json_decref(root);
		return NULL;
	}
	return root;
}
