/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_MQTT_DRIVER_H
#define TRANSPORT_MQTT_DRIVER_H

/* Shared by the files of the MQTT driver. mqtt.c says how they work together. */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/broker.h"
#include "transport/template.h"

#include <stdbool.h>
#include <stdint.h>

#include <mosquitto.h>
#include <openssl/ssl.h>

#define MQTT_WINDOW_MAX 1000  /* messages on their way, however many more the broker would take */
#define MQTT_STRING_MAX 65535 /* MQTT's strings: topics, names and values of properties */
#define MQTT_PACKET_MAX 268435460u /* what four bytes of length and the header allow */
#define MQTT_REFUSED 0x80          /* reason codes below say success */

/* What the broker said of itself and of this connection. Callbacks write it, so it is reset with the client. */
struct mqtt_link {
	bool answered;     /* CONNACK came */
	int connack;       /* its reason code, as MQTT 5 has them */
	char server[120];  /* the server that it names instead of itself; "": none */
	uint16_t window;   /* the most messages on their way */
	uint32_t size_max; /* bytes of a packet; 0: no limit */
	uint8_t qos_max;
	bool retains;
	bool ended;              /* the connection is gone */
	int ended_code;          /* of the broker's DISCONNECT; 0: it said nothing */
	unsigned long tls_error; /* OpenSSL's last one; 0: none */
	int verify_error;        /* why the certificate was refused; X509_V_OK: it was not */
};

/* What check() asked for. */
struct mqtt_answer {
	int subscribed;   /* SUBACKs that came */
	int code;         /* of the last one */
	char version[80]; /* $SYS/broker/version; "": it did not come */
};

struct mqtt_transport {
	struct broker broker;
	/* ---- from the URL */
	struct template topic;
	bool constant; /* one topic for all messages */
	bool dollar;   /* the template itself begins with $ */
	bool v5;       /* else 3.1.1, which has no reason codes and no properties */
	bool retain;
	int qos;
	int64_t keepalive; /* seconds, 0: none */
	char *client_id;   /* NULL: another one for each connection */
	/* ---- scratch, one message at a time */
	struct buf text; /* its topic */
	/* ---- the connection */
	struct mosquitto *client; /* NULL: none */
	const char *host;         /* whom it is to reach, as the URL says */
	struct mqtt_link link;
	struct mqtt_answer answer;
	char shown[330]; /* "mqtt host:port", the address in use */
	/* ---- the batch */
	struct outbox_batch *batch;
	uint32_t *waiting; /* by packet identifier: place in the batch + 1; 0: none waits for an answer */
	size_t open;       /* how many do */
	uint16_t last_id;            /* packet identifier */
	struct outbox_error refusal; /* of the only topic: nothing more is sent */
};

static inline struct mqtt_transport *mqtt_downcast(struct outbox_transport *transport)
{
	return (struct mqtt_transport *)transport; /* broker is the first member */
}

/* ---- options.c: everything that the URL says */
#define MQTT_OPTIONS "qos, retain, version, client_id, keepalive, " ENDPOINT_OPTIONS
int mqtt_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- client.c: the library's object, and what it does to the rest of the process */
/* A new client for this host, not connected; t->client. */
int mqtt_client_new(struct mqtt_transport *t, const char *host,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* End the connection and forget everything that was to be sent. */
void mqtt_client_drop(struct mqtt_transport *t);
/*
 * Read and write what can be, waiting until the deadline for something to do; wait false: not at all. ETIMEDOUT: nothing
 * came (only with wait). Other failures: the connection is gone, and why.
 */
int mqtt_client_turn(struct mqtt_transport *t, bool wait, outbox_time deadline,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Fail with what ended the connection: the broker's DISCONNECT, TLS, or the library's status. */
int mqtt_client_fail(struct mqtt_transport *t, int status, struct outbox_error *err);

/* ---- tls.c */
/* What the library is to use for TLS with t->host. */
int mqtt_tls_context(struct mqtt_transport *t, SSL_CTX **ret_context,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Did the connection end by TLS? Then fail with the reason; OK: it did not. */
int mqtt_tls_fail(const struct mqtt_transport *t, struct outbox_error *err);
/* The TCP connection is there: finish the handshake. */
int mqtt_tls_handshake(struct mqtt_transport *t, outbox_time deadline,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- connect.c */
int mqtt_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err);
void mqtt_disconnect(struct outbox_transport *transport);

/* ---- message.c */
struct mqtt_message {
	const char *topic;
	const void *body;
	size_t size;
	mosquitto_property *properties; /* the caller's to free */
};

/* Is this a topic to publish to? NULL, or what is wrong with it. */
const char *mqtt_topic_fault(const char *topic, size_t size);
/* The message's topic in t->text. EINVAL: REJECTED with that text. */
int mqtt_topic(struct mqtt_transport *t, const struct outbox_message *message,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Everything that goes on the wire. EINVAL: REJECTED with that text. Valid until the next call. */
int mqtt_message(struct mqtt_transport *t, const struct outbox_item *item,
		 struct mqtt_message *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publish.c */
int mqtt_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err);
/* The broker's answer to a message. */
void mqtt_settle(struct mqtt_transport *t, int id, int code, const mosquitto_property *properties);

/* ---- check.c */
int mqtt_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size);

/* ---- verdict.c: the one table from MQTT's reason codes to ours */
struct mqtt_code {
	int code;
	const char *name; /* as the specification has it */
	int verdict;      /* of a message that is answered with it */
	int place; /* with one topic for all messages: the outage that it is; 0: it stays the message's */
	int status;         /* of a connection that is refused or ended with it */
	const char *remedy; /* for people; NULL: none */
};

extern const struct mqtt_code mqtt_codes[]; /* ends with code -1, which stands for all others */
const struct mqtt_code *mqtt_code_find(int code);
/* "Not authorized (0x87)" and its remedy, for people. */
const char *mqtt_code_text(const struct mqtt_code *row, int code, char *out, size_t size);

#endif
