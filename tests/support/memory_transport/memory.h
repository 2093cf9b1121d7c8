/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_TRANSPORT_H
#define MEMORY_TRANSPORT_H

/*
 * A broker in memory for tests and the simulator: it keeps what arrived and does on cue what brokers
 * do in the worst moment. Open its transports with `context` = the broker and the URL "memory:".
 *
 * Everything is deterministic: no clock but the transport's, no random source. All functions are
 * thread-safe; hooks run without the broker's lock, so they may call these functions too.
 */

#include <outbox/transport.h>

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What becomes of one message. */
enum memory_fate {
	MEMORY_DEFAULT = 0,  /* no opinion: the next rule decides, in the end ACK */
	MEMORY_ACK,          /* kept, ACKED */
	MEMORY_ACK_ONCE,     /* kept if its id is new; ACKED, as a duplicate if it is not */
	MEMORY_REJECT,       /* not kept, REJECTED */
	MEMORY_RETRY,        /* not kept, RETRY */
	MEMORY_UNKNOWN_KEPT, /* kept, but the answer is lost: UNKNOWN; the connection stays */
	MEMORY_UNKNOWN_LOST, /* not kept, UNKNOWN; the connection stays */
	MEMORY_DROP,         /* not kept, the connection is lost: publish() fails here */
	MEMORY_DROP_KEPT     /* kept, then the connection is lost before the answer */
};

/* Applies to messages that match every field that is set. The first rule with `times` left wins. */
struct memory_rule {
	const char *type; /* glob; NULL: any */
	const char *key;  /* exact; NULL: any */
	const char *id;   /* exact; NULL: any */
	int64_t seq;      /* 0: any */
	enum memory_fate fate;
	int times;          /* how often it applies; 0: always */
	int status;         /* what publish() returns on a drop; 0: OUTBOX_ECONN */
	const char *reason; /* of the verdict; NULL: a text made from the fate */
	outbox_time wait; /* RETRY: come again after this; a drop: ask nothing before; 0: not said */
};

/* One message as it arrived. Lives until memory_broker_clear() or _free(). */
struct memory_record {
	const char *id, *type;
	const char *key; /* NULL when it has none */
	int64_t seq;
	int attempts;
	const void *body; /* in the target's envelope; native by default: the payload */
	size_t size;
	const char *content_type;
	const struct outbox_header *headers;
	size_t n_headers;
	uint64_t connection; /* 1, 2, ...: the connect() it came by */
	uint64_t call;       /* 1, 2, ...: the publish() it came by */
	bool confirmed;      /* the sender was told ACKED */
};

struct memory_hooks {
	void *context;
	/* At each publish(), before its first message. May step a clock, script the broker ... */
	void (*on_publish)(void *context, const struct outbox_batch *batch);
	/* For each message, before the rules. MEMORY_DEFAULT leaves it to them. */
	enum memory_fate (*on_message)(void *context, const struct outbox_item *item);
};

struct memory_counts {
	uint64_t connects;  /* that succeeded */
	uint64_t refused;   /* connects that failed */
	uint64_t publishes; /* calls of publish() */
	uint64_t offered;   /* messages that reached the broker, kept or not */
	uint64_t acked;     /* messages that were kept and ACKED */
};

struct memory_broker;

extern const struct outbox_transport_ops memory_transport_ops;

int memory_broker_new(struct memory_broker **ret_broker, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Its transports must be closed before. */
struct memory_broker *memory_broker_free(struct memory_broker *broker);
DEFINE_CLEANUP(struct memory_broker *, memory_broker_free)

/* Add a rule behind the others; its texts are copied. ENOMEM is the only failure. */
int memory_broker_rule(struct memory_broker *broker, const struct memory_rule *rule,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
void memory_broker_forget_rules(struct memory_broker *broker);

/* NULL removes the hooks. */
void memory_broker_hooks(struct memory_broker *broker, const struct memory_hooks *hooks);

/* An outage: connections break, connect() and publish() fail with status until _up(). */
void memory_broker_down(struct memory_broker *broker, int status);
void memory_broker_up(struct memory_broker *broker);

/* The next n connects fail with status; connections that exist go on. */
void memory_broker_refuse(struct memory_broker *broker, unsigned n, int status);

/*
 * The connection is lost once, when `after` more messages were taken. acks_lost: the answers for
 * the earlier messages of that publish() are lost with it (kept by the broker, no verdict).
 */
void memory_broker_lose(struct memory_broker *broker, size_t after, bool acks_lost);

/* What arrived, in order of arrival. NULL behind the last. */
size_t memory_broker_count(struct memory_broker *broker);
const struct memory_record *memory_broker_at(struct memory_broker *broker, size_t i);
/* How often a message with this id arrived. */
size_t memory_broker_count_id(struct memory_broker *broker, const char *id);
void memory_broker_counts(struct memory_broker *broker, struct memory_counts *ret_counts);

/* Forget what arrived and the counts; rules, hooks and outages stay. */
void memory_broker_clear(struct memory_broker *broker);

#endif
