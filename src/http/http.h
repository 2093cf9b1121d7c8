/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

/*
 * What a handler of the admin server sees: a request that was let in (host, origin, role, size are checked before),
 * and an answer to fill in. Handlers run on the admin's own threads and never on a relay's: on one of two workers,
 * so that at most two stores are asked at a time, or, when the route says ROUTE_QUICK, on the thread that serves
 * the sockets, where nothing may wait.
 */

#include "base/buf.h"

#include <outbox/arena.h>
#include <outbox/error.h>

#include <jansson.h>
#include <stdbool.h>

struct daemon;
struct query;
struct record; /* fields/fields.h: one table from which queries and bodies are read, answers written, all of them described */
struct sampler;

enum http_role { ROLE_NONE = 0, ROLE_READ, ROLE_OPERATE }; /* each may do what the one before may */

struct http_request {
	const char *method, *path;
	const char *captured[2]; /* what stands for {...} in the route's path, decoded */
	enum http_role role;
	const char *actor; /* for the audit: the token's name and where it came from */
	json_t *body;      /* the JSON object of a POST; NULL: none was sent */
	struct outbox_arena *arena;
	struct daemon *daemon;
	struct sampler *sampler;
	const struct query *query;
	struct daemon_store **opened; /* what the handler opened, to be closed behind it */
};

/*
 * An answer without an end (server-sent events). next() is called about once a second, on the thread that serves
 * the sockets, while the client has taken all there was: append what is new, or nothing. false ends the answer.
 * free() is called once, however it ended.
 */
struct http_stream {
	bool (*next)(struct http_stream *stream, struct buf *out);
	void (*free)(struct http_stream *stream);
};

struct http_response {
	int status;                 /* 200 unless set */
	const char *content_type;   /* application/json unless set */
	const char *disposition;    /* Content-Disposition; NULL: none */
	int retry_after;            /* seconds; 0: none */
	json_t *json;               /* owned: sent and freed; or ... */
	struct buf body;            /* ... these bytes (made with its maximum); or ... */
	struct http_stream *stream; /* ... owned: these as they come */
};

/*
 * A failure becomes an answer: EINVAL 400, ENOTFOUND 404, ECONFLICT and EBUSY 409, ENOTSUP 501, ECONN and ETIMEDOUT
 * 503 ... The message of the first three is for the client and must not name paths, SQL or servers; of the
 * others the client gets a general one and a number, under which the log has the message.
 */
typedef int (*http_handler)(const struct http_request *request, struct http_response *response,
			    struct outbox_error *err);

enum http_route_flags {
	ROUTE_QUICK =
		1, /* answers from memory: never waits for a store, a disk, a lock that is held for long */
	ROUTE_METRICS = 2, /* open to all when the configuration says so */
};

struct http_route {
	const char *method; /* "GET" (HEAD comes with it), "POST" */
	const char *path;   /* "/api/messages/{id}" */
	enum http_role role;
	unsigned flags; /* enum http_route_flags */
	http_handler handler;
	const char *summary;         /* for the description at /api/openapi.json */
	const struct record *query;  /* the parameters it knows are its fields' names; NULL: none */
	const struct record *body;   /* what a POST may have; NULL: nothing, or an empty object */
	const struct record *answer; /* of 200; NULL: not JSON, but ... */
	const char *content_type;    /* ... this */
};

/* The i-th route; NULL behind the last. Defined in routes.c: one table for the router and the description. */
const struct http_route *http_route_at(size_t i);

#endif
