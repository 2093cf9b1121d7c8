/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_SOCKET_H
#define TRANSPORT_SOCKET_H

/* Sockets of drivers that do their own I/O: non-blocking, every wait up to a deadline. */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "transport/endpoint.h"

#include <netdb.h>

/*
 * Connect to the address: each that its name has, with its share of the time. who: "redis host:port", for people.
 * ECONN with the system's error number as native, ETIMEDOUT.
 */
int socket_connect(const struct address *address, const char *who, struct outbox_clock *clock,
		   outbox_time deadline, int *ret_fd, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The same for a library that makes its own socket: call attempt for each address that the name has, until one
 * works, each with its share of the time.
 */
typedef int socket_attempt(void *context, const struct addrinfo *info, outbox_time until,
			   struct outbox_error *err);
int socket_try(const struct address *address, const char *who, struct outbox_clock *clock,
	       outbox_time deadline, socket_attempt *attempt, void *context,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* A connect() is under way on the socket, which does not block: wait for its end. ECONN, ETIMEDOUT. */
int socket_await_connection(int fd, const char *who, struct outbox_clock *clock,
			    outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The kernel finds out by itself when the other end vanished, also when there is nothing to say. */
void socket_keep_alive(int fd);

/* poll() for these events until the deadline. 0: nothing in that time, whatever the clock says. -1: errno. */
int socket_wait(int fd, short events, struct outbox_clock *clock, outbox_time deadline,
		short *ret_events);

#endif
