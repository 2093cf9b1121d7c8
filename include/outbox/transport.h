/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_TRANSPORT_H
#define OUTBOX_TRANSPORT_H

/*
 * The transport contract: what a driver for a broker must do, op by op.
 *
 * A transport turns a batch into verdicts, and nothing else. It never retries, never sleeps beyond
 * the deadline it was given, never logs, never starts a transaction, never decides what a failure
 * means for a message: the engine does. Every object is used by one thread at a time; several objects
 * of one driver live side by side (one per worker), so a driver keeps no global state.
 *
 * tests/contract/transport_contract.c proves this page for every driver.
 */

#include <outbox/clock.h>
#include <outbox/error.h>
#include <outbox/message.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_transport;
struct outbox_encoder;
struct outbox_batch;

/* What a driver says of one message. A verdict is not an error. */
enum outbox_verdict {
	OUTBOX_VERDICT_UNSET = 0, /* never touched: the engine takes it as not sent */
	OUTBOX_ACKED = 1,         /* the broker confirmed it, as durably as it ever will */
	OUTBOX_REJECTED = 2,      /* it will never be accepted: failed at once, no more attempts */
	OUTBOX_RETRY = 3,         /* this message was refused now: charged, tried again later */
	OUTBOX_UNKNOWN = 4 /* sent or half sent, outcome not known: resent, perhaps a duplicate */
};

enum outbox_envelope {
	OUTBOX_ENVELOPE_UNSET = 0,         /* the driver's own default */
	OUTBOX_ENVELOPE_CE_STRUCTURED = 1, /* CloudEvents 1.0, one JSON object */
	OUTBOX_ENVELOPE_CE_BINARY = 2, /* CloudEvents 1.0, attributes as headers, body = payload */
	OUTBOX_ENVELOPE_NATIVE = 3,  /* body = payload, headers = the message's own plus outbox-* */
	OUTBOX_ENVELOPE_EXTERNAL = 4 /* CloudEvents JSON of the allow-list only, nothing internal */
};

/* One message of a batch. Everything above the line is the engine's and read-only for drivers. */
struct outbox_item {
	const struct outbox_message *message; /* every default filled in: id, source, event_time ... */
	int64_t seq;                          /* place in the log */
	outbox_time created_at;
	int attempts; /* failed tries before this one */
	/* ---- set by outbox_batch_verdict() and its siblings */
	int verdict;             /* enum outbox_verdict */
	int native;              /* the broker's code */
	const char *reason;      /* NULL when ACKED without remark; lives as long as the batch */
	bool duplicate;          /* ACKED, and the broker had it already */
	outbox_time retry_after; /* RETRY: not before, from now on; 0: as the policy says */
	const char *answer; /* what the broker said in full, for the history; NULL: the reason is all */
};

/* The messages of one publish() call, in seq order. */
struct outbox_batch {
	struct outbox_item **items;
	size_t count;
	void *memory;         /* the engine's arena that holds the reasons */
	outbox_time back_off; /* set by outbox_batch_back_off() */
};

/* What a target's driver is opened with. Borrowed for the call of open(): copy what you keep. */
struct outbox_transport_config {
	size_t struct_size;
	const char *url;              /* as given: "file:out.jsonl", secrets already resolved */
	const char *target;           /* the target's name, for error texts */
	int envelope;                 /* enum outbox_envelope; UNSET: the driver's default */
	struct outbox_clock *clock;   /* outlives the transport; deadlines are its mono() times */
	struct outbox_random *random; /* outlives the transport */
	void *context;                /* what the application registered the driver with */
	bool unordered; /* the target keeps no order: no message needs to wait for another of its key */
};

/*
 * The driver keeps a key's order over failures: several messages of a key may be in one batch. Once one is neither
 * ACKED nor REJECTED, no later one of its key is sent: these get no verdict and count as not sent.
 */
#define OUTBOX_TRANSPORT_KEEPS_ORDER 1u

struct outbox_transport_ops {
	size_t struct_size;         /* sizeof(struct outbox_transport_ops) */
	const char *name;           /* "rabbitmq": shown to people */
	const char *const *schemes; /* NULL-terminated: "amqp", "amqps" */
	const char *help; /* one line for `outbox doctor` and error texts: URL form, options */
	unsigned flags;   /* OUTBOX_TRANSPORT_* */

	/*
	 * Make a transport from its URL. No I/O: a wrong URL, option or combination fails here with
	 * OUTBOX_ECONFIG and the remedy (unknown options are errors), an unreachable broker does not.
	 * *ret_transport belongs to the caller until close().
	 */
	int (*open)(const struct outbox_transport_config *config,
		    struct outbox_transport **ret_transport, struct outbox_error *err);

	/*
	 * Connect, within the deadline. Called before the first publish() and again after
	 * disconnect(). ECONN, EAUTH, ETIMEDOUT, EFULL: the engine opens the breaker and charges
	 * nobody. Recovery of local state (a torn tail, a new producer id) belongs here.
	 */
	int (*connect)(struct outbox_transport *transport, outbox_time deadline,
		       struct outbox_error *err);

	/*
	 * Send the batch and set a verdict for every item with outbox_batch_verdict(). All items are
	 * to be confirmed before it returns; order on the wire is the order of the array, at least
	 * within a key. An ACKED that the broker did not confirm is the worst bug a driver can have.
	 * Returns OUTBOX_OK when the connection is usable afterwards, whatever the verdicts are.
	 * A failure means that the connection is gone or the broker is out: verdicts already set
	 * stand, items without one count as UNKNOWN, and the engine calls disconnect(). EFULL, EAUTH
	 * and EGONE also promise that nothing without a verdict was accepted: it counts as not sent.
	 * With EGONE the engine pauses the target, for a person to look at.
	 */
	int (*publish)(struct outbox_transport *transport, struct outbox_batch *batch,
		       outbox_time deadline, struct outbox_error *err);

	/* Drop the connection at once. Legal at any time, also twice and before connect(). */
	void (*disconnect)(struct outbox_transport *transport);

	/* Free everything, disconnecting first when needed. */
	void (*close)(struct outbox_transport *transport);

	/*
	 * Optional. For `outbox doctor`, on a connected transport: one sentence on what an
	 * acknowledgement means here, written to text. Returns 0 ok, 1 note, 2 warning, 3 error.
	 */
	int (*check)(struct outbox_transport *transport, outbox_time deadline, char *text,
		     size_t size);
};

/* Embed as first member of the driver's struct. open() sets ops. */
struct outbox_transport {
	const struct outbox_transport_ops *ops;
};

/*
 * Set the verdict of batch->items[i]. The reason is formatted into the batch's memory and cut to
 * 2,000 characters at a UTF-8 boundary; format may be NULL.
 */
void outbox_batch_verdict(struct outbox_batch *batch, size_t i, int verdict, int native,
			  const char *format, ...) OUTBOX_PRINTF(5, 6);

/*
 * What the broker answered in full (the body of an HTTP answer, say), with a verdict other than ACKED, set before or after
 * it. Kept for the history of failed attempts only: the first 4 KiB, one or more lines of UTF-8; other control
 * characters become spaces, and known secrets are hidden. text needs no NUL at its end; a size of 0 takes it back.
 */
void outbox_batch_answer(struct outbox_batch *batch, size_t i, const void *text, size_t size);

/*
 * ACKED, and the broker said that it had this message already and did not store it again. For the
 * message it is an acknowledgement like any other; the relay counts it.
 */
void outbox_batch_duplicate(struct outbox_batch *batch, size_t i);

/*
 * The broker said when this message may come again ("Retry-After: 120"). With a RETRY verdict, set before or
 * after: its next attempt is not earlier, nor earlier than its policy says. Charged like any other. At
 * most a day; a delay of 0 or less means nothing. Other verdicts do not care.
 */
void outbox_batch_retry_after(struct outbox_batch *batch, size_t i, outbox_time delay);

/*
 * The broker said when it may be asked again at all (429 or 503 with Retry-After, a throttle time). For a
 * publish() that fails, by what is handed in: this worker's breaker stays open at least so long, an hour at the
 * most. Nothing is charged. A publish() that succeeds does not care.
 */
void outbox_batch_back_off(struct outbox_batch *batch, outbox_time delay);

/* A message in the form in which it goes on the wire. Valid until the encoder's next call. */
struct outbox_encoded {
	const void *body;
	size_t size;
	const char *content_type;
	const struct outbox_header *headers; /* names without a binding's prefix decoration */
	size_t n_headers;
};

/*
 * Encoders turn messages into envelopes and keep their buffers between calls. attribute_prefix is
 * what CloudEvents' binding puts before attribute names in binary mode: "ce-" (HTTP, AMQP: "cloudEvents:"),
 * "ce_" (Kafka). NULL means "ce-".
 */
int outbox_encoder_new(int envelope, const char *attribute_prefix,
		       struct outbox_encoder **ret_encoder, struct outbox_error *err);
struct outbox_encoder *outbox_encoder_free(struct outbox_encoder *encoder);

/*
 * OUTBOX_EINVAL: the message cannot be put in this envelope (text that claims to be JSON and is not);
 * the driver answers REJECTED with that message.
 */
int outbox_encode(struct outbox_encoder *encoder, const struct outbox_item *item,
		  struct outbox_encoded *ret_encoded, struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
