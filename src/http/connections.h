/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

/*
 * Who is connected, in which phase, since when. Each phase has its deadline, whatever trickles in meanwhile. When
 * all places are taken, or all that one address may have, a newcomer gets the place of the one that has been
 * idle or slow for longest: so slow clients crowd out each other and not those who ask and listen.
 */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 64
#define CONNECTIONS_PER_ADDRESS 32
#define ADDRESS_KEY 16

enum phase {
	PHASE_IDLE = 1, /* between two requests */
	PHASE_HEADERS,
	PHASE_BODY,
	PHASE_SENDING,
	PHASE_STREAM, /* an answer without an end; from here on they are not given up */
	PHASE_WORKING /* with a handler */
};

struct connection {
	int fd; /* -1: a free place */
	enum phase phase;
	outbox_time since; /* mono: when the phase began */
	int requests;
	bool dropped; /* shut down, not gone yet */
	char address[64];
	unsigned char key[ADDRESS_KEY]; /* what counts as one address */
};

struct connections {
	struct connection items[CONNECTIONS_MAX];
	size_t count;
};

void connections_init(struct connections *connections);

/* A place for a new connection, somebody else's if need be; NULL: all are busy, refuse it. */
struct connection *connections_add(struct connections *connections, int fd,
				   const struct sockaddr *address, outbox_time now);
struct connection *connections_find(struct connections *connections, int fd);
void connections_remove(struct connections *connections, struct connection *connection);

void connection_enter(struct connection *connection, enum phase phase, outbox_time now);

/* End those that are past their phase's deadline. */
void connections_reap(struct connections *connections, outbox_time now);

#endif
