/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_PUBLISHED_H
#define OUTBOX_PUBLISHED_H

/* What publishing on any database has in common. */

#include <outbox/message.h>

#include <stdint.h>

/* The result for one published message. */
struct outbox_published {
	int64_t seq;
	int repeated; /* not 0: this id was already in the log; nothing was written */
	char id[OUTBOX_ID_MAX * 4 + 1];
};

/* Publish although no transaction is open: then the message and your rows are not atomic. */
#define OUTBOX_ALLOW_AUTOCOMMIT 1u

#endif
