/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_WIRE_H
#define TRANSPORT_WIRE_H

/*
 * One connection of a driver that does its own I/O: bytes in and out, in TLS when asked for. The socket never blocks; who
 * waits does so in wire_wait(), up to a deadline.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/buf.h"
#include "transport/endpoint.h"

#include <stdbool.h>

#include <openssl/ssl.h>

struct wire {
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
	char shown[300]; /* "NATS host:port", "AMQP host:port", for people */
};

void wire_init(struct wire *wire, struct outbox_clock *clock);
/* Drops the connection at once. Legal at any time. */
void wire_close(struct wire *wire);
void wire_deinit(struct wire *wire);

/* title: "NATS", for people. */
int wire_connect(struct wire *wire, const char *title, const struct address *address,
		 outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* tls.c: from here on everything is sealed. EAUTH: the server is not who it should be, or we are not. */
int wire_start_tls(struct wire *wire, const struct endpoint *endpoint, const char *host,
		   outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OpenSSL's words for what failed. */
const char *tls_error(void);

/* Bytes that wait to be sent. */
size_t wire_unsent(const struct wire *wire);
/* Send what the socket takes now, and read what is there. What ends the connection is noted in `ended`. */
void wire_send(struct wire *wire);
void wire_receive(struct wire *wire);
/* Wait up to `wait` until one of both can be done, and do it. False: nothing happened. */
bool wire_wait(struct wire *wire, outbox_time wait);
/* Read the records that came; before the end of the handshake there are none. */
void wire_unseal(struct wire *wire);
/* It is over, and why; the first reason stays. */
void wire_end(struct wire *wire, int status, const char *why);

#endif
