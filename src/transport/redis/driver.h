/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_REDIS_DRIVER_H
#define TRANSPORT_REDIS_DRIVER_H

/*
 * Redis Streams. redis.c opens, options.c reads the URL, connect.c logs in, publish.c sends, transport/order.c says what may go,
 * script.c sends many of few keys, verdict.c judges, check.c asks what it is worth.
 */

#include <outbox/transport.h>

#include "transport/broker.h"
#include "transport/order.h"
#include "transport/redis/wire.h"
#include "transport/template.h"

#define REDIS_REPLICAS_MAX 100

/* Pipelines of fewer messages cost more time waiting than a script costs the server. */
#define REDIS_FEW 16

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
	bool unordered;   /* keys mean nothing */
	struct key_order order;
	bool no_scripts;           /* this connection may not run any */
	struct buf words, streams; /* of the script that is being written */
};

/* One call of publish(). */
struct redis_run {
	struct redis_transport *t;
	struct outbox_batch *batch;
	outbox_time deadline;
	outbox_time enough_time; /* with less than that left, nothing more is begun */
	const uint32_t *list;    /* of messages, a pipeline */
	size_t n_list;
	size_t written;              /* of the list, looked at */
	size_t answered;             /* of the list, done with */
	size_t acked;                /* of the batch */
	bool stopped;                /* the server refuses all: write no more */
	bool no_script;              /* a script did not run: one message at a time */
	bool last;                   /* nothing comes behind this pipeline but WAIT */
	bool wait_written, waited;   /* WAIT, and its answer */
	bool enough;                 /* replicas have it, or none were asked for */
	bool out_of_step;            /* nothing that was said can be trusted */
	struct outbox_error refusal; /* of the server as a whole; status 0: none */
};

static inline struct redis_transport *redis_downcast(struct outbox_transport *transport)
{
	return (struct redis_transport *)transport; /* broker is the first member */
}

/* Write the XADD of a message. EINVAL: the message cannot be sent, and nothing was written. */
int redis_command_add(struct redis_transport *t, const struct outbox_item *item,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same as words for a script: how many they are, then the words. *ret_words: with that number. */
int redis_command_words(struct redis_transport *t, const struct outbox_item *item, struct buf *out,
			size_t *ret_words, struct outbox_error *err) OUTBOX_MUSTCHECK;

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

/* Send these messages in a pipeline, and read every answer. */
int redis_send(struct redis_run *run, const uint32_t *list, size_t n,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Send all that wait by scripts. */
int redis_script_send(struct redis_run *run, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* May more be sent? What is not counts as not sent, and comes again. */
bool redis_may_go_on(const struct redis_run *run);
int redis_out_of_step(struct redis_run *run, struct outbox_error *err);

int redis_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
int redis_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
int redis_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err);
int redis_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

#endif
