/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

/*
 * What a handler of the admin server sees: a request that was let in (host, origin, role, size are checked before),
 * and an answer to fill in. Handlers run on the admin's own threads and never on a relay's.
 */

#include "base/buf.h"

#include <outbox/arena.h>
#include <outbox/error.h>

#include <jansson.h>

struct MHD_Response;
struct admin;
struct daemon;
struct shape; /* shape.h */
struct watch;

enum admin_role {
	ROLE_NONE = 0,
	ROLE_READ,
	ROLE_OPERATE
}; /* each may do what the one before may */

struct admin_request {
	const char *method, *path;
	const char *captured[2]; /* what stands for {...} in the route's path, decoded */
	enum admin_role role;
	const char *actor; /* for the audit: the token's name and where it came from */
	json_t *body;      /* the JSON object of a POST; NULL: none was sent */
	struct outbox_arena *arena;
	struct admin *admin;
	void *connection; /* for admin_query() */
};

struct admin_response {
	int status;               /* 200 unless set */
	const char *content_type; /* application/json unless set */
	const char *disposition;  /* NULL: none */
	json_t *json;             /* owned: sent and freed; or ... */
	struct buf body;          /* ... these bytes, or ... */
	/* ... this, owned: a live answer with a callback of its own, which suspends the connection while it has nothing to
	 * say (MHD_ALLOW_SUSPEND_RESUME), so that it holds no thread */
	struct MHD_Response *live;
};

/* The value of a query parameter, decoded; NULL: absent. Unknown parameters are refused by the route's list. */
const char *admin_query(const struct admin_request *request, const char *name);

/* A failure becomes an answer: EINVAL, ECONFIG 400, ENOTFOUND 404, ECONFLICT, EBUSY 409, ECONN, ETIMEDOUT 503 ... */
typedef int (*admin_handler)(const struct admin_request *request, struct admin_response *response,
			     struct outbox_error *err);

struct admin_route {
	const char *method; /* "GET", "POST" */
	const char *path;   /* "/api/messages/{id}" */
	enum admin_role role;
	admin_handler handler;
	const struct shape *query;  /* parameters it knows; NULL: none */
	const struct shape *body;   /* what a POST may have; NULL: an empty object or nothing */
	const struct shape *answer; /* of 200; NULL: not JSON */
	const char *summary;        /* for the description at /api/openapi.json */
};

/* The i-th route; NULL behind the last. Defined in routes.c: one table for the router and the description. */
const struct admin_route *admin_route_at(size_t i);

struct daemon *admin_daemon(const struct admin *admin);
struct watch *admin_watch(const struct admin *admin);

#endif
