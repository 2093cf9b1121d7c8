/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the admin server, made from the table of routes and the records they name. */
#include "http/api.h"
#include "http/views.h"

#include <stdio.h>
#include <string.h>

/* ---- the error ----------------------------------------------------------------------------- */

static const struct field error_fields[] = {
	FIELD_MADE("status", FIELD_INT, 0, NULL, "the HTTP status"),
	FIELD_MADE("code", FIELD_TEXT, 0, NULL,
		   "a stable word for programs: inval, notfound, conflict ..."),
	FIELD_MADE("message", FIELD_TEXT, 0, NULL, "one line for people"),
	FIELD_MADE("id", FIELD_TEXT, FIELD_ABSENT, NULL,
		   "the log has more about it under this number"),
};
static const struct record view_error_detail = RECORD("ErrorDetail", error_fields);

static const struct field answer_fields[] = {
	FIELD_MADE_OF("error", FIELD_OBJECT, view_error_detail, NULL, NULL),
	{ .name = "problems",
	  .type = FIELD_LIST,
	  .flags = FIELD_ABSENT,
	  .of = &view_problem,
	  .help = "everything that is wrong with a configuration" },
};
const struct record view_error = RECORD("Error", answer_fields);

/* ---- schemas ------------------------------------------------------------------------------- */

/* The record and those that it is made of. */
static void add_schema(json_t *schemas, const struct record *record, enum fields_use use)
{
	if (!record || json_object_get(schemas, record->name))
		return;
	json_object_set_new(schemas, record->name, fields_schema(record, use));
	for (const struct record *part = record; part; part = part->base)
		for (size_t i = 0; i < part->count; i++)
			add_schema(schemas, part->fields[i].of, use);
}

/* What a body of this type is: bytes have no schema. */
static json_t *make_content(const char *type, const struct record *record)
{
	json_t *schema;

	if (record)
		schema = json_pack("{s:o}", "$ref",
				   json_sprintf("#/components/schemas/%s", record->name));
	else if (strcmp(type, "application/json") == 0)
		schema = json_pack("{s:s}", "type", "object");
	else if (strncmp(type, "text/", 5) == 0)
		schema = json_pack("{s:s}", "type", "string");
	else
		schema = json_object();
	return json_pack("{s:{s:o}}", type, "schema", schema);
}

/* ---- one route ----------------------------------------------------------------------------- */

static const char *method_key(const struct http_route *route)
{
	return strcmp(route->method, "GET") == 0 ? "get" : "post";
}

/* GET /api/messages/{id} is "get_api_messages_id". */
static json_t *make_operation_id(const struct http_route *route)
{
	char id[200];
	size_t n = 0;

	snprintf(id, sizeof(id), "%s%s", method_key(route), route->path);
	for (const char *c = id; *c; c++) {
		if (*c == '/' || *c == '.')
			id[n++] = '_';
		else if (*c != '{' && *c != '}')
			id[n++] = *c;
	}
	return json_stringn(id, n);
}

static json_t *make_parameters(const struct http_route *route)
{
	json_t *list = json_array();
	const char *end, *at = route->path;

	while ((at = strchr(at, '{')) && (end = strchr(at, '}'))) {
		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:b, s:{s:s}}", "name",
						json_stringn(at + 1, (size_t)(end - at - 1)), "in",
						"path", "required", 1, "schema", "type", "string"));
		at = end;
	}
	for (size_t i = 0; route->query && i < route->query->count; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:o}", "name",
						route->query->fields[i].name, "in", "query",
						"required", 0, "schema",
						field_schema(&route->query->fields[i], FIELDS_IN)));
	return list;
}

static json_t *make_responses(const struct http_route *route)
{
	char type[80] = "application/json"; /* without ; charset= */
	json_t *answers;

	if (!route->answer && route->content_type)
		snprintf(type, sizeof(type), "%.*s", (int)strcspn(route->content_type, ";"),
			 route->content_type);
	answers = json_pack("{s:{s:s, s:o}, s:{s:s}}", "200", "description", "done", "content",
			    make_content(type, route->answer), "default", "$ref",
			    "#/components/responses/Error");

	if (route->role == ROLE_NONE)
		json_object_set_new(answers, "503",
				    json_pack("{s:s, s:o}", "description", "not ok", "content",
					      make_content(type, NULL)));
	return answers;
}

static const char *role_name(enum http_role role)
{
	return role == ROLE_OPERATE ? "operate" : role == ROLE_READ ? "read" : "none";
}

static json_t *make_operation(const struct http_route *route)
{
	json_t *object =
		json_pack("{s:s, s:o, s:o, s:o, s:s}", "summary", route->summary, "operationId",
			  make_operation_id(route), "parameters", make_parameters(route),
			  "responses", make_responses(route), "x-role", role_name(route->role));

	if (route->role != ROLE_NONE)
		json_object_set_new(object, "security", json_pack("[{s:[]}]", "token"));
	if (route->body)
		json_object_set_new(object, "requestBody",
				    json_pack("{s:b, s:o}", "required", 0, "content",
					      make_content("application/json", route->body)));
	return object;
}

/* ---- all ----------------------------------------------------------------------------------- */

static json_t *make_description(void)
{
	json_t *paths = json_object(), *schemas = json_object(), *path;
	const struct http_route *route;

	add_schema(schemas, &view_error, FIELDS_OUT);
	for (size_t i = 0; (route = http_route_at(i)); i++) {
		path = json_object_get(paths, route->path);
		if (!path) {
			path = json_object();
			json_object_set_new(paths, route->path, path);
		}
		json_object_set_new(path, method_key(route), make_operation(route));
		add_schema(schemas, route->answer, FIELDS_OUT);
		add_schema(schemas, route->body, FIELDS_IN);
	}
	return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:{s:{s:s, s:o}}, s:{s:{s:s, s:s}}}}",
			 "openapi", "3.1.0", "info", "title", "outbox admin server", "version",
			 OUTBOX_VERSION, "description",
			 "What operators can see and do through a running relay.", "paths", paths,
			 "components", "schemas", schemas, "responses", "Error", "description",
			 "what is wrong, with the field, the value and the remedy", "content",
			 make_content("application/json", &view_error), "securitySchemes", "token",
			 "type", "http", "scheme", "bearer");
}

API_HANDLER(api_description)
{
	(void)request;
	return api_answer(response, make_description(), err);
}
