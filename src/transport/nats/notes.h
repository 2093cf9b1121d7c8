/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_NOTES_H
#define NATS_NOTES_H

/*
 * What the library says in a thread of its own: errors that the server sent on its own account ("Permissions
 * Violation for Publish to ..."). Such a call may come late, when the connection has been dropped: the notes
 * live until the library has called notes_closed(), its last call for a connection.
 */

#include <nats/nats.h>

#include <stdbool.h>
#include <stddef.h>

struct notes;

struct notes *notes_new(void);
/* The driver lets go. NULL is legal; returns NULL. */
struct notes *notes_unref(struct notes *notes);

/* Make the library write into them: one more owner, until notes_closed(). */
natsStatus notes_attach(struct notes *notes, natsOptions *options);
/* No connection came of the options: the library will never call. */
void notes_detach(struct notes *notes);

/*
 * Wait for the library's last call for a connection that was closed: some microseconds, at most a tenth of a
 * second. Destroyed after it, a connection is nearly always freed here and now; before it, by the library's thread
 * some time later, when a program that ends may have taken OpenSSL down already, and crashes.
 */
void notes_await_closed(struct notes *notes);

/* Readable while there is something to take. */
int notes_fd(const struct notes *notes);
/* The oldest text, for free(); NULL: there is none. */
char *notes_take(struct notes *notes);

#endif
