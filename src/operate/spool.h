/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_SPOOL_H
#define OPERATE_SPOOL_H

/*
 * Where a replay stands: a small outbox of its own, a SQLite file, that holds the messages which were read and
 * not yet delivered, and beside it a file that says how far was read. Both together survive any crash.
 */

#include <outbox/store.h>

struct spool {
	char *path; /* of the SQLite file */
	char *note; /* of the file beside it */
	char *url;
	struct outbox_store *store;
	int lock; /* two replays must not share one */
	/* what is noted */
	char *what;        /* which replay this is: from where, to where, which messages */
	outbox_time began; /* the first run; goes with each message */
	int64_t position;  /* of the replay source, read and in the store */
	int64_t count;     /* messages read that were wanted */
	bool resumed;
};

/* Make one or go on with it. ECONFLICT: what is there belongs to another replay. There will be payloads in its files:
 * the caller's umask says who may read them. */
int spool_open(const char *path, const char *what, struct outbox_clock *clock,
	       struct outbox_random *random, struct spool **ret_spool,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write position and count down; they are on the disk when it returns. */
int spool_note(const struct spool *spool, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Remove the messages that were delivered: they are of no use any more. */
int spool_clean(const struct spool *spool, outbox_time now,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* All is done: remove both files. */
void spool_remove(struct spool *spool);
struct spool *spool_close(struct spool *spool);

#endif
