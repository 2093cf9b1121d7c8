/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_AWS_SIGV4_H
#define TRANSPORT_AWS_SIGV4_H

/* Signature version 4, by which AWS knows who sent a request: of a POST to "/" without a query. */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stddef.h>

struct buf;

#define SIGV4_TIME_MAX 17 /* "20150830T123600Z" */

/* A header that is signed: its name in small letters, its value as it is sent. */
struct sigv4_header {
	const char *name, *value;
};

struct sigv4_request {
	const char *id, *secret; /* the access key */
	const char *region, *service;
	const char *time;                   /* of sigv4_time(), which x-amz-date has, too */
	const struct sigv4_header *headers; /* in the order of their names; host is one of them */
	size_t n_headers;
	const void *body;
	size_t size;
};

const char *sigv4_time(outbox_time wall, char out[SIGV4_TIME_MAX]);

/* Append the value of the header Authorization. */
int sigv4_sign(const struct sigv4_request *request, struct buf *out,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
