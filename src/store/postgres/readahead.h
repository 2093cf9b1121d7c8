/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_READAHEAD_H
#define STORE_POSTGRES_READAHEAD_H

/*
 * Reading ahead. While a claim is being sent, the server reads what comes behind it in the log; the next
 * settle_and_claim() then only says which rows it has, and claims them without their being read once more.
 */

#include "store/postgres/db.h"

/* One lane's. prefetch first: it is what db.c knows. */
struct pg_readahead {
	struct pg_prefetch prefetch;
	char target[OUTBOX_TARGET_NAME_MAX + 1];
	int64_t n, fence_token; /* the receipt behind whose claim the rows were read */
	size_t max;             /* how many that claim might have had */
	int64_t route_version;
	int rest;   /* skip this many more claims: the last rows were too large, or not claimed */
	bool keyed; /* the lane has detours: its next claim is told the keys of these rows */
	bool asked; /* right after this call */
	bool full;  /* the last claim was as large as it might be: there is more behind it */
	PGresult *rows; /* the columns of MESSAGE_COLUMNS; NULL: none */
	int count;      /* how many of them may be used */
	size_t bytes;   /* their payloads */
};

/* That of the lane; NULL: none, do without. */
struct pg_readahead *pg_readahead_of(struct pg_store *s, int lane);
/* How many rows it has for this request; 0: none that fit. */
int pg_readahead_count(const struct pg_readahead *ahead,
		       const struct outbox_settle_and_claim *request);
/* Have the rows behind this request's claim read. NULL: not worth it, or no memory. */
struct pg_prefetch *pg_readahead_ask(struct pg_readahead *ahead,
				     const struct outbox_settle_and_claim *request);
/* The store claimed other rows: because it was not told their keys, or in spite of that. */
void pg_readahead_in_vain(struct pg_readahead *ahead);
/* The request is over; claim NULL: it failed, and what was read is forgotten. */
void pg_readahead_done(struct pg_readahead *ahead, const struct outbox_settle_and_claim *request,
		       const struct outbox_claim *claim);
void pg_readahead_free(struct pg_store *s);

#endif
