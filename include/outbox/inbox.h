/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_INBOX_H
#define OUTBOX_INBOX_H

/*
 * The inbox: which messages a consumer has accepted, so that it processes each once. Accepting is in outbox/sqlite.h and
 * outbox/postgres.h, or in plain SQL; here is what people ask of it. docs/inbox.md explains it.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_CONSUMER_MAX 255       /* characters of a consumer's name; of an id: OUTBOX_ID_MAX */
#define OUTBOX_INBOX_COUNT_MAX 100001 /* where counting ends: there are more than one less */

/* Which rows; what is not given does not matter. */
struct outbox_inbox_filter {
	size_t struct_size;
	const char *consumer;
	outbox_time before; /* received before it */
	const char *cursor; /* of the page before */
	size_t limit;       /* 0: 100, at most 1,000; of a prune: 0: 5,000 */
};

#define OUTBOX_INBOX_FILTER_INIT OUTBOX_SIZED(struct outbox_inbox_filter)

struct outbox_inbox_row {
	const char *consumer, *id;
	outbox_time received_at;
};

/* The oldest first. */
struct outbox_inbox_page {
	size_t count;
	struct outbox_inbox_row *rows;
	const char *cursor; /* NULL: there are no more */
};

struct outbox_inbox_stats {
	bool there;         /* there is an inbox in this database */
	bool estimated;     /* rows is what the database believes */
	int64_t rows;       /* OUTBOX_INBOX_COUNT_MAX: that many or more */
	outbox_time oldest; /* received_at of the oldest row; 0: none */
	outbox_time store_now;
};

#ifdef __cplusplus
}
#endif

#endif
