/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_AWS_DRIVER_H
#define TRANSPORT_AWS_DRIVER_H

/*
 * AWS' queues and topics: up to ten messages are a POST, and its answer tells what became of each. aws.c opens, options.c
 * reads the URL, credentials.c and imds.c find out who we are, connect.c connects, request.c makes messages a signed
 * request, publish.c sends, verdict.c judges, check.c tells what it is worth; sqs.c and
 * sns.c are what the two services differ in. transport/web.h has the requests in flight.
 */

#include "transport/broker.h"
#include "transport/order.h"
#include "transport/web.h"

#include <stdbool.h>

#define AWS_OPTIONS "region, batch, in_flight, timeout, " ENDPOINT_OPTIONS
#define AWS_BATCH_MAX 10 /* messages in a request */
/*
 * All messages of a request together: what every queue and topic takes unless it was made smaller. One message may have
 * up to 1 MiB where the queue or topic allows it, and then goes alone.
 */
#define AWS_BATCH_BYTES ((size_t)256 << 10)
#define AWS_ATTRIBUTES_MAX 10
#define AWS_ID_MAX 128 /* of a group and of a message, on FIFO queues and topics */
#define AWS_TEXT_MAX 300
#define AWS_CODE_MAX 100

struct aws_transport;

/* Who signs. All NULL: not known yet. */
struct aws_credentials {
	char *id, *secret;
	char *token;         /* NULL: none */
	outbox_time expires; /* wall; 0: never */
	outbox_time renew_from; /* wall; newer ones could not be had, and are not asked for until then */
};

/* A message as both services take it. Borrowed. */
struct aws_entry {
	size_t id; /* 0 to 9 */
	const char *body;
	size_t size;
	const struct outbox_header *attributes;
	size_t n_attributes;
	const char *group, *duplicate; /* NULL: the place is not FIFO */
};

/* What became of an entry. */
struct aws_result {
	enum { AWS_NOT_NAMED = 0, AWS_DONE, AWS_FAILED } state;
	bool our_fault; /* as the service sees it */
	char code[AWS_CODE_MAX], text[AWS_TEXT_MAX];
};

/* What SQS and SNS differ in. */
struct aws_service {
	const char *name; /* as in names of hosts and in signatures */
	const char *content_type;
	const char *target; /* X-Amz-Target of a batch; NULL: none */
	/* Set t->place by the two parts of the URL's path. */
	int (*set_place)(struct aws_transport *t, const char *account, const char *name,
			 struct outbox_error *err);
	void (*put_begin)(const struct aws_transport *t, struct buf *out);
	void (*put_entry)(struct buf *out, const struct aws_entry *entry);
	void (*put_end)(struct buf *out);
	/* False: it is no answer of the service. */
	bool (*read_results)(const char *body, size_t size, struct aws_result results[AWS_BATCH_MAX]);
	bool (*read_error)(const char *body, size_t size, struct aws_result *ret_error);
	/* For check(): the request that asks for the attributes of the place, and one of them in its answer. */
	const char *check_target;
	void (*put_check)(const struct aws_transport *t, struct buf *out);
	bool (*read_attribute)(const char *body, size_t size, const char *name, char *out,
			       size_t out_size);
	void (*judge)(const struct aws_transport *t, const char *body, size_t size,
		      struct findings *findings);
};
extern const struct aws_service aws_sqs, aws_sns;

/* A request that is in flight. */
struct aws_flight {
	uint32_t items[AWS_BATCH_MAX]; /* of the batch */
	size_t n;                      /* 0: it is free */
};

#define AWS_IN_FLIGHT_MAX 64

struct aws_transport {
	struct broker broker;
	const struct aws_service *service;
	struct web *web;  /* NULL: not connected */
	char *url, *host; /* where requests go, and their header Host */
	char *place;      /* the queue's URL or the topic's ARN */
	char region[64];
	bool fifo, unordered;
	int64_t batch, in_flight;
	outbox_time timeout;
	struct aws_credentials credentials;
	struct key_order order;
	struct aws_flight flights[AWS_IN_FLIGHT_MAX];
};

static inline struct aws_transport *aws_downcast(struct outbox_transport *transport)
{
	return (struct aws_transport *)transport; /* broker is the first member */
}

/* ---- options.c */
int aws_configure(struct broker *broker, struct url *url,
		  const struct outbox_transport_config *config,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- credentials.c */

/* Read them again. EAUTH: there are none. */
int aws_credentials_read(struct aws_transport *t, outbox_time deadline,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The same, if they end soon. What still holds is kept when there are no newer ones. */
int aws_credentials_refresh(struct aws_transport *t, outbox_time deadline,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;
void aws_credentials_deinit(struct aws_credentials *credentials);

/* ---- imds.c: those of the machine, from its metadata service */
int aws_imds_read(struct aws_transport *t, outbox_time deadline, struct aws_credentials *ret,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- connect.c */
int aws_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
/* At once, without waiting for anything; legal in every state. */
void aws_disconnect(struct outbox_transport *transport);

/* ---- request.c */

/* Add a message as entry number id. *ret_size: what it counts. EINVAL: this message cannot be sent. */
int aws_request_add(struct aws_transport *t, const struct outbox_item *item, size_t id,
		    struct web_request *request, size_t *ret_size,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The body is in the request's buffer: sign it. target: X-Amz-Target, NULL: none. */
int aws_request_sign(struct aws_transport *t, const char *target, struct web_request *request,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publish.c */
int aws_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		outbox_time deadline, struct outbox_error *err);

/* ---- check.c */
int aws_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

/* ---- verdict.c */
struct aws_row {
	const char *code; /* a glob; "http 503": an answer without a code that we know */
	int verdict; /* of a message of which this was said; UNSET: it says nothing of the message */
	int status; /* of publish(), when this was said of the whole request, or the verdict is UNSET */
	const char *remedy; /* for people, behind the answer */
};
extern const struct aws_row aws_rows[]; /* the first that fits holds; the last fits all */

/* By the code, which may have the service's prefixes and suffixes; by the status, when nobody knows the code. */
const struct aws_row *aws_row_find(const char *code, int status);

/* What the service says, for people: without our secrets, of which its answers have some, and then cut. */
void aws_text_keep(char *out, size_t size, const char *text);

/* No answer at all: the status of connect() and publish(). */
int aws_failure_status(CURLcode failure);

#endif
