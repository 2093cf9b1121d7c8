/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_ARCHIVER_H
#define RELAY_ARCHIVER_H

/*
 * Retention that archives what it removes: read what may go into a file, make that durable, remove exactly what is in
 * it. A crash in between archives twice and loses nothing. One page is read or one call made at a time, so that
 * deliveries go on meanwhile.
 */

#include <outbox/clock.h>
#include <outbox/store.h>

struct archiver;

/* folder outlives it. */
int archiver_new(const char *folder, struct outbox_clock *clock, struct archiver **ret_archiver,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
struct archiver *archiver_free(struct archiver *archiver);

/*
 * One step of a round: the same times until it is done, which is when ret->more is false. ret_ours: what failed was
 * the archive, not the store. A round that failed begins anew, with what was archived and not removed.
 */
int archiver_step(struct archiver *archiver, struct outbox_store *store,
		  const struct outbox_purge *purge, struct outbox_purged *ret_purged,
		  bool *ret_ours, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
