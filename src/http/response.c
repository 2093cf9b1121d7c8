/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/json_value.h"
#include "http/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

/* On every answer, of success and of failure: nothing is kept, framed, sniffed, or run that is not ours. */
static const struct {
	const char *name, *value;
} always[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
	  "frame-ancestors 'none'; base-uri 'none'; form-action 'self'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

static struct MHD_Response *make_json_response(const json_t *json)
{
	char *text = json ? json_dumps(json, JSON_STYLE | JSON_ENSURE_ASCII) : NULL;
	struct MHD_Response *response = NULL;

	if (text)
		response =
			MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return response;
}

static struct MHD_Response *make_refusal(const struct request *request)
{
	char number[32];
	json_t *json;
	struct MHD_Response *response;

	snprintf(number, sizeof(number), "%016" PRIx64, request->number);
	json = json_pack("{s:{s:i, s:s, s:s, s:s}}", "error", "status", request->refused, "code",
			 request->code, "message", request->message, "id", number);
	response = make_json_response(json);
	json_decref(json);
	return response;
}

static struct MHD_Response *make_content(struct request *request)
{
	struct http_response *answer = &request->response;

	if (request->refused)
		return make_refusal(request);
	if (answer->stream)
		return stream_response(request);
	if (answer->json)
		return make_json_response(answer->json);
	if (answer->body.failed)
		return NULL;
	/* it lives until the request is completed, after the last byte was sent */
	return MHD_create_response_from_buffer(answer->body.size, answer->body.data,
					       MHD_RESPMEM_PERSISTENT);
}

static void add_headers(struct request *request, struct MHD_Response *response)
{
	const struct http_response *answer = &request->response;
	const char *type =
		answer->content_type && !request->refused ? answer->content_type : JSON_TYPE;
	char seconds[32];

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		MHD_add_response_header(response, always[i].name, always[i].value);
	MHD_add_response_header(response, "Content-Type", type);
	if (request->server->tls)
		MHD_add_response_header(response, "Strict-Transport-Security", "max-age=31536000");
	if (answer->disposition && !request->refused)
		MHD_add_response_header(response, "Content-Disposition", answer->disposition);
	if (answer->retry_after) {
		snprintf(seconds, sizeof(seconds), "%d", answer->retry_after);
		MHD_add_response_header(response, "Retry-After", seconds);
	}
	if (request->refused == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"outbox\"");
	if (request->refused == 405 && request->allow)
		MHD_add_response_header(response, "Allow", request->allow);
	if (request->close || request->connection->requests >= REQUESTS_MAX)
		MHD_add_response_header(response, "Connection", "close");
}

enum MHD_Result response_send(struct request *request)
{
	struct MHD_Response *response = make_content(request);
	enum MHD_Result result;

	if (!response) {
		request_refuse(request, 500, "internal", "the answer could not be made");
		response = make_refusal(request);
	}
	if (!response)
		return MHD_NO; /* closes the connection: there is no memory for a word */
	request->connection->requests++;
	add_headers(request, response);
	result = MHD_queue_response(request->http,
				    (unsigned)(request->refused ? request->refused
								: request->response.status),
				    response);
	MHD_destroy_response(response);
	return result;
}
