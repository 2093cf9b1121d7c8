/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SETTLEMENT_H
#define CORE_SETTLEMENT_H

/*
 * What a settlement makes of a delivery: the table that every store keeps. Stores that settle in C call
 * these functions; one that settles in SQL is proved against the same cases
 * (tests/contract/settlement_cases.h).
 */

#include <outbox/store.h>

/* A detour, as far as settling reads or changes it. */
struct detour_state {
	int state, why; /* enum outbox_state; enum outbox_why, kept while it is being sent */
	int attempts;   /* failed tries */
	bool suspect;   /* must be claimed alone */
	outbox_time next_attempt_at; /* 0: none, since it is parked or finished */
	outbox_time failing_since;   /* of the settlement that first raised attempts; 0: none has */
	outbox_time ready_at;        /* since when it can be sent; 0: since its message could */
};

struct settlement_effect {
	bool covered;               /* the receipt says it all: no detour is written */
	struct detour_state detour; /* as it is from now on */
	const char *error;          /* NULL: the error that it has stays */
	bool settles; /* it counts in the receipt, which the detour names together with the owner */
	bool frees_key; /* whoever is first in its key now may be parked, and nobody else would wake it */
};

/* before: the detour that was being sent; NULL: straight from the log. EINVAL: an unknown outcome. */
int settlement_apply(const struct detour_state *before, const struct outbox_settlement *settlement,
		     outbox_time now, struct settlement_effect *ret_effect,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The tail of a claim that simply goes back to the log: how many of the n settlements, counted from
 * the end, are RETURNED log rows. All stores cut there, and nothing is applied to them. PARKED ones do
 * not count: a lone blocked row would be claimed again for ever.
 */
size_t settlement_returned_tail(const struct outbox_settlement *settled, const bool *from_log,
				size_t n);

/* What a receipt counts. */
struct settlement_counts {
	int64_t delivered, retried, failed, parked, deferred;
};

void settlement_count(struct settlement_counts *counts, int outcome);

/* All of them: messages that are not just returned. */
int64_t settlement_progress(const struct settlement_counts *counts);

#endif
