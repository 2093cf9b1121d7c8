/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_WEB_H
#define TRANSPORT_WEB_H

/*
 * Many HTTP requests in flight, until a deadline: what drivers that speak HTTP share. It knows nothing of messages. One
 * thread at a time; connections are kept between two runs, and HTTP/2 is spoken where a TLS server offers it. No
 * redirects, no proxy from the environment, no .netrc, TLS 1.2 or newer.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/buf.h"
#include "core/message.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct sockaddr;
struct web;

#define WEB_KEPT_MAX (ANSWER_READ_MAX + 1) /* of an answer's body, unless more is asked for */
#define WEB_READ_MAX ((size_t)64 << 10)    /* more is not waited for: the connection is closed */

/* Borrowed for as long as the web lives. */
struct web_settings {
	struct outbox_clock *clock;
	size_t in_flight;    /* requests, and so connections, at the most */
	outbox_time timeout; /* of one request; 0: the run's deadline alone */
	size_t kept;         /* of an answer's body, WEB_READ_MAX at the most; 0: WEB_KEPT_MAX */
	bool verify;
	const char *ca, *cert, *key; /* NULL: none */
	const char *user, *password; /* basic authentication; NULL: none */
	const char *proxy;           /* NULL: none */
	/* May we connect to this address? Asked for each, when its name has been looked up. NULL: to all. */
	bool (*may_connect)(void *context, const struct sockaddr *address);
	void *context;
};

/* A POST. The headers and the buffer are the request's own and are emptied before it is used again. */
struct web_request {
	const char *url;  /* the caller keeps it as long as the web lives */
	const void *body; /* borrowed until it is done, or in the buffer */
	size_t size;
	struct buf buffer;
	struct curl_slist *headers;
	struct curl_slist *fixed; /* the caller's, in place of headers: for requests that have all the same */
	bool failed;              /* out of memory */
	size_t tag;               /* the caller's own */
};

/* Add a header. The value has no line break: that is the caller's business. */
void web_header(struct web_request *request, const char *name, const char *value);

/* All headers are there. For lists of the caller's own; a request's is ended when it is sent. */
void web_headers_end(struct web_request *request);

/* How a request ended. */
struct web_answer {
	CURLcode failure; /* CURLE_OK: an answer, by its status */
	int status;       /* also of an answer that a failure interrupted; 0: none */
	bool whole;       /* all of it came, or as much as we read of any */
	bool sent;        /* may the server have got it, or a part of it? */
	const char *body; /* its beginning, as it came; ended by a NUL */
	size_t size;
	const char *why; /* of a failure, for people */
	CURL *handle;    /* what else curl knows, for web_answer_header() */
};

/* The value of a header of the answer; NULL: it has none. Valid for the call. */
const char *web_answer_header(const struct web_answer *answer, const char *name);

/* Who has something to send. */
struct web_sender {
	/* Fill in the next request. False: there is none now; asked again when one is done. */
	bool (*next)(void *context, struct web_request *request);
	void (*done)(void *context, const struct web_request *request,
		     const struct web_answer *answer);
	void *context;
};

int web_new(const struct web_settings *settings, struct web **ret_web,
	    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Closes every connection at once. NULL is legal; returns NULL. */
struct web *web_free(struct web *web);

/*
 * Send until there is nothing more to send and everything is done. At the deadline what is in flight is dropped, with
 * its connection or stream, and done with CURLE_OPERATION_TIMEDOUT. ENOMEM.
 */
int web_run(struct web *web, const struct web_sender *sender, outbox_time deadline,
	    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Connect (TCP and TLS, and through the proxy), send nothing, and close. *ret_why has at least CURL_ERROR_SIZE bytes. */
CURLcode web_connect(struct web *web, const char *url, outbox_time deadline, char *ret_why);

/* For others who use curl: once in a process, before its first handle. */
void web_init_library(void);
/* How every handle of ours behaves. */
CURLcode web_set_manners(CURL *handle);

#endif
