/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_KAFKA_DRIVER_H
#define TRANSPORT_KAFKA_DRIVER_H

/* Kafka by librdkafka: what the files of this driver share. */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/broker.h"
#include "transport/template.h"

#include <librdkafka/rdkafka.h>

#include <stdbool.h>
#include <stdint.h>

#define KAFKA_TOPIC_MAX 249
#define KAFKA_TICK 100 /* ms: how often a wait looks up */

/* A topic that a message named. Known until the next connect(). */
struct kafka_topic {
	char *name;
	rd_kafka_topic_t *handle;
	rd_kafka_resp_err_t error; /* what the broker said of it; 0: it is there */
	bool known;                /* the broker was asked, and it is there */
	bool stale;  /* a message was refused since: ask again before the next batch */
	bool wanted; /* the batch names it */
};

struct kafka_topics {
	void *root; /* of a tsearch() tree by name */
	size_t count;
};

/* What became of one message of the batch. */
enum kafka_state {
	KAFKA_LEFT = 0, /* not handed to the library */
	KAFKA_OPEN,     /* handed over, no report yet */
	KAFKA_REPORTED
};

struct kafka_report {
	struct kafka_topic *topic;
	enum kafka_state state;
	rd_kafka_resp_err_t error;
	rd_kafka_msg_status_t status;
	int32_t partition;
	size_t bytes;
	bool split; /* refused with its whole message set */
};

/* Which topic a key's messages go to in the window that is being filled. */
struct kafka_key {
	uint64_t hash;
	const struct kafka_topic *topic;
	uint64_t window;
};

/* The publish() that is going on. The arrays are kept from one to the next. */
struct kafka_run {
	struct outbox_batch *batch; /* NULL: none; a report is then nobody's */
	outbox_time deadline;
	size_t capacity;
	struct kafka_report *reports; /* by index in the batch */
	size_t *list;                 /* indexes still to be sent, in order */
	struct kafka_key *keys;       /* only with a topic that differs */
	size_t n_keys;                /* a power of two */
	uint64_t *failed;             /* hashes of keys of which a message was refused for now */
	size_t n_failed;
	uint64_t window; /* number of the window, never repeated */
	size_t open;     /* messages without a report */
};

/* What the library told since connect(). */
struct kafka_trouble {
	int status; /* enum outbox_status; 0: nothing that ends the connection */
	int native;
	char text[300];
	bool all_down;
	outbox_time down_since;
};

struct kafka_transport {
	struct broker broker;
	struct template topic;
	char *topic_text;
	struct buf name; /* of the topic being rendered */
	bool auto_create;
	rd_kafka_conf_t *conf;
	rd_kafka_t *producer;                 /* NULL: not connected */
	bool dead;                            /* purged or fatal: only disconnect() helps */
	size_t window_bytes, window_messages; /* less than a message set holds */
	size_t learned_bytes;                 /* what the broker takes at once, if less */
	struct kafka_topics topics;
	struct kafka_run run;
	struct kafka_trouble trouble;
};

static inline struct kafka_transport *kafka_downcast(struct outbox_transport *transport)
{
	return (struct kafka_transport *)transport; /* broker is the first member */
}

/* options.c: the library's configuration from the URL. */
int kafka_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* connect.c */
int kafka_connect(struct outbox_transport *transport, outbox_time deadline,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
void kafka_disconnect(struct outbox_transport *transport);
/* Milliseconds until a deadline, at most max; 0: it has passed. */
int kafka_remaining(const struct kafka_transport *kafka, outbox_time deadline, int max);
/* Refused for good, or all brokers down for longer than a broker's restart is worth waiting for? */
bool kafka_is_cut_off(const struct kafka_transport *kafka);
/* The connection's trouble as an error; without any, that there was no answer in time. */
int kafka_fail(const struct kafka_transport *kafka, struct outbox_error *err);

/* destroy.c: destroy the producer, waiting a moment but never for a thread that hangs in a name look-up. */
void kafka_destroy(rd_kafka_t *producer);

/* topics.c */
bool kafka_topic_name_ok(const char *name);
int kafka_topic_get(struct kafka_transport *kafka, const char *name, struct kafka_topic **ret_topic,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Of a target's only topic: an error when it is not there. */
int kafka_topic_check(const struct kafka_transport *kafka, const struct kafka_topic *topic,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Ask the broker for every topic that is wanted and not known, or not for sure. */
int kafka_topics_look(struct kafka_transport *kafka, outbox_time deadline,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
void kafka_topics_clear(struct kafka_topics *topics);

/* publish.c */
int kafka_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;
void kafka_run_deinit(struct kafka_run *run);

/* window.c: hand messages over, as many as make one message set a partition. */
size_t kafka_window_fill(struct kafka_transport *kafka, const size_t *list, size_t n);

/* reports.c: wait for the reports of a window and turn them into verdicts. */
int kafka_window_await(struct kafka_transport *kafka, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Returns how many of the list were refused as part of a message set: moved to its front. */
size_t kafka_window_report(struct kafka_transport *kafka, size_t *list, size_t n);
/* An error that ends the connection. The first one counts. */
void kafka_note_trouble(struct kafka_transport *kafka, rd_kafka_resp_err_t error);
/* Is it the target's only topic that is missing or forbidden? Then that ends the connection: nobody's attempt. */
bool kafka_lost_place(struct kafka_transport *kafka, const struct kafka_topic *topic,
		      rd_kafka_resp_err_t error);
/* A message was refused for now: the rest of its key stays behind in this batch. */
void kafka_key_failed(struct kafka_run *run, const struct outbox_message *message);
bool kafka_key_has_failed(const struct kafka_run *run, const struct outbox_message *message);

/* verdict.c: the one table of what the library's and the broker's codes mean. */
enum kafka_class {
	KAFKA_REFUSED,   /* the broker will never take it: REJECTED, once it is alone in its set */
	KAFKA_FOR_NOW,   /* RETRY */
	KAFKA_OUTAGE,    /* nobody's fault: ECONN */
	KAFKA_NO_ANSWER, /* ETIMEDOUT */
	KAFKA_FORBIDDEN  /* EAUTH */
};
enum kafka_class kafka_classify(rd_kafka_resp_err_t error);
/* The status of an outage: ECONN, ETIMEDOUT or EAUTH. */
int kafka_status(rd_kafka_resp_err_t error);
/* The status when the code is about a target's only topic: ECONFIG or EAUTH; 0: it is not about topics. */
int kafka_place_status(rd_kafka_resp_err_t error);

/* check.c */
int kafka_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

#endif
