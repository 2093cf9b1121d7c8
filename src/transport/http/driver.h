/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_HTTP_DRIVER_H
#define TRANSPORT_HTTP_DRIVER_H

/*
 * Webhooks: a message is a POST, its acknowledgement an answer of 2xx. http.c opens, options.c reads what stands behind
 * the URL's #, connect.c connects, request.c makes a message a request, publish.c sends, verdict.c judges, sign.c signs,
 * guard.c says which addresses are allowed, check.c tells what it is worth. transport/web.h has the requests in flight.
 */

#include "transport/broker.h"
#include "transport/http/guard.h"
#include "transport/http/sign.h"
#include "transport/order.h"
#include "transport/web.h"

#include <stdbool.h>

#define HTTP_OPTIONS                                                                                       \
	"secret, secret_file, sign, token, token_file, header.NAME, header_file, idempotency_key, batch, " \
	"in_flight, timeout, allow_private, proxy, proxy_password_file, " ENDPOINT_OPTIONS
#define HTTP_HEADERS_MAX 32

/* A header that every request has. */
struct http_header {
	char *name, *value;
};

struct http_transport {
	struct broker broker;
	struct web *web; /* NULL: not connected */
	char *url;       /* without user and options */
	struct signer signer;
	struct guard guard;
	char refused[400]; /* why the guard refused an address in this call; "": it did not */
	char *token, *proxy;
	struct http_header headers[HTTP_HEADERS_MAX];
	size_t n_headers;
	bool idempotency_key;
	int64_t batch;     /* messages in a request; 1: no batches */
	int64_t in_flight; /* requests */
	outbox_time timeout;
	bool unordered;
	struct key_order order;
	struct curl_slist *fixed; /* the headers of all structured messages, where nothing in them is a message's own */
	struct buf scratch; /* a header's value */
};

static inline struct http_transport *http_downcast(struct outbox_transport *transport)
{
	return (struct http_transport *)transport; /* broker is the first member */
}

/* ---- options.c */
int http_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
void http_options_deinit(struct http_transport *t);
/* The first parameter of a receiver's query (behind the ?) that is called as an option is; NULL: there is none. */
const char *http_query_option(const char *at);

/* ---- connect.c */
int http_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
/* Close all connections, and go on with new ones. */
int http_renew(struct http_transport *t, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* At once, without waiting for anything; legal in every state. */
void http_disconnect(struct outbox_transport *transport);

/* ---- request.c: a message on the wire */

/* Several messages of a batch as one request, or one alone. EINVAL: this message cannot be sent. */
int http_request_add(struct http_transport *t, const struct outbox_item *item,
		     struct web_request *request, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* All are added: the headers that depend on the whole. ids: of a batch, one a line; else the message's. */
int http_request_end(struct http_transport *t, const struct outbox_message *first, const char *ids,
		     struct web_request *request, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publish.c */
int http_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err);

/* ---- check.c */
int http_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

/* ---- verdict.c: what an answer means, and what none does */
struct http_row {
	int first, last;    /* statuses */
	int verdict;        /* of the message */
	int status;         /* of publish(): OK, or what is wrong with the whole target */
	const char *remedy; /* for people, behind the answer */
};
extern const struct http_row http_rows[]; /* the first that fits holds; the last fits all */
const struct http_row *http_row_find(int status);

/* No answer at all: the status of connect() and publish(). */
int http_failure_status(CURLcode failure);

/* Retry-After, as seconds or as a date; 0: it does not say, or not rightly. */
outbox_time http_retry_after(const char *value, struct outbox_clock *clock);

#endif
