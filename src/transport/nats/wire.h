/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_NATS_WIRE_H
#define TRANSPORT_NATS_WIRE_H

/*
 * One connection to a NATS server: bytes in and out, in TLS when asked for, and the frames of the client protocol. The
 * socket never blocks; who waits does so in nats_wire_wait().
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/buf.h"
#include "transport/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

#include <openssl/ssl.h>

struct nats_wire {
	int fd;   /* -1: not connected */
	SSL *tls; /* NULL: none. It reads from memory and writes to memory; the socket is ours */
	bool secured; /* the handshake is over */
	struct outbox_clock *clock;
	struct buf out; /* what is to be sent; in TLS before it is sealed */
	struct buf sealed;
	size_t sent;   /* bytes of out, or of sealed, that are gone */
	struct buf in; /* what came; the first `taken` bytes are used */
	size_t taken;
	bool ended; /* by the server, or by what it said */
	int status; /* why: ECONN, EAUTH, EPROTO */
	char why[300];
	char shown[300]; /* "NATS host:port", for people */
};

enum nats_frame_kind { FRAME_INFO, FRAME_MESSAGE, FRAME_PING, FRAME_PONG, FRAME_OK, FRAME_ERROR };

/* What the server said. Texts lie in the wire's memory until the next nats_wire_receive(). */
struct nats_frame {
	enum nats_frame_kind kind;
	const char *text; /* of INFO its JSON, of an error its words, of a message its subject */
	uint64_t sid;     /* the rest: of a message */
	int status;       /* 503: nobody listens; 0: an ordinary message */
	const char *data;
	size_t size;
};

void nats_wire_init(struct nats_wire *wire, struct outbox_clock *clock);
/* Drops the connection at once. Legal at any time. */
void nats_wire_close(struct nats_wire *wire);
void nats_wire_deinit(struct nats_wire *wire);

int nats_wire_connect(struct nats_wire *wire, const struct address *address, outbox_time deadline,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* tls.c: from here on everything is sealed. EAUTH: the server is not who it should be, or we are not. */
int nats_wire_start_tls(struct nats_wire *wire, const struct endpoint *endpoint, const char *host,
			outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OpenSSL's words for what failed. */
const char *nats_tls_error(void);

/* Bytes that wait to be sent. */
size_t nats_wire_unsent(const struct nats_wire *wire);
/* Send what the socket takes now, and read what is there. What ends the connection is noted in `ended`. */
void nats_wire_send(struct nats_wire *wire);
void nats_wire_receive(struct nats_wire *wire);
/* Wait up to `wait` until one of both can be done, and do it. False: nothing happened. */
bool nats_wire_wait(struct nats_wire *wire, outbox_time wait);
/* Read the records that came; before the end of the handshake there are none. */
void nats_wire_unseal(struct nats_wire *wire);
/* It is over, and why; the first reason stays. */
void nats_wire_end(struct nats_wire *wire, int status, const char *why);

/* The next frame, if it is there. What is none ends the connection. */
bool nats_wire_next(struct nats_wire *wire, struct nats_frame *ret_frame);

#endif
