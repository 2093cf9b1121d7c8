/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_RABBITMQ_DRIVER_H
#define TRANSPORT_RABBITMQ_DRIVER_H

/* Shared by the files of the RabbitMQ driver (AMQP 0-9-1). */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/broker.h"
#include "transport/confirms.h"
#include "transport/rabbitmq/watchdog.h"
#include "transport/template.h"

#include <stdbool.h>

#include <amqp.h>

#define RABBIT_PUBLISH_CHANNEL 1
#define RABBIT_SIDE_CHANNEL 2  /* questions that the broker may answer by closing the channel */
#define RABBIT_SHORT_MAX 255   /* AMQP's short strings: names, keys, ids */
#define RABBIT_HEADERS_MAX 128 /* more than any envelope makes */
#define RABBIT_EXCHANGES_MAX 1000

/* What connect() makes sure of when asked to. */
struct rabbit_declare {
	char *exchange_type; /* NULL: the exchange is there */
	char *queue;         /* NULL: none */
	char *queue_type;
	char *bind; /* the binding's key */
};

/* An exchange that was asked for on this connection. */
struct rabbit_exchange {
	char *name;
	char *missing; /* NULL: it is there; else the broker's words. Of the running batch only */
	int code;
};

/* A message on its way back: a method, its properties, then the body in pieces. */
struct rabbit_return {
	enum { RETURN_NONE, RETURN_METHOD, RETURN_BODY } state;
	int code;
	char text[400];
	uint64_t left; /* bytes of the body that are still to come */
};

struct rabbit {
	struct broker broker;
	/* ---- from the URL */
	char *vhost;
	struct template exchange, routing_key;
	struct rabbit_declare declare;
	bool constant;         /* one exchange for all messages */
	bool mandatory_events; /* commands always are */
	int64_t heartbeat;     /* seconds, 0: none */
	/* ---- scratch, one message at a time */
	struct buf exchange_name, key;
	amqp_table_entry_t headers[RABBIT_HEADERS_MAX];
	/* ---- the connection */
	amqp_connection_state_t connection; /* NULL: none */
	struct rabbit_watchdog watchdog;
	struct confirms confirms;
	struct rabbit_return returned;
	struct rabbit_exchange *exchanges;
	size_t n_exchanges;
	uint64_t size_max; /* the broker's limit for a body, once it told us; 0: not yet */
	bool side_open;
	bool gone;    /* the last question ended the connection, not only its channel */
	bool deaf;    /* reading failed or made no sense: what comes behind it counts for nothing */
	bool blocked; /* the broker takes no messages: an alarm */
	char blocked_reason[200];
	int closed_code; /* of the publishing channel; 0: it is open */
	char closed_text[300];
};

static inline struct rabbit *rabbit_downcast(struct outbox_transport *transport)
{
	return (struct rabbit *)transport; /* broker is the first member */
}

static inline amqp_bytes_t rabbit_bytes(const char *text, size_t size)
{
	return (amqp_bytes_t){ .len = size, .bytes = (void *)(uintptr_t)text };
}

/* ---- options.c: everything that the URL says */
#define RABBIT_OPTIONS \
	"exchange, routing_key, mandatory, heartbeat, declare, queue, queue_type, bind, " ENDPOINT_OPTIONS
int rabbit_configure(struct broker *broker, struct url *url,
		     const struct outbox_transport_config *config,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- connect.c */
int rabbit_connect(struct outbox_transport *transport, outbox_time deadline,
		   struct outbox_error *err);
/* Let go of the connection without waiting. polite: tell the broker, if that costs nothing. */
void rabbit_drop(struct rabbit *rabbit, bool polite);
/* (Re)open the publishing channel in confirm mode. */
int rabbit_open_channel(struct rabbit *rabbit, outbox_time deadline,
			struct outbox_error *err) OUTBOX_MUSTCHECK;
/* What is left until the deadline, as the library wants it; at least nothing. */
struct timeval rabbit_time_left(const struct rabbit *rabbit, outbox_time deadline);
/* Did the last question succeed? If not, the channel was closed by it or the connection is gone. */
int rabbit_reply(struct rabbit *rabbit, amqp_channel_t channel, const char *what,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The side channel for a question. */
int rabbit_side(struct rabbit *rabbit, outbox_time deadline,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- topology.c: make or look for the exchange and queue of the URL */
int rabbit_declare_topology(struct rabbit *rabbit, outbox_time deadline,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Declare a durable queue on the side channel; of no type: only see that it is there. what: for the error. */
int rabbit_declare_queue(struct rabbit *rabbit, const char *queue, const char *queue_type,
			 const char *what, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Does an exchange exist? OK, or ENOTFOUND, EAUTH ... with the broker's words in err. */
int rabbit_find_exchange(struct rabbit *rabbit, const char *name, outbox_time deadline,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- exchanges.c: which exchanges of a template exist */
/* Ask for every exchange of the batch that is not known yet, before anything is sent. */
int rabbit_exchanges_prepare(struct rabbit *rabbit, struct outbox_batch *batch,
			     outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;
const struct rabbit_exchange *rabbit_exchanges_find(const struct rabbit *rabbit, const char *name);
void rabbit_exchanges_forget(struct rabbit *rabbit);

/* ---- message.c */
struct rabbit_message {
	amqp_basic_properties_t properties;
	amqp_bytes_t exchange, key, body;
	bool mandatory;
};

/* Everything that goes on the wire. EINVAL: REJECTED with that text. Valid until the next call. */
int rabbit_message(struct rabbit *rabbit, const struct outbox_item *item,
		   struct rabbit_message *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- answers.c */
/*
 * Take what the broker said. Waits until the deadline for at least one frame, or, with `wait` false, takes only
 * what is there. OK also when nothing came. A failure: the connection is gone.
 */
int rabbit_answers(struct rabbit *rabbit, bool wait, outbox_time deadline,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publish.c */
int rabbit_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		   outbox_time deadline, struct outbox_error *err);

/* ---- check.c */
int rabbit_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

/* ---- verdict.c: the one table from the broker's and the library's codes to ours */
struct rabbit_code {
	int code;         /* AMQP's reply code (> 0) or the library's status (< 0) */
	const char *with; /* only when the broker's words contain this; NULL: always */
	int verdict;      /* of the message that caused it */
	int status;       /* of the connection, or of the place as a whole */
	const char *note; /* what it means or how to repair it, for people; may be NULL */
};

extern const struct rabbit_code rabbit_codes[]; /* ends with code 0, which stands for all others */
const struct rabbit_code *rabbit_code_find(int code, const char *text);
/* Fail with the code's status: "what: text; note". text NULL: the library's own for its code. */
int rabbit_fail(const struct rabbit *rabbit, int code, const char *text, const char *what,
		struct outbox_error *err);
/* The broker's words as a clean line. */
void rabbit_words(amqp_bytes_t bytes, char *out, size_t size);

#endif
