/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/lane.h"

/*
 * The rate is asked before a claim, never within one. Taken in advance, given back when there was less to claim: a
 * worker that idles must not keep others from it.
 */
size_t lane_take_tokens(struct worker *w, struct lane *lane, size_t want, outbox_time now)
{
	size_t may = want;

	if (want)
		may = throttle_take(w->target->throttle, w->target->rank, want, now,
				    &lane->tokens_at);
	lane->throttled = want && !may;
	return may;
}

/* What is parked at once is not sent. */
void lane_use_tokens(struct worker *w, const struct outbox_claim *claim, size_t taken,
		     outbox_time now)
{
	size_t used = 0;

	if (!taken && !claim->count)
		return;
	for (size_t i = 0; i < claim->count; i++)
		used += !claim->items[i].blocked;
	throttle_used(w->target->throttle, w->target->rank, taken, used, now);
}
