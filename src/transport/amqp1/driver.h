/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_AMQP1_DRIVER_H
#define TRANSPORT_AMQP1_DRIVER_H

/*
 * AMQP 1.0: Artemis, Azure Service Bus, RabbitMQ and others. publish.c tells how the parts work together, pump.c why the
 * socket is ours although there is a library.
 */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/broker.h"
#include "transport/template.h"
#include "transport/wire.h"

#include <stdbool.h>
#include <stdint.h>

#include <proton/connection_driver.h>
#include <proton/link.h>
#include <proton/message.h>

#define AMQP1_LINKS_MAX 1000
#define AMQP1_ADDRESS_MAX 1024
#define AMQP1_WHY_MAX 400

enum amqp1_auth { AUTH_ANONYMOUS, AUTH_PLAIN, AUTH_EXTERNAL, AUTH_CBS };
enum amqp1_session { SESSION_KEY, SESSION_CORRELATION, SESSION_NONE };
enum amqp1_capability { CAPABILITY_NONE, CAPABILITY_QUEUE, CAPABILITY_TOPIC, CAPABILITY_KIND };

/* One row of the table in verdict.c; the last one has no name and stands for all others. */
struct amqp1_condition {
	const char *name;
	int verdict; /* of a message that is rejected with it */
	int only;    /* the target has one address: this outage instead. 0: the verdict stands */
	int closed;  /* of an address, link, session or connection that is closed with it */
	outbox_time back_off; /* how long to leave the broker alone; 0: as the policy says */
	const char *note;     /* what to do about it, for people; NULL: nothing */
};

/* A sender, one for each address. */
enum link_state {
	LINK_FREE,      /* of no use to anybody */
	LINK_ATTACHING, /* the broker has not answered yet */
	LINK_READY,
	LINK_CLOSED /* by the broker; amqp1_settle_links() says what that means */
};

struct amqp1_link {
	enum link_state state;
	pn_link_t *link;
	char *address;
	enum amqp1_capability capability;
	uint64_t used;       /* when: the larger, the later */
	size_t waiting;      /* messages of the batch that wait to be sent here */
	size_t in_flight;    /* that were sent and are not answered */
	bool attached_again; /* in this batch */
	bool proven;         /* something was sent there */
	outbox_time token_ends;
	const struct amqp1_condition *row; /* why it was closed */
	char why[AMQP1_WHY_MAX];
};

/* What became of one message of the batch. */
enum slot_state {
	SLOT_NEW,     /* has no link yet */
	SLOT_WAITING, /* for its link, or for credit */
	SLOT_SENT,
	SLOT_ACKED,
	SLOT_DONE /* another verdict */
};

struct slot {
	enum slot_state state;
	struct amqp1_link *link; /* while it waits, or is sent */
	int outage; /* it was refused, and that may be the target's fault: its status */
	outbox_time back_off;
};

struct window {
	struct outbox_batch *batch; /* NULL: none */
	struct slot *slots;         /* by message */
	size_t capacity;
	size_t low;  /* all slots below are past waiting */
	size_t open; /* new or waiting */
	size_t in_flight;
	size_t acked;
	struct outbox_error refused; /* the token of an address was; status 0: none */
};

/* A question and its answer: $cbs, and Artemis' management. */
struct amqp1_request {
	pn_link_t *sender, *receiver;
	pn_message_t *reply;
	bool accepted; /* the broker took the question */
	bool answered;
	bool refused; /* why[] says it */
	char why[AMQP1_WHY_MAX];
};

struct amqp1_transport {
	struct broker broker;
	/* ---- from the URL */
	struct template address;
	bool constant; /* one address for all messages */
	bool azure;
	enum amqp1_auth auth;
	enum amqp1_session session_from;
	bool partition_by_key;
	enum amqp1_capability capability;
	char *hostname; /* what we call the other side; NULL: as the URL does */
	int64_t n_links, token_ttl;
	/* ---- the connection */
	struct wire wire;
	pn_connection_driver_t driver; /* connection NULL: none */
	pn_session_t *session;
	bool closed; /* session or connection, by the other side */
	const struct amqp1_condition *row;
	struct amqp1_link *links;
	struct amqp1_request request;
	uint64_t number; /* of links, tags and uses */
	struct window window;
	/* ---- scratch */
	pn_message_t *message;
	pn_rwbytes_t encoded;
	struct buf text;
};

static inline struct amqp1_transport *amqp1_downcast(struct outbox_transport *transport)
{
	return (struct amqp1_transport *)transport; /* broker is the first member */
}

/* ---- options.c: everything that the URL says */
#define AMQP1_OPTIONS \
	"address, auth, session, partition, capability, links, hostname, connect, token_ttl, " ENDPOINT_OPTIONS
int amqp1_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- connect.c */
int amqp1_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
/* Let go of the connection without waiting. polite: tell the broker, if that costs nothing. */
void amqp1_drop(struct amqp1_transport *t, bool polite);

/* ---- pump.c: bytes between the socket and the library, and what the library makes of them */
/* Write and read for up to `wait`. False: nothing happened. */
bool amqp1_pump(struct amqp1_transport *t, outbox_time wait);
/* The other side is gone, or has closed what we need. */
bool amqp1_ended(const struct amqp1_transport *t);
/* Why; returns the status. */
int amqp1_why(const struct amqp1_transport *t, struct outbox_error *err);
/* Pump until it is done, the deadline has passed, or the other side is gone. */
int amqp1_await(struct amqp1_transport *t, bool (*done)(const struct amqp1_transport *t),
		const char *what, outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- links.c */
/*
 * The link for an address: there already, or attached now, with a token where one is needed. NULL: not now, since all are
 * in use by this batch, or another one is attaching.
 */
int links_get(struct amqp1_transport *t, const char *address, enum amqp1_capability capability,
	      outbox_time deadline, struct amqp1_link **ret_link,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The one that was attached is ready, or was refused. */
void links_opened(struct amqp1_transport *t, pn_link_t *link);
void links_closed(struct amqp1_transport *t, pn_link_t *link);
/* Attach once more. False: that was done in this batch already. */
bool links_attach_again(struct amqp1_transport *t, struct amqp1_link *link);
void links_free_one(struct amqp1_link *link);
void links_free_all(struct amqp1_transport *t);
bool links_any_attaching(const struct amqp1_transport *t);
/* The address of a target that has one is attached, or the error says why not. */
int links_attach_only(struct amqp1_transport *t, outbox_time deadline,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- request.c */
/* Send it to the address and wait for the answer, which is valid until the next request. dynamic: the broker names the reply address. */
int amqp1_request(struct amqp1_transport *t, const char *address, bool dynamic,
		  pn_message_t *question, outbox_time deadline, pn_message_t **ret_reply,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Did this event belong to it? */
bool request_delivery(struct amqp1_transport *t, pn_delivery_t *delivery);
bool request_closed(struct amqp1_transport *t, pn_link_t *link);
void request_end(struct amqp1_transport *t);

/* ---- cbs.c: Azure's tokens */
/* The address may be used with the token that it has, or a new one is put. */
int cbs_refresh(struct amqp1_transport *t, const char *address, outbox_time *token_ends,
		outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- message.c */
/* The message as it goes on the wire, in t->encoded; *ret_size bytes. EINVAL: REJECTED with that text. */
int amqp1_message(struct amqp1_transport *t, const struct outbox_item *item, size_t *ret_size,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Its address, in t->text, and what kind of place it is. */
int amqp1_address(struct amqp1_transport *t, const struct outbox_message *message,
		  enum amqp1_capability *ret_capability, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publish.c */
int amqp1_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err);

/* ---- settle.c: from outcomes to verdicts, and what the batch as a whole says of the target */
void amqp1_settle_delivery(struct amqp1_transport *t, pn_delivery_t *delivery);
/* What links that were closed mean for their messages. */
void amqp1_settle_links(struct amqp1_transport *t);
/* Message i was not sent, and why; its verdict may be taken back when it is the target's fault. */
void amqp1_settle_unsent(struct amqp1_transport *t, size_t i, const struct amqp1_condition *row,
			 const char *why);
/* No more outcomes: what is in flight is UNKNOWN. Returns how many. */
size_t amqp1_settle_in_flight(struct amqp1_transport *t, const char *why);
/* Verdicts of refusals that were the target's, not the messages', are taken back. */
int amqp1_settle_batch(struct amqp1_transport *t, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- verdict.c */
extern const struct amqp1_condition amqp1_conditions[];
extern const struct amqp1_condition amqp1_no_credit; /* a link that takes nothing */
const struct amqp1_condition *amqp1_condition_find(const char *name);
/* "amqp:not-found: No such queue; create it": what the other side said, cleaned, and the remedy. */
const struct amqp1_condition *amqp1_condition_read(pn_condition_t *condition, char *out, size_t size);

/* ---- check.c */
int amqp1_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

#endif
