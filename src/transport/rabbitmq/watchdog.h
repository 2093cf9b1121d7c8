/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_RABBITMQ_WATCHDOG_H
#define TRANSPORT_RABBITMQ_WATCHDOG_H

/*
 * A thread beside a connection, for the two things that the library cannot do. It writes without a time limit:
 * while the driver is at work, the watchdog shuts the socket down when the deadline passes, and the blocked
 * call returns. And it sends heartbeats only while it is called: between two batches the watchdog does.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/wait.h"

#include <stdbool.h>

#include <amqp.h>

struct rabbit_watchdog {
	pthread_t thread;
	struct waiting waiting; /* guards all below, and the connection while not armed */
	bool running, ending;
	bool armed, fired;
	/* Times of the system's clock, since sockets wait in no other. */
	outbox_time until;    /* armed, the deadline */
	outbox_time wakes_at; /* when the thread looks next by itself */
	outbox_time beat_at;  /* the next heartbeat while idle */
	outbox_time beat;     /* between two; 0: none */
	int fd;               /* a duplicate: the library may close its own */
	amqp_connection_state_t connection;
};

/* For a connection whose socket is open; not armed. */
int rabbit_watchdog_start(struct rabbit_watchdog *watchdog, amqp_connection_state_t connection,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Seconds between two heartbeats from now on; 0: none. Only while armed. */
void rabbit_watchdog_beat(struct rabbit_watchdog *watchdog, int seconds);
/* Work begins: it must end within this time. Until disarmed the connection is the caller's alone. */
void rabbit_watchdog_arm(struct rabbit_watchdog *watchdog, outbox_time left);
/* Work ended. True: too late, the socket was shut down. */
bool rabbit_watchdog_disarm(struct rabbit_watchdog *watchdog);
/* End the thread; legal when it does not run. */
void rabbit_watchdog_stop(struct rabbit_watchdog *watchdog);

#endif
