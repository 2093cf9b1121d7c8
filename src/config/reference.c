/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with every key, what it means and its default. What must be there, and what an example
 * cannot do without, is there; all the rest is commented out with its default or an example, so that taking
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

static void write_key(const struct schema_key *key, const char *lead, struct buf *out)
{
	const char *value = key->fallback ? key->fallback : key->example;
	const char *quote = needs_quotes(value) ? "\"" : "";

	buf_printf(out, "%s%s: %s%s%s\n", lead, key->name, quote, value, quote);
}

/* Where a map stands: by itself, in a list, in a list that is commented out with all that must be in it. */
enum place_of_map { ALONE, IN_LIST, IN_COMMENT };

static void write_map(const struct schema *schema, size_t indent, enum place_of_map place,
		      struct buf *out);

static void write_help(const struct schema_key *key, int indent, struct buf *out)
{
	_cleanup_(buf_deinit) struct buf form = BUF_INIT(400);

	value_describe(key, &form);
	out->failed |= form.failed;
	buf_printf(out, "%*s# %s%s", indent, "", key->help, RESTART_WORDS(key));
	if (form.size)
		buf_printf(out, "\n%*s# (%s%s%s)", indent, "", buf_str(&form),
			   key->otherwise ? "; default: " : "",
			   key->otherwise ? key->otherwise : "");
	buf_char(out, '\n');
}

static void write_group(const struct schema_key *key, int indent, struct buf *out)
{
	buf_printf(out, "%*s# %s%s\n%*s%s%s:\n", indent, "", key->help, RESTART_WORDS(key), indent,
		   "", key->required ? "" : "#", key->name);
	write_map(key->group, (size_t)indent + (key->type == SCHEMA_LIST ? 4 : 2),
		  key->type != SCHEMA_LIST ? ALONE
		  : key->required          ? IN_LIST
					   : IN_COMMENT,
		  out);
}

static void write_map(const struct schema *schema, size_t indent, enum place_of_map place,
		      struct buf *out)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct schema_key *key = &schema->keys[i];
		char lead[64];
		int width = (int)indent;

		if (key->type == SCHEMA_GROUP || key->type == SCHEMA_LIST) {
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
				 (key->required || key->exemplary) && place != IN_COMMENT ? "" : "#");
		write_key(key, lead, out);
	}
}

void config_reference(struct buf *out)
{
	buf_text(out, "# outbox.yaml: every key there is. Made by: outbox config reference\n"
		      "# Lines that begin with # and a key show its default, or an example.\n"
		      "# ${VARIABLE} and ${VARIABLE:-default} may stand in any value.\n");
	write_map(&schema_root, 0, ALONE, out);
}
