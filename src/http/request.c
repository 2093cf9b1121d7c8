/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "daemon/daemon.h"
#include "http/internal.h"
#include "http/workers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)16 << 20)

struct request *request_new(struct http_server *server, const char *target)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->server = server;
	request->seen.daemon = server->daemon;
	request->seen.sampler = server->sampler;
	request->step = STEP_NEW;
	framing_begin(&request->framing, target);
	request->number = server->random.base.next(&server->random.base);
	request->body = (struct buf)BUF_INIT(BODY_MAX);
	request->response.status = 200;
	request->seen.arena = outbox_arena_new(ARENA_MAX);
	request->target = strdup(target);
	if (!request->seen.arena || !request->target)
		return request_free(request);
	return request;
}

struct request *request_free(struct request *request)
{
	if (!request)
		return NULL;
	stream_forget(request);
	json_decref(request->seen.body);
	json_decref(request->response.json);
	buf_deinit(&request->response.body);
	buf_deinit(&request->body);
	outbox_arena_free(request->seen.arena);
	free(request->target);
	free(request);
	return NULL;
}

bool request_refuse(struct request *request, int status, const char *code, const char *format, ...)
{
	va_list args;

	if (request->refused)
		return false;
	request->refused = status;
	request->code = code;
	va_start(args, format);
	vsnprintf(request->message, sizeof(request->message), format, args);
	va_end(args);
	return false;
}

/* What a client learns of a failure: its own mistakes in full, everything else in general words. */
static const struct outcome {
	int status, http;
	const char *message; /* NULL: the error's own */
} outcomes[] = {
	{ OUTBOX_EINVAL, 400, NULL },
	{ OUTBOX_ENOTFOUND, 404, NULL },
	{ OUTBOX_ECONFLICT, 409, NULL },
	{ OUTBOX_EBUSY, 409, "it is busy; try again" },
	{ OUTBOX_ENOTSUP, 501, "this is not supported here" },
	{ OUTBOX_ECONFIG, 422, "the configuration does not allow it; the log says why" },
	{ OUTBOX_ECONN, 503, "the database cannot be reached; the log says why" },
	{ OUTBOX_ETIMEDOUT, 503, "the database did not answer in time; try again" },
	{ OUTBOX_EFULL, 503, "the database has no room left" },
	{ OUTBOX_EAUTH, 503, "the database refused us access; the log says why" },
	{ OUTBOX_ESCHEMA, 503, "the database has no outbox of our version; the log says why" },
	{ OUTBOX_ENOMEM, 503, "out of memory; try again" },
	{ 0, 500, "something went wrong; the log says what" },
};

static void refuse_failed(struct request *request)
{
	const struct outcome *outcome = outcomes;
	char path[120], line[600];

	while (outcome->status && outcome->status != request->status)
		outcome++;
	if (outcome->http >= 500 || outcome->message) {
		text_shown(path, sizeof(path), request->seen.path);
		text_shown(line, sizeof(line), request->err.message);
		journal(EVENT_ADMIN_FAILED, NULL, "request %016llx %s %s: %s: %s",
			(unsigned long long)request->number, request->seen.method, path,
			outbox_status_name(request->status), line);
	}
	if (outcome->http == 503)
		request->response.retry_after = 5;
	request_refuse(request, outcome->http, outbox_status_name(request->status), "%s",
		       outcome->message ? outcome->message : request->err.message);
}

void request_handle(struct request *request)
{
	struct daemon_store *opened = NULL;

	request->seen.opened = &opened;
	request->status = request->route->handler(&request->seen, &request->response, &request->err);
	daemon_close_store(opened);
	request->step = STEP_DONE;
}

static enum MHD_Result finish_request(struct request *request)
{
	enum phase phase = PHASE_SENDING;

	if (!request->refused && request->status)
		refuse_failed(request);
	request->step = STEP_ANSWERED;
	if (!request->refused && request->response.stream)
		phase = PHASE_STREAM;
	connection_enter(request->connection, phase, mono_now());
	return response_send(request);
}

/* The body is complete, or there is none. */
static enum MHD_Result begin_request(struct request *request)
{
	/* at the end nothing may be suspended any more */
	if (!request->refused && atomic_load(&request->server->stop))
		request_refuse(request, 503, "busy", "the server is shutting down");
	if (request->refused || !guard_body(request))
		return finish_request(request);
	if (request->route->flags & ROUTE_QUICK) {
		request_handle(request);
		return finish_request(request);
	}
	request->step = STEP_WORKING;
	connection_enter(request->connection, PHASE_WORKING, mono_now());
	MHD_suspend_connection(request->http);
	if (workers_give(request->server->workers, request))
		return MHD_YES;
	request->response.retry_after = 1;
	request_refuse(request, 503, "busy", "too many requests at once; try again");
	request->step = STEP_DONE;
	MHD_resume_connection(request->http);
	loop_wake(request->server);
	return MHD_YES;
}

static enum MHD_Result check_head(struct request *request, const char *method, const char *version)
{
	bool in = guard_check(request, method, version);

	request->step = STEP_BODY;
	connection_enter(request->connection, PHASE_BODY, mono_now());
	/* answered before the body: libmicrohttpd then reads no more from this connection */
	return !in && request->close ? finish_request(request) : MHD_YES;
}

/* The library's callback has eight parameters. NOLINTNEXTLINE(readability-function-size) */
enum MHD_Result serve(void *context, struct MHD_Connection *http, const char *url,
		      const char *method, const char *version, const char *data, size_t *size,
		      void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct request *request = *state;

	(void)context;
	(void)url;
	if (!request || !info || !info->socket_context)
		return MHD_NO;
	request->http = http;
	request->connection = info->socket_context;
	if (request->step == STEP_NEW)
		return check_head(request, method, version);
	if (request->step == STEP_BODY && *size > 0) {
		if (!request->refused)
			buf_append(&request->body, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (request->step == STEP_BODY)
		return begin_request(request);
	if (request->step == STEP_DONE)
		return finish_request(request);
	return MHD_YES;
}
