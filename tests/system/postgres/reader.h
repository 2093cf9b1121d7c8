/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_POSTGRES_READER_H
#define TESTS_POSTGRES_READER_H

/*
 * Readers of the log on the store's own ops, without a relay: owners that die, that are robbed of their
 * lane in the middle of a window, that ask twice, and that never behave better than they must.
 */

#include <outbox/store.h>

#include <pthread.h>
#include <stdio.h>

#include "base/random.h"

#define OWNER_ITEMS_MAX 1000
#define OWNER_ARENA ((size_t)256 << 20)

/* What all owners of the program share. */
struct stage {
	const char *url;
	uint64_t seed;
	bool calm;            /* nobody dies, nobody robs; chunks of one size */
	bool reconnect;       /* connections fail, and that is all right */
	size_t chunk, bytes;  /* when calm */
	FILE *log;            /* what arrived, in order of arrival */
	pthread_mutex_t lock; /* for what follows, and the log */
	bool quiet;           /* no more trouble */
	bool draining;        /* nothing will be published any more */
	int problems;
	long delivered, abandoned, takes, fenced, repeated, joined, idle;
};

/* One that works on a lane. Several may be after the same one. Two of one target share a thread, so that they can ask together. */
struct owner {
	struct stage *stage;
	const char *target;
	int lane, number;
	struct owner *partner; /* of a higher lane; NULL: alone, or it is the partner */
	int64_t version;       /* of the routing */
	struct random_state random;
	struct outbox_store *store;
	struct outbox_arena *arena, *arena_again;
	struct outbox_head head;
	struct outbox_claim claim;
	size_t max, max_bytes; /* that the claim was asked with */
	struct outbox_settle_and_claim request;
	bool active; /* the last step found or wrote something */
	bool done;
	int looks; /* in a row that said that there is no work, since nothing is published any more */
	char name[64];
	bool shares;       /* the thread of another, whose partner it is */
	bool robber;       /* not the lane's first owner: leaves at the end, as it is */
	bool lost, robbed; /* of the lane: take it again */
	bool sent[OWNER_ITEMS_MAX];
	struct outbox_settlement settled[OWNER_ITEMS_MAX];
	pthread_t thread;
};

/* Opens the store; registers nothing. Ends the program when it cannot. */
void owner_init(struct owner *owner, struct stage *stage, const char *target, int lane, int number);
void owner_deinit(struct owner *owner);

/* Work until the stage drains and the lane, and the partner's, are empty. */
void *owner_run(void *owner);

/* A finding. It is printed, and the program ends with 1 in the end. */
void stage_problem(struct stage *stage, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Reads both, in one look. */
void stage_look(struct stage *stage, bool *ret_quiet, bool *ret_draining);

#endif
