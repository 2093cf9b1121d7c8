/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_REDIS_DRIVER_H
#define TRANSPORT_REDIS_DRIVER_H

/* Redis Streams. redis.c opens, options.c reads the URL, connect.c logs in, publish.c sends, verdict.c judges, check.c asks what it is worth. */

#include <outbox/transport.h>

#include "transport/broker.h"
#include "transport/redis/wire.h"
#include "transport/template.h"

#define REDIS_REPLICAS_MAX 100

struct redis_transport {
	struct broker broker;
	struct redis_wire wire;
	struct template stream;
	struct buf key; /* the stream's name; while it is fixed, made once */
	bool fixed;     /* one stream for all messages */
	bool create;    /* may a message make its stream? */
	int64_t maxlen; /* 0: never trimmed */
	bool maxlen_exact;
	int64_t database;
	int64_t replicas; /* wait for so many before it is an acknowledgement */
	char client[300]; /* how `CLIENT LIST` names us: without a blank */
};

static inline struct redis_transport *redis_downcast(struct outbox_transport *transport)
{
	return (struct redis_transport *)transport; /* broker is the first member */
}

/* Write the XADD of a message. EINVAL: the message cannot be sent, and nothing was written. */
int redis_command_add(struct redis_transport *t, const struct outbox_item *item,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write a WAIT for the replicas, for at most so long. */
void redis_command_wait(struct redis_transport *t, outbox_time limit);

/* What a refusal is about; verdict.c holds the table. */
enum redis_refusal {
	REDIS_AGAIN,   /* this message, now: charged and tried again */
	REDIS_MESSAGE, /* this message, for ever; the server hangs up after it */
	REDIS_ROUTE,   /* its stream: this message, or all of them when they share it */
	REDIS_FULL,    /* the server takes no writes: memory or disk */
	REDIS_AWAY,    /* the server takes no writes at the moment, or never here */
	REDIS_LOGIN,   /* who we are, or what we may do */
	REDIS_WRONG    /* the configuration */
};

/* One row of the table; the last one has no word and stands for all others. */
struct redis_row {
	const char *word;     /* with which the error begins */
	const char *contains; /* NULL: any text */
	enum redis_refusal refusal;
	const char *remedy; /* "": none */
};
extern const struct redis_row redis_rows[];

/* Judge the text of an error reply. *ret_remedy: what to do about it, "" when there is nothing to say. */
enum redis_refusal redis_refusal_of(const char *text, const char **ret_remedy);

/* An error reply outside of a batch. Returns the status for connect(). */
int redis_refused(const struct redis_wire *wire, const char *text, struct outbox_error *err);

/* One line of INFO: the value of name, "" when it is not there. */
const char *redis_info(const char *info, const char *name, char *out, size_t size);
/* How many replicas are online by INFO? */
int64_t redis_info_replicas(const char *info);

int redis_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
int redis_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
int redis_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err);
int redis_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

#endif
