/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_PURGE_CANDIDATES_H
#define STORE_SQLITE_PURGE_CANDIDATES_H

/* Which messages are past their retention. */

#include "store/sqlite/delivery.h"

struct purge_candidate {
	int64_t seq;
	bool failed; /* has a failed delivery */
};

/* A delivery past its retention whose message must stay for another target's sake. */
struct survivor {
	const struct target_info *target;
	int64_t seq;
	int lane;
	outbox_time settled_at;
	const char *owner; /* from the targets' arena */
};

struct purge_candidates {
	struct targets *targets;
	const struct outbox_purge *purge;
	int64_t after_seq; /* look behind this one */
	size_t limit;
	bool note_survivors;
	/* ---- the result */
	struct purge_candidate *list; /* ascending seq */
	size_t count, capacity;
	struct survivor *survivors;
	size_t n_survivors, survivor_capacity;
	bool more;        /* there are others */
	int64_t seen_seq; /* everything up to here was looked at; 0: all of it */
};

/* The first fields must be set, the others zero. */
int purge_candidates_find(struct purge_candidates *v, struct outbox_error *err) OUTBOX_MUSTCHECK;
void purge_candidates_deinit(struct purge_candidates *v);

#endif
