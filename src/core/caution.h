/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CAUTION_H
#define CORE_CAUTION_H

/*
 * What the new owner of a lane must suspect.
 *
 * An owner that dies with messages in flight may have died of one of them. The first time is taken as
 * bad luck. The second time in a row, with nothing settled in between, the lane becomes cautious: one
 * message a claim, until as many messages as were in flight are settled and the position has passed the
 * last of them that came straight from the log. Detours have no place ahead of the position, which is
 * why they are counted. Whoever dies of a message in that mode leaves it alone in flight: the suspect.
 *
 * Every receipt of a lane carries this on. The cases are in tests/contract/caution_cases.h.
 */

#include <stdbool.h>
#include <stdint.h>

struct caution {
	int64_t takeovers; /* in a row, each with messages in flight, nothing settled in between */
	int64_t end;       /* cautious while the position is before this one; 0: none */
	int64_t left;      /* cautious until so many messages are settled */
	int64_t suspect_seq; /* it was alone in flight when the last owner died; 0: none */
};

/* A claim that its owner left in flight. */
struct caution_claim {
	int64_t count, detours; /* messages; how many of them are detours */
	int64_t first, last;    /* seq */
	bool first_is_suspect;  /* it was a suspect before */
};

/* Does a lane at this position claim one message at a time? */
bool caution_applies(const struct caution *caution, int64_t pos);

/* Somebody takes the lane over. last, pos: those of the last receipt; claim: its claim, of count 0 for none. */
struct caution caution_take_over(const struct caution *last, int64_t pos,
				 const struct caution_claim *claim);

/* The owner settles its claim. progress: messages that are not just returned; pos: the position behind it. */
struct caution caution_settle(const struct caution *last, int64_t pos, int64_t progress);

#endif
