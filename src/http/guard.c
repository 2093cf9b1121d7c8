/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets in, in this order, each request and each method alike: a plain request line, headers that can be read in
 * one way only, a Host that is ours (a page of another site that had its name pointed at us, DNS rebinding, sends
 * its own), a route, for acts no foreign page behind it, a token with the right role, parameters that the route
 * knows. Whatever says where a request "really" came from (Forwarded, X-Forwarded-*) is not looked at.
 */
#include "base/text.h"
#include "fields/fields.h"
#include "http/internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A header that we look at: it may be there once. */
struct single {
	const char *value; /* NULL: absent */
	size_t count;
};

struct headers {
	struct framing *framing;
	size_t count, bytes;
	bool broken; /* a character that has no place in one */
	struct single host, authorization, origin, site, content_type, content_length, expect,
		transfer_encoding;
};

static struct single *single_of(struct headers *headers, const char *name)
{
	const struct {
		const char *name;
		struct single *single;
	} rows[] = {
		{ "host", &headers->host },
		{ "authorization", &headers->authorization },
		{ "origin", &headers->origin },
		{ "sec-fetch-site", &headers->site },
		{ "content-type", &headers->content_type },
		{ "content-length", &headers->content_length },
		{ "expect", &headers->expect },
		{ "transfer-encoding", &headers->transfer_encoding },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcasecmp(rows[i].name, name) == 0)
			return rows[i].single;
	return NULL;
}

static bool value_is_clean(const char *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

static enum MHD_Result collect(void *context, enum MHD_ValueKind kind, const char *name,
			       size_t name_size, const char *value, size_t value_size)
{
	struct headers *headers = context;
	struct single *single = single_of(headers, name);

	(void)kind;
	headers->count++;
	framing_header(headers->framing, name, name_size, value, value_size);
	headers->bytes += name_size + value_size + 4;
	if (!value || !text_is_token(name, name_size) || !value_is_clean(value, value_size))
		headers->broken = true;
	if (single && single->count++ == 0)
		single->value = value ? value : "";
	return MHD_YES;
}

static bool check_line(struct request *request, const char *version)
{
	if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
		return request_refuse(request, 505, "version", "use HTTP/1.1");
	if (strlen(request->target) > TARGET_MAX)
		return request_refuse(request, 414, "too_long", "the address is too long");
	if (!target_is_plain(request->target))
		return request_refuse(request, 400, "target",
				      "the address must be a path: GET /healthz HTTP/1.1");
	return true;
}

static bool head_is_strict(const struct request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->http, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && framing_is_strict(&request->framing, info->header_size);
}

static bool check_form(struct request *request, const struct headers *headers)
{
	if (headers->count > HEADERS_MAX || headers->bytes > HEADER_BYTES_MAX)
		return request_refuse(request, 431, "too_large", "too many or too large headers");
	if (headers->broken || !head_is_strict(request))
		return request_refuse(request, 400, "header",
				      "the request line or a header is malformed");
	if (headers->host.count != 1 || headers->authorization.count > 1 ||
	    headers->origin.count > 1 || headers->site.count > 1 ||
	    headers->content_type.count > 1 || headers->content_length.count > 1)
		return request_refuse(request, 400, "header",
				      headers->host.count ? "a header is repeated"
							  : "the Host header is missing");
	if (headers->transfer_encoding.count && headers->content_length.count)
		return request_refuse(request, 400, "framing",
				      "Content-Length and Transfer-Encoding contradict each other");
	if (headers->transfer_encoding.count)
		return request_refuse(request, 501, "framing",
				      "send Content-Length instead of chunks");
	return true;
}

static bool check_size(struct request *request, const struct headers *headers)
{
	size_t length = 0;

	if (!headers->content_length.count)
		return true;
	if (content_length_parse(headers->content_length.value, BODY_MAX, &length))
		return true;
	/* a little more is read and thrown away, so that the client hears why */
	if (!content_length_parse(headers->content_length.value, SWALLOW_MAX, &length))
		request->close = true;
	return request_refuse(request, 413, "too_large", "the body is larger than %zu bytes",
			      BODY_MAX);
}

static bool check_host(struct request *request, const struct headers *headers)
{
	if (host_is_ours(&request->server->hosts, headers->host.value))
		return true;
	request->close = true;
	return request_refuse(request, 421, "host",
			      "this server is not known by that name; admin.hosts lists its names");
}

static void allow_methods(struct request *request, const struct http_route *route)
{
	bool get = strcmp(route->method, "GET") == 0;

	if (!request->allow)
		request->allow = get ? "GET, HEAD" : route->method;
	else if (!strstr(request->allow, route->method))
		request->allow = "GET, HEAD, POST";
}

static bool find_route(struct request *request, const char *method)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	const struct http_route *route;

	for (size_t i = 0; (route = http_route_at(i)); i++) {
		const char *captured[CAPTURED_MAX] = { NULL, NULL };

		if (!path_match(route->path, request->seen.path, request->seen.arena, captured))
			continue;
		allow_methods(request, route);
		if (strcmp(route->method, wanted) != 0)
			continue;
		request->route = route;
		memcpy(request->seen.captured, captured, sizeof(captured));
		return true;
	}
	if (request->allow)
		return request_refuse(request, 405, "method", "this path allows only %s",
				      request->allow);
	return request_refuse(request, 404, "not_found", "there is no such path");
}

static bool is_unsafe(const char *method)
{
	return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

/* Browsers say whose page asks. A program says neither, and has its token. */
static bool check_page(struct request *request, const struct headers *headers, const char *method)
{
	const struct http_server *server = request->server;
	const char *site = headers->site.value;

	if (headers->origin.count &&
	    !origin_is_ours(&server->hosts, server->tls, headers->origin.value))
		return request_refuse(request, 403, "origin",
				      "requests from pages of other sites are refused");
	if (is_unsafe(method) && site && strcmp(site, "same-origin") != 0 &&
	    strcmp(site, "none") != 0)
		return request_refuse(request, 403, "origin",
				      "requests from pages of other sites are refused");
	return true;
}

static bool check_type(struct request *request, const struct headers *headers, const char *method)
{
	size_t length = 0;
	bool body = headers->content_length.count &&
		    !(content_length_parse(headers->content_length.value, 0, &length));

	if (!is_unsafe(method)) {
		if (!body)
			return true;
		return request_refuse(request, 400, "body", "a GET must not have a body");
	}
	if (!headers->content_type.count ? !body : body_is_json(headers->content_type.value))
		return true;
	return request_refuse(request, 415, "content_type", "send Content-Type: application/json");
}

/* Query strings end up in logs and histories: a token there is spoilt, right or wrong. */
static bool check_query(struct request *request)
{
	static const char *const names[] = { "token",  "access_token", "auth",  "authorization",
					     "bearer", "api_key",      "apikey" };
	const struct query *query = &request->query;
	bool found = false;

	pthread_mutex_lock(&request->server->tokens_lock);
	for (size_t i = 0; i < query->count; i++) {
		found |= access_tokens_check(request->server->tokens, query->values[i], 0) != NULL;
		for (size_t n = 0; n < ARRAY_SIZE(names); n++)
			found |= strcasecmp(query->names[i], names[n]) == 0;
	}
	pthread_mutex_unlock(&request->server->tokens_lock);
	if (found)
		return request_refuse(request, 400, "token_in_query",
				      "a token in the address can be read by others; send it as "
				      "Authorization: Bearer, and change it");
	return true;
}

static bool refuse_token(struct request *request, bool given)
{
	struct http_server *server = request->server;
	const struct connection *from = request->connection;
	struct auth_verdict verdict = auth_limit_note(&server->auth_limit, from->key, mono_now());

	char before[60] = "", elsewhere[60] = "";

	if (verdict.untold)
		snprintf(before, sizeof(before), ", and %d before it", verdict.untold);
	if (verdict.elsewhere)
		snprintf(elsewhere, sizeof(elsewhere), "; %d more from other addresses",
			 verdict.elsewhere);
	if (verdict.tell)
		journal(EVENT_ADMIN_DENIED, NULL, "a request from %s without a valid token%s%s",
			from->address, before, elsewhere);
	if (verdict.too_many) {
		request->close = true;
		request->response.retry_after = 60;
		return request_refuse(request, 429, "too_many", "too many wrong tokens");
	}
	return request_refuse(request, 401, "token",
			      given ? "the token is wrong or has expired"
				    : "send Authorization: Bearer TOKEN, with a token from the file that "
				      "admin.tokens names");
}

static bool check_token(struct request *request, const struct headers *headers)
{
	enum http_role wanted = request->route->role;
	struct http_server *server = request->server;
	const struct access_token *found = NULL;
	const char *given = NULL;
	char actor[160] = "";

	if (request->route->flags & ROUTE_METRICS && server->open_metrics)
		wanted = ROLE_NONE;
	if (wanted == ROLE_NONE)
		return true;
	if (headers->authorization.count)
		given = bearer_parse(headers->authorization.value);
	pthread_mutex_lock(&server->tokens_lock);
	if (given)
		found = access_tokens_check(server->tokens, given, wall_now());
	if (found) {
		request->seen.role = found->role;
		request->token = *found;
		snprintf(actor, sizeof(actor), "%s@%s", found->name, request->connection->address);
	}
	pthread_mutex_unlock(&server->tokens_lock);
	if (!found)
		return refuse_token(request, headers->authorization.count > 0);
	request->seen.actor = outbox_arena_text(request->seen.arena, actor);
	if (!request->seen.actor)
		return request_refuse(request, 503, "memory", "out of memory; try again");
	if (request->seen.role < wanted)
		return request_refuse(request, 403, "role",
				      "a token with the operate role is required");
	return true;
}

static bool check_parameters(struct request *request)
{
	for (size_t i = 0; i < request->query.count; i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		if (fields_check_name(request->route->query, "parameter", request->query.names[i],
				      &err))
			return request_refuse(request, 400, "parameter", "%s", err.message);
	}
	return true;
}

/* The target in its two parts; the query is read here, and judged later. */
static bool split_target(struct request *request)
{
	char *path = outbox_arena_text(request->seen.arena, request->target);
	char *question = path ? strchr(path, '?') : NULL;
	const char *wrong;

	if (!path)
		return request_refuse(request, 503, "memory", "out of memory; try again");
	if (question)
		*question++ = '\0';
	request->seen.path = path;
	wrong = query_parse(question, request->seen.arena, &request->query);
	if (wrong)
		return request_refuse(request, 400, "query", "%s", wrong);
	request->seen.query = &request->query;
	return true;
}

bool guard_check(struct request *request, const char *method, const char *version)
{
	struct headers headers = { .framing = &request->framing };

	framing_line(&request->framing, method, version);
	MHD_get_connection_values_n(request->http, MHD_HEADER_KIND, collect, &headers);
	request->seen.method = outbox_arena_text(request->seen.arena, method);
	if (!request->seen.method)
		return request_refuse(request, 503, "memory", "out of memory; try again");
	/* what can be read in two ways leaves the connection in doubt, too */
	if (!check_line(request, version) || !check_form(request, &headers)) {
		request->close = true;
		return false;
	}
	/* whoever waits to be asked for the body gets the answer before it is sent */
	if (headers.expect.count)
		request->close = true;
	return check_host(request, &headers) && check_size(request, &headers) &&
	       split_target(request) && check_query(request) && find_route(request, method) &&
	       check_page(request, &headers, method) && check_type(request, &headers, method) &&
	       check_token(request, &headers) && check_parameters(request);
}

bool guard_body(struct request *request)
{
	json_error_t error;

	if (!request->body.size)
		return true;
	if (request->body.failed)
		return request_refuse(request, 413, "too_large",
				      "the body is larger than %zu bytes", BODY_MAX);
	request->seen.body =
		json_loadb(request->body.data, request->body.size, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(request->seen.body))
		return request_refuse(request, 400, "body", "the body must be a JSON object%s",
				      request->seen.body ? "" : ", and cannot be read");
	return true;
}
