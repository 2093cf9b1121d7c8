/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_HTTP_POST_H
#define TELEMETRY_HTTP_POST_H

/*
 * POST a JSON text to somebody, for threads that may wait. Only http and https, no redirects, no proxy from the
 * environment, no .netrc, certificates checked, TLS 1.2 or newer, an answer of 64 KiB at the most, which is thrown away.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

struct http_post;

struct http_post_request {
	const char *url;
	const char *const *headers; /* "Name: value", NULL behind the last; NULL: none */
	const char *body;           /* JSON */
	size_t size;
	outbox_time timeout;
	bool (*stop)(void *context); /* asked every second at least: true ends it; may be NULL */
	void *context;
};

int http_post_new(struct http_post **ret_post, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct http_post *http_post_free(struct http_post *post);

/* OK: it answered 2xx. Errors never have the URL in them; EAUTH and EPROTO have the status as native. */
int http_post_send(struct http_post *post, const struct http_post_request *request,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
