/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_PUBLISH_H
#define CLIENT_PUBLISH_H

/* What publishing on any database has in common. */

#include <outbox/inbox.h>
#include <outbox/published.h>

#include <stdbool.h>

/* The application may know a shorter or longer struct than we do: its array has its own stride. */
struct outbox_message publish_message_at(const struct outbox_message *messages, size_t i);

/* The arguments of a call. known: the flags that this database understands. */
int publish_check(const void *connection, const struct outbox_message *messages, size_t n,
		  unsigned flags, unsigned known, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The arguments of a call that cancels a message. */
int cancel_check(const void *connection, const char *id, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* No transaction is open. */
int cancel_no_transaction(struct outbox_error *err);

/* The arguments of a call that accepts a message. */
int inbox_check(const void *connection, const char *consumer, const char *id, const bool *ret_first,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* No transaction is open. */
int inbox_no_transaction(struct outbox_error *err);

/* All of them, before the first is written. */
int publish_validate(const struct outbox_message *messages, size_t n,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* No transaction is open: fine only when the flags say so. */
int publish_check_autocommit(unsigned flags, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Put the number of the message before the error. One message alone needs none. Returns r. */
int publish_name_message(size_t n, size_t i, int r, struct outbox_error *err);

#endif
