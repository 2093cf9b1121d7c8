/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_CASES_H
#define TORTURE_CASES_H

/* One call of the store or the client, from a database that its preparation made. */

#include "world.h"

#define CASE_CLOSED 1u /* no store is open: the call or before() opens what it needs */
#define CASE_AGAIN 2u  /* done twice is done once, with the same answer */
#define CASE_DDL 4u    /* without memory SQLite cannot even roll back: the next call does it */
#define CASE_SHORT 8u  /* short of memory, it may give fewer rows than asked for */

struct store_case {
	const char *name;
	void (*prepare)(struct world *w); /* once, on an empty database; NULL: none is there */
	void (*before)(struct world *w);  /* in each run, before the faults; may be NULL */
	int (*call)(struct world *w, struct outbox_error *err);
	unsigned flags;
	long memory_min, io_min;
};

/* Each ends with { NULL }. */
extern const struct store_case lane_cases[];
extern const struct store_case operator_cases[];
extern const struct store_case schema_cases[];
extern const struct store_case client_cases[];

/* Preparations, each with those before it: schema; target and log; lane taken; a claim in flight; one of
 * each outcome settled. */
void prepare_schema(struct world *w);
void prepare_log(struct world *w);
void prepare_taken(struct world *w);
void prepare_claim(struct world *w);
void prepare_trouble(struct world *w);

/* Settle the claim that w knows, each message with another outcome, and claim up to max more. */
int settle_each(struct world *w, size_t max, struct outbox_claim *ret_claim,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

void must(int r, const struct outbox_error *err, const char *what);

#endif
