/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

/* The parts of a request that we read ourselves: pure functions on foreign text. */

#include <outbox/arena.h>

#include <stdbool.h>
#include <stddef.h>

#define QUERY_MAX 32 /* parameters */

struct query {
	const char *names[QUERY_MAX], *values[QUERY_MAX];
	size_t count;
};

/* NULL: absent. */
const char *query_find(const struct query *query, const char *name);

/*
 * "a=1&b=x%20y" (without the "?"): decoded, UTF-8 without control characters, each name once. NULL text: none.
 * Returns NULL, or what is wrong with it.
 */
const char *query_parse(const char *text, struct outbox_arena *arena, struct query *ret_query);

/*
 * Does a path as it was sent fit a route's? What stands for {...} is decoded into captured: one segment, not
 * empty, UTF-8 without control characters. Nothing else is decoded: there is one way to write each path.
 */
#define CAPTURED_MAX 2
bool path_match(const char *route, const char *path, struct outbox_arena *arena,
		const char *captured[CAPTURED_MAX]);

/* A target as a request line may have it here: "/...", printable ASCII. */
bool target_is_plain(const char *target);

/* "Bearer TOKEN": the token, within header; NULL: it is none. */
const char *bearer_parse(const char *header);

/* Is it application/json, with or without charset=utf-8? */
bool body_is_json(const char *header);

/* Digits only, at most max. */
bool content_length_parse(const char *header, size_t max, size_t *ret_length);

/* Hosts that are ours, as a Host header has them: "127.0.0.1:8040". */
struct hosts {
	const char **items;
	size_t count;
	size_t named; /* the first of those that the configuration names: a proxy may be in front of them */
};

bool host_is_ours(const struct hosts *hosts, const char *header);

/* "http://127.0.0.1:8040": is this the origin of our own pages? A proxy in front of us may do the TLS. */
bool origin_is_ours(const struct hosts *hosts, bool tls, const char *header);

#endif
