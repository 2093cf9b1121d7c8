/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_POST_H
#define ADMIN_POST_H

/*
 * One HTTP POST, for those who are told of something: alerts, OTLP. http and https only, certificates and names are
 * checked, no redirect is followed, no proxy and no .netrc is looked at, the answer is cut. Errors never name the URL or
 * a header: either may be a secret.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

struct poster;

struct post {
	const char *url;
	const char *content_type;
	const char *const *headers; /* "Authorization: Bearer ..." */
	size_t n_headers;
	const void *body;
	size_t size;
	outbox_time timeout; /* for all of it */
};

struct post_answer {
	int status;              /* HTTP's; 0: there was none */
	outbox_time retry_after; /* what the server asks for; 0: nothing */
	char text[200];          /* the beginning of the body, cleaned */
};

/* For one thread. Keeps its connection between posts. *stop (may be NULL) becoming true ends a post early. */
int poster_new(const _Atomic bool *stop, struct poster **ret_poster,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
struct poster *poster_free(struct poster *poster);

/* OK: answered with 2xx. ETIMEDOUT, ECONN; EAUTH also for a certificate that is not trusted; EBUSY for 429 and 503;
 * EPROTO for every other answer. ret_answer (may be NULL) is always written. */
int poster_send(struct poster *poster, const struct post *post, struct post_answer *ret_answer,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
