/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAUTION_CASES_H
#define CAUTION_CASES_H

/*
 * Lives of a lane with a log of 20 messages, step by step: what a new owner finds and what may be claimed.
 * src/core/store_rules_test.c plays them with core/caution.h, store_contract_rules.c with every store.
 */

#include <stdbool.h>

/* What becomes of the claim in flight; then up to `max` are claimed, or, after DIE, the lane is taken over. */
enum caution_step_kind { STEP_END, DELIVER, RETURN, WAIT, SUSPICION, DIE };

struct caution_step {
	enum caution_step_kind kind; /* WAIT: all are detours now, due at once; SUSPICION: and suspects */
	int max;
	/* what follows; n: claimed, or the take-overs in a row; suspect: its place in the log from 1, or 0 */
	int n;
	bool cautious;
	int suspect;
};

struct caution_case {
	const char *name;
	struct caution_step steps[16];
};

#define CLAIM(max, n, cautious)              \
	{                                    \
		DELIVER, max, n, cautious, 0 \
	}
#define RETURNED(max, n, cautious)          \
	{                                   \
		RETURN, max, n, cautious, 0 \
	}
#define WAITING(max, n, cautious)         \
	{                                 \
		WAIT, max, n, cautious, 0 \
	}
#define SUSPECTED(max, n, cautious)            \
	{                                      \
		SUSPICION, max, n, cautious, 0 \
	}
#define DEAD(takeovers, cautious, suspect)           \
	{                                            \
		DIE, 0, takeovers, cautious, suspect \
	}

/* clang-format off */
static const struct caution_case caution_table[] = {
	{ "nothing in flight is no take-over", { DEAD(0, false, 0), CLAIM(2, 2, false), CLAIM(0, 0, false), DEAD(0, false, 0) } },
	{ "once is bad luck, alone or not", { CLAIM(1, 1, false), DEAD(1, false, 0), CLAIM(5, 5, false), CLAIM(3, 3, false),
		DEAD(1, false, 0) } },
	{ "twice in a row is not", { CLAIM(3, 3, false), DEAD(1, false, 0), CLAIM(3, 3, false), DEAD(2, true, 0),
		CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 9, false) } },
	{ "who is alone then is the suspect", { CLAIM(3, 3, false), DEAD(1, false, 0), CLAIM(3, 3, false), DEAD(2, true, 0),
		CLAIM(3, 1, true), DEAD(3, true, 1), CLAIM(3, 1, true), CLAIM(3, 1, true), DEAD(1, true, 2) } },
	{ "to return settles nothing", { CLAIM(2, 2, false), DEAD(1, false, 0), CLAIM(2, 2, false), RETURNED(2, 2, false),
		DEAD(2, true, 0) } },
	{ "nor does it end caution", { CLAIM(2, 2, false), DEAD(1, false, 0), CLAIM(2, 2, false), DEAD(2, true, 0),
		CLAIM(5, 1, true), RETURNED(5, 1, true), DEAD(3, true, 1) } },
	{ "caution outlives a death of nobody", { CLAIM(2, 2, false), DEAD(1, false, 0), CLAIM(2, 2, false), DEAD(2, true, 0),
		CLAIM(5, 1, true), CLAIM(0, 0, true), DEAD(0, true, 0), CLAIM(5, 1, true), CLAIM(5, 5, false) } },
	{ "the longer claim counts", { CLAIM(2, 2, false), DEAD(1, false, 0), CLAIM(4, 4, false), DEAD(2, true, 0),
		CLAIM(9, 1, true), DEAD(3, true, 1), CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 1, true),
		CLAIM(9, 9, false) } },
	{ "detours are counted", { CLAIM(3, 3, false), WAITING(3, 3, false), DEAD(1, false, 0), CLAIM(3, 3, false),
		DEAD(2, true, 0), CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 1, true), CLAIM(9, 9, false) } },
	{ "a suspect needs no caution", { CLAIM(1, 1, false), SUSPECTED(5, 1, false), DEAD(1, false, 1),
		CLAIM(5, 1, false), CLAIM(5, 5, false) } },
	{ "a settled one may be a detour", { CLAIM(2, 2, false), DEAD(1, false, 0), CLAIM(2, 2, false), DEAD(2, true, 0),
		CLAIM(5, 1, true), WAITING(5, 1, true), CLAIM(5, 1, true), CLAIM(5, 5, false) } },
};
/* clang-format on */

#endif
