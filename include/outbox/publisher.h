/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_PUBLISHER_H
#define OUTBOX_PUBLISHER_H

/*
 * A publisher on a database connection that you own: its statement is prepared once and used for every message.
 * outbox_publisher_new_sqlite() (outbox/sqlite.h) and outbox_publisher_new_pg() (outbox/postgres.h) make one.
 */

#include <outbox/error.h>
#include <outbox/message.h>
#include <outbox/published.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_publisher;

/*
 * Append one message inside the transaction that is open on the publisher's connection, as outbox_publish_sqlite() and
 * outbox_publish_pg() do. ret_published may be NULL. A transaction that is rolled back, and a schema that is changed,
 * leave the publisher as it is. EINVAL: the connection was closed; only outbox_publisher_free() is of use then.
 */
int outbox_publisher_publish(struct outbox_publisher *publisher,
			     const struct outbox_message *message,
			     struct outbox_published *ret_published,
			     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* All or none of n messages, in order. ret_published may be NULL, else n entries. The error names the message at fault. */
int outbox_publisher_publish_batch(struct outbox_publisher *publisher,
				   const struct outbox_message *messages, size_t n,
				   struct outbox_published *ret_published,
				   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* With OUTBOX_PIPELINE: read the answers to what was sent, and leave pipeline mode. Otherwise nothing is to be done. */
int outbox_publisher_flush(struct outbox_publisher *publisher,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Also after the connection was closed. NULL is nothing. */
void outbox_publisher_free(struct outbox_publisher *publisher);

#ifdef __cplusplus
}
#endif

#endif
