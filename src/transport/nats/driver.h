/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_NATS_DRIVER_H
#define TRANSPORT_NATS_DRIVER_H

/*
 * NATS JetStream. How the parts work together is told in publish.c, why there is no library in frames.c.
 */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/broker.h"
#include "transport/nats/frames.h"
#include "transport/template.h"

#include <stdbool.h>
#include <stdint.h>

/* A server takes lines of 4,096 bytes by default, and ends the connection at a longer one. */
#define NATS_SUBJECT_MAX 3900
/* The native code of a message that we may not publish: the server has none for it. */
#define NATS_NOT_PERMITTED 12
#define NATS_NO_RESPONDERS 503

/* What was said of one message that went out. */
enum slot_state {
	SLOT_OPEN, /* nothing yet */
	SLOT_ACKED,
	SLOT_DONE,  /* another verdict, and final */
	SLOT_DOUBT, /* the stream has its id already: see duplicates.c */
	SLOT_PLACE, /* nobody takes its subject, or not from us: RETRY, unless the target has no other */
	SLOT_FULL, /* refused for want of space: RETRY, unless the whole target is full */
	SLOT_AWAY  /* refused by a stream or cluster that cannot work now: the same */
};

struct slot {
	size_t item; /* in the batch */
	enum slot_state state;
	bool unheard; /* while it is open: a 503 came, nobody listens */
};

/* The messages of one publish() that went out; the i-th has the reply subject <inbox>.<first + i>. */
struct window {
	struct outbox_batch *batch;
	struct slot *slots;
	size_t capacity, count;
	size_t open;    /* slots in SLOT_OPEN */
	size_t acked;   /* slots in SLOT_ACKED */
	size_t unheard; /* open slots that nobody listens for: they wait for nothing */
	uint64_t first;
	size_t asked;        /* up to here it was found out why a message has no answer */
	bool no_stream;      /* the target's stream= does not exist */
	outbox_time reserve; /* so much of the deadline is for questions about duplicates */
};

/* A message that was answered with "duplicate". */
struct doubt {
	size_t slot;
	char *stream;
	int64_t seq;     /* of what the stream has under its id */
	uint64_t number; /* of the question's reply subject */
	bool settled;
};

struct doubts {
	struct doubt *list;
	size_t capacity, count;
	size_t asked; /* the first so many: asked, or settled without */
	size_t open;  /* asked and not settled */
};

struct nats_transport {
	struct broker broker;
	struct template subject;
	bool dollar;   /* the template itself begins with $: "$KV.bucket.{key}" */
	bool constant; /* one subject for all messages */
	char *suffix;  /* "@<target>" behind the id in Nats-Msg-Id, or NULL */
	char *stream;
	char *token, *creds, *nkey, *seed;
	char *inbox_prefix;

	struct wire wire;
	/* What INFO said. */
	bool has_headers;
	char nonce[200];
	int64_t max_payload;
	uint64_t sid;     /* of the subscription to the inbox */
	struct buf reply; /* "<inbox>." and then a number */
	size_t reply_length;
	uint64_t number; /* of the next reply subject */
	bool stale;      /* answers of an earlier batch may still come */

	struct window window;
	struct doubts doubts;
	struct buf text;   /* the subject of the message at hand */
	struct buf msg_id; /* its Nats-Msg-Id, where there is a suffix */
};

static inline struct nats_transport *nats_downcast(struct outbox_transport *transport)
{
	return (struct nats_transport *)transport; /* broker is the first member */
}

/* ---- options.c: everything that the URL says */
int nats_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- connect.c */
int nats_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
/* An inbox that nothing answers to yet; not yet sent. */
void nats_new_inbox(struct nats_transport *t);

/* ---- login.c: CONNECT, not yet sent */
int nats_put_connect(struct nats_transport *t, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- pump.c: requests, and the answers to them */
/* What was said since, one by one: messages to our inbox, and errors that do not end the connection. */
bool pump_next(struct nats_transport *t, struct nats_frame *ret_frame);
/* Why the connection is gone. Returns the status. */
int pump_why(const struct nats_transport *t, struct outbox_error *err);
/* Does the error say that we may not log in, or no longer? */
bool nats_is_login_error(const char *text);
/* The next reply subject, in t->reply; returns its number. */
uint64_t pump_next_reply(struct nats_transport *t);
/* The number of an answer; false: it is none of ours. */
bool pump_number(const struct nats_transport *t, const char *subject, uint64_t *ret_number);
/* A request to the next reply subject, not yet sent. */
void pump_put_request(struct nats_transport *t, const char *subject, const char *json);

/*
 * One request, one answer; what comes meanwhile for a batch in flight is settled. ENOTFOUND: nobody listens on the subject;
 * ETIMEDOUT: no answer; ECONN. The caller frees the answer.
 */
int pump_request(struct nats_transport *t, const char *subject, const char *json,
		 outbox_time deadline, char **ret_answer, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- subject.c: what goes on the wire is checked before, and refused, never rewritten */
/* The message's subject into t->text. EINVAL with the reason. */
int nats_subject(struct nats_transport *t, const struct outbox_message *message,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* What the server is to recognise a repeat by; valid until the next call. EINVAL with the reason. */
int nats_msg_id(struct nats_transport *t, const struct outbox_message *message, const char **ret_id,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
/* EINVAL unless it can be a header, a command to the server it is not. */
int nats_header_check(const struct outbox_header *header, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* A stream's name, an inbox prefix: one or several tokens. */
bool nats_tokens_valid(const char *text, bool dots);

/* ---- publish.c */
int nats_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err);
/* ---- settle.c: from answers to verdicts, and what the batch as a whole says of the target */
/* An answer; one that is not of this batch changes nothing. */
void settle_message(struct nats_transport *t, const struct nats_frame *message);
/* What the server said on its own account. */
void settle_note(struct nats_transport *t, const char *text);
/*
 * Everything is silent, and this message has no answer. Is there a stream for it at all? False: there is, or
 * nobody can tell.
 */
bool settle_silence(struct nats_transport *t, size_t slot, outbox_time deadline);
/* No more answers. */
int settle_batch(struct nats_transport *t, outbox_time deadline,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ---- duplicates.c: is what the stream has under this id this message, or one under another subject? */
#define NATS_MSG_GET "$JS.API.STREAM.MSG.GET."
/* The stream says that it has this message already. */
void doubts_add(struct nats_transport *t, size_t slot, const char *stream, int64_t seq);
/* Ask about as many as may be asked at a time. False: nothing is open. */
bool doubts_ask(struct nats_transport *t);
/* An answer, perhaps to a question. */
void doubts_answer(struct nats_transport *t, uint64_t number, const char *json, size_t size);
/* Nobody listens, perhaps to a question. */
void doubts_unheard(struct nats_transport *t, uint64_t number);
/* A question to this subject was not permitted. */
void doubts_forbidden(struct nats_transport *t, const char *subject, size_t length, const char *text);
/* No more answers: why, or NULL when the connection was lost. */
void doubts_end(struct nats_transport *t, const char *why);
void doubts_clear(struct nats_transport *t);
/* ---- check.c */
int nats_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

/* The names of the streams that take a subject (or have subjects in common with a wildcard). */
#define NATS_STREAMS_MAX 8
struct stream_names {
	char names[NATS_STREAMS_MAX][256];
	size_t count; /* all of them; more than NATS_STREAMS_MAX are not named */
};
int nats_stream_names(struct nats_transport *t, const char *subject, outbox_time deadline,
		      struct stream_names *ret_names, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* JetStream says that there is no such stream. False: there is, or nobody can tell. */
bool nats_stream_missing(struct nats_transport *t, const char *stream, outbox_time deadline);

#endif
