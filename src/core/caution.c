/* SPDX-License-Identifier: Apache-2.0 */
#include "core/caution.h"

#define CAUTIOUS_FROM 2

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

bool caution_applies(const struct caution *caution, int64_t pos)
{
	return caution->left > 0 || pos < caution->end;
}

struct caution caution_take_over(const struct caution *last, int64_t pos,
				 const struct caution_claim *claim)
{
	struct caution next = { .end = last->end, .left = last->left };

	if (!claim->count)
		return next;
	next.takeovers = last->takeovers + 1;
	if (next.takeovers >= CAUTIOUS_FROM) {
		next.left = larger(last->left, claim->count);
		if (claim->count > claim->detours)
			next.end = larger(last->end, claim->last);
	}
	if (claim->count == 1 && (caution_applies(last, pos) || claim->first_is_suspect))
		next.suspect_seq = claim->first;
	return next;
}

struct caution caution_settle(const struct caution *last, int64_t pos, int64_t progress)
{
	struct caution next = {
		.takeovers = progress ? 0 : last->takeovers,
		.end = last->end,
		.left = larger(last->left - progress, 0),
	};

	if (!caution_applies(&next, pos))
		next.end = 0;
	return next;
}
