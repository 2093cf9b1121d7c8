/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers without an end. A client that has taken all there was is suspended; about once a second its stream is asked
 * for more, and it is resumed when there is some. A slow client is not asked for: it misses what happened in
 * between instead of filling memory. A comment now and then tells both sides that the other is there.
 */
#include "http/internal.h"

#include <string.h>

#define STREAM_BYTES ((size_t)256 << 10)
#define STREAM_BLOCK 4096
#define HEARTBEAT (10 * OUTBOX_SECONDS)

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t max)
{
	struct request *request = context;
	size_t left = request->out.size - request->sent, size = left < max ? left : max;

	(void)position;
	if (size) {
		memcpy(out, request->out.data + request->sent, size);
		request->sent += size;
		return (ssize_t)size;
	}
	if (request->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	request->suspended = true;
	MHD_suspend_connection(request->http);
	return 0;
}

struct MHD_Response *stream_response(struct request *request)
{
	struct http_server *server = request->server;

	if (server->n_streams >= STREAMS_MAX) {
		request->response.retry_after = 30;
		request_refuse(request, 503, "busy", "too many live views are open");
		return NULL;
	}
	request->out = (struct buf)BUF_INIT(STREAM_BYTES);
	request->wrote = mono_now();
	request->next_stream = server->streams;
	server->streams = request;
	server->n_streams++;
	request->ended = !request->response.stream->next(request->response.stream, &request->out);
	return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read,
						 request, NULL);
}

void stream_forget(struct request *request)
{
	struct http_server *server = request->server;

	for (struct request **link = &server->streams; *link; link = &(*link)->next_stream)
		if (*link == request) {
			*link = request->next_stream;
			server->n_streams--;
			break;
		}
	if (request->response.stream && request->response.stream->free)
		request->response.stream->free(request->response.stream);
	request->response.stream = NULL;
	buf_deinit(&request->out);
}

static void resume_stream(struct request *request)
{
	request->suspended = false;
	MHD_resume_connection(request->http);
	loop_wake(request->server);
}

/* Who was let in an hour ago need not be now. */
static bool is_let_in(struct request *request)
{
	struct http_server *server = request->server;
	bool held;

	pthread_mutex_lock(&server->tokens_lock);
	held = access_tokens_hold(server->tokens, &request->token, wall_now());
	pthread_mutex_unlock(&server->tokens_lock);
	return held;
}

void streams_tick(struct http_server *server, outbox_time now)
{
	for (struct request *request = server->streams; request; request = request->next_stream) {
		struct http_stream *stream = request->response.stream;

		if (!request->suspended)
			continue;
		buf_clear(&request->out);
		request->sent = 0;
		request->ended = !is_let_in(request) || !stream->next(stream, &request->out) ||
				 request->out.failed;
		if (!request->out.size && now - request->wrote >= HEARTBEAT)
			buf_text(&request->out, ": still here\n\n");
		if (!request->out.size && !request->ended)
			continue;
		request->wrote = now;
		resume_stream(request);
	}
}

void streams_wake(struct http_server *server)
{
	for (struct request *request = server->streams; request; request = request->next_stream) {
		request->ended = true;
		if (request->suspended)
			resume_stream(request);
	}
}
