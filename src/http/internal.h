/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

/*
 * What the parts of the admin server share. One thread serves all sockets and owns everything here that has no lock:
 * connections, requests, auth_limit. Workers get a request, run its handler and give it back.
 */

#include "base/clock.h"
#include "base/random.h"
#include "daemon/journal.h"
#include "http/access_tokens.h"
#include "http/auth_limit.h"
#include "http/connections.h"
#include "http/framing.h"
#include "http/http.h"
#include "http/listen.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#define TARGET_MAX ((size_t)8 << 10) /* of a request's target: 414 */
#define HEADERS_MAX 64               /* how many: 431 */
#define HEADER_BYTES_MAX ((size_t)16 << 10)
#define BODY_MAX ((size_t)64 << 10)     /* 413 */
#define SWALLOW_MAX ((size_t)256 << 10) /* read and thrown away, so that the refusal is heard */
#define POOL_BYTES ((size_t)48 << 10)   /* libmicrohttpd's memory for one connection */
#define REQUESTS_MAX 1000               /* of one connection */
#define STREAMS_MAX 16

struct workers;

struct http_server {
	struct daemon *daemon;
	struct sampler *sampler;
	struct outbox_arena *arena; /* what lives as long as the server */
	struct endpoint endpoint;
	struct hosts hosts;
	bool tls, open_metrics;
	char address[160];
	char *tokens_path;
	char *cert, *key;
	/* swapped by http_server_reload() */
	pthread_mutex_t tokens_lock;
	struct access_tokens *tokens;
	struct MHD_Daemon *http;
	int listener, waker; /* waker: an eventfd that ends a wait */
	pthread_t thread;
	atomic_bool stop;
	struct connections connections;
	struct auth_limit auth_limit;
	struct workers *workers;
	struct request *streams; /* answers without an end */
	size_t n_streams;
	struct random_state random; /* numbers of requests */
};

enum request_step {
	STEP_NEW = 1, /* the request line is there */
	STEP_BODY,    /* let in, or refused and its body is thrown away */
	STEP_WORKING, /* its connection is suspended */
	STEP_DONE,    /* the answer can be sent */
	STEP_ANSWERED
};

struct request {
	struct http_request seen; /* what the handler gets */
	struct http_response response;
	struct http_server *server;
	struct connection *connection;
	struct MHD_Connection *http;
	const struct http_route *route;
	struct framing framing;
	char *target;    /* as it was sent */
	uint64_t number; /* for the answer and the log */
	enum request_step step;
	int refused;      /* HTTP status; 0: let in */
	const char *code; /* of the refusal, for programs */
	char message[200];
	const char *allow; /* for 405 */
	bool close;        /* no further request on this connection */
	struct query query;
	struct buf body;
	int status; /* of the handler */
	struct outbox_error err;
	/* of an answer without an end */
	struct request *next_stream;
	struct buf out;
	size_t sent;
	struct access_token token; /* whose it is, for as long as that one is let in */
	outbox_time wrote;         /* mono: the last time something was given */
	bool suspended, ended;
};

struct request *request_new(struct http_server *server, const char *target);
struct request *request_free(struct request *request);

/* Refuse it: 4xx or 5xx, a code for programs, a sentence for people. Always false. */
bool request_refuse(struct request *request, int status, const char *code, const char *format, ...)
	OUTBOX_PRINTF(4, 5);

/* Everything before a handler, in order: false when it is refused. */
bool guard_check(struct request *request, const char *method, const char *version);

/* The body that was read: false when it is refused. */
bool guard_body(struct request *request);

/* Run the handler. On any thread, which has the request for itself. */
void request_handle(struct request *request);

/* Queue the answer with the headers that each one has. */
enum MHD_Result response_send(struct request *request);

/* stream.c: the body of an answer without an end, and its clock. */
struct MHD_Response *stream_response(struct request *request);
void stream_forget(struct request *request);
void streams_tick(struct http_server *server, outbox_time now);
void streams_wake(struct http_server *server);

/* loop.c: set up libmicrohttpd; the thread that serves all sockets until server->stop, whose argument is the server. */
int loop_make(struct http_server *server, struct outbox_error *err) OUTBOX_MUSTCHECK;
void *loop_run(void *argument);

/* Have the serving thread look again. Any thread. */
void loop_wake(struct http_server *server);

/* libmicrohttpd's callback. */
enum MHD_Result serve(void *context, struct MHD_Connection *http, const char *url,
		      const char *method, const char *version, const char *data, size_t *size,
		      void **state);

#endif
