/* SPDX-License-Identifier: Apache-2.0 */
/* What is in effect and what is wrong with a configuration. */
#include "base/cleanup.h"
#include "config/problems.h"
#include "http/views.h"

static const char *const origins[] = { "default", "file", "environment", "set", NULL };

static json_t *in_file(const struct problem *problem, size_t n)
{
	return problem->place.origin == ORIGIN_FILE ? json_integer((json_int_t)n) : json_null();
}

static json_t *make_line(const void *row)
{
	return in_file(row, ((const struct problem *)row)->place.line);
}

static json_t *make_column(const void *row)
{
	return in_file(row, ((const struct problem *)row)->place.column);
}

static const struct field problem_fields[] = {
	{ .name = "origin",
	  .type = FIELD_WORD,
	  .offset = offsetof(struct problem, place.origin),
	  .words = origins },
	FIELD(struct problem, name, FIELD_CHARS, 0, "of the file, the variable or the option"),
	FIELD_MADE("line", FIELD_INT, FIELD_NULL, make_line, NULL),
	FIELD_MADE("column", FIELD_INT, FIELD_NULL, make_column, NULL),
	FIELD_NAMED("message", struct problem, text, FIELD_CHARS, 0, NULL),
};

const struct record view_problem = RECORD("Problem", problem_fields);

json_t *json_problems(const struct problems *problems)
{
	json_t *list = json_array();

	for (size_t i = 0; i < problems->count; i++)
		json_array_append_new(list, fields_json(&view_problem, &problems->items[i]));
	return list;
}

struct setting_row {
	const char *key, *value, *from;
};

static const struct field setting_fields[] = {
	FIELD(struct setting_row, key, FIELD_TEXT, 0, "as --set takes it"),
	FIELD(struct setting_row, value, FIELD_TEXT, FIELD_NULL, "secrets are masked"),
	FIELD(struct setting_row, from, FIELD_TEXT, 0, "where it was written"),
};

const struct record view_setting = RECORD("Setting", setting_fields);

json_t *json_setting(const char *key, const char *value, const char *from)
{
	return fields_json(&view_setting, &(struct setting_row){ key, *value ? value : NULL, from });
}
