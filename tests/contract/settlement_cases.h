/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SETTLEMENT_CASES_H
#define SETTLEMENT_CASES_H

/*
 * The settlement table, outcome by outcome: what becomes of a delivery. src/core/store_rules_test.c applies
 * core/settlement.h to it, store_contract_rules.c has every store settle it.
 *
 * A delivery that comes as a detour became one (`first`) a minute before it is settled (`given`). Times
 * are seconds before or after that settlement; NONE: there is none.
 */

#include <outbox/store.h>

#define NONE (-1000)
#define FIRST_AT (-60)
#define NOW 0

struct settlement_case {
	const char *name;
	struct {
		int outcome; /* enum outbox_outcome; 0 in first: it comes straight from the log */
		int attempts, delay, due;
		bool suspect;
		const char *error;
	} first, given;
	struct {
		int state, why, attempts, next_attempt, failing_since, ready;
		const char *error; /* NULL: none */
		bool suspect;
		bool covered, settles, frees_key;
	} then;
};

#define GIVE(...)           \
	{                   \
		__VA_ARGS__ \
	}
#define CHARGED                                              \
	{                                                    \
		OUTBOX_OUT_WAITING, 1, 60, 0, false, "first" \
	}
#define SUSPECT                                            \
	{                                                  \
		OUTBOX_OUT_WAITING, 0, 60, 0, true, "lost" \
	}
#define POSTPONED                                           \
	{                                                   \
		OUTBOX_OUT_DEFERRED, 0, 0, -30, false, NULL \
	}
#define HELD                                            \
	{                                               \
		OUTBOX_OUT_PARKED, 0, 0, 0, false, NULL \
	}

/* clang-format off */
static const struct settlement_case settlement_cases[] = {
	/* straight from the log: only trouble gets a row */
	{ "log, delivered", GIVE(0), GIVE(OUTBOX_OUT_DELIVERED),
	  { OUTBOX_DELIVERED, 0, 0, NONE, NONE, NONE, NULL, false, true, true, false } },
	{ "log, returned before others", GIVE(0), GIVE(OUTBOX_OUT_RETURNED, 7, 9, 9, true, "ignored"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 0, NOW, NONE, NONE, NULL, false, false, false, false } },
	{ "log, refused", GIVE(0), GIVE(OUTBOX_OUT_WAITING, 1, 10, 0, false, "busy"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, 10, NOW, NONE, "busy", false, false, true, false } },
	{ "log, suspected", GIVE(0), GIVE(OUTBOX_OUT_WAITING, 0, 10, 0, true, "lost"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 0, 10, NONE, NONE, "lost", true, false, true, false } },
	{ "log, not due", GIVE(0), GIVE(OUTBOX_OUT_DEFERRED, 0, 0, 30),
	  { OUTBOX_PENDING, OUTBOX_DEFERRED, 0, 30, NONE, 30, NULL, false, false, true, false } },
	{ "log, parked", GIVE(0), GIVE(OUTBOX_OUT_PARKED),
	  { OUTBOX_PENDING, OUTBOX_PARKED, 0, NONE, NONE, NONE, NULL, false, false, true, true } },
	{ "log, failed", GIVE(0), GIVE(OUTBOX_OUT_FAILED, 1, 0, 0, false, "no"),
	  { OUTBOX_FAILED, 0, 1, NONE, NOW, NONE, "no", false, false, true, false } },

	/* tried before */
	{ "retry, delivered", CHARGED, GIVE(OUTBOX_OUT_DELIVERED),
	  { OUTBOX_DELIVERED, 0, 1, NONE, FIRST_AT, NONE, "first", false, false, true, true } },
	{ "retry, returned", CHARGED, GIVE(OUTBOX_OUT_RETURNED),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, NOW, FIRST_AT, NONE, "first", false, false, false, false } },
	{ "retry, refused again", CHARGED, GIVE(OUTBOX_OUT_WAITING, 2, 10, 0, false, "second"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 2, 10, FIRST_AT, NONE, "second", false, false, true, false } },
	{ "retry, refused without a word", CHARGED, GIVE(OUTBOX_OUT_WAITING, 2, 10),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 2, 10, FIRST_AT, NONE, "first", false, false, true, false } },
	{ "retry, suspected", CHARGED, GIVE(OUTBOX_OUT_WAITING, 1, 10, 0, true),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, 10, FIRST_AT, NONE, "first", true, false, true, false } },
	{ "retry, deferred", CHARGED, GIVE(OUTBOX_OUT_DEFERRED, 1, 0, 30),
	  { OUTBOX_PENDING, OUTBOX_DEFERRED, 1, 30, FIRST_AT, 30, "first", false, false, true, true } },
	{ "retry, parked", CHARGED, GIVE(OUTBOX_OUT_PARKED, 1),
	  { OUTBOX_PENDING, OUTBOX_PARKED, 1, NONE, FIRST_AT, NONE, "first", false, false, true, true } },
	{ "retry, failed", CHARGED, GIVE(OUTBOX_OUT_FAILED, 2, 0, 0, false, "last"),
	  { OUTBOX_FAILED, 0, 2, NONE, FIRST_AT, NONE, "last", false, false, true, true } },

	/* it was deferred, and its time has come */
	{ "deferred, delivered", POSTPONED, GIVE(OUTBOX_OUT_DELIVERED),
	  { OUTBOX_DELIVERED, 0, 0, NONE, NONE, -30, NULL, false, false, true, true } },
	{ "deferred, returned", POSTPONED, GIVE(OUTBOX_OUT_RETURNED),
	  { OUTBOX_PENDING, OUTBOX_DEFERRED, 0, NOW, NONE, -30, NULL, false, false, false, false } },
	{ "deferred, refused", POSTPONED, GIVE(OUTBOX_OUT_WAITING, 1, 10, 0, false, "busy"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, 10, NOW, -30, "busy", false, false, true, false } },

	/* it was parked, and came along with the one before it */
	{ "parked, returned", HELD, GIVE(OUTBOX_OUT_RETURNED),
	  { OUTBOX_PENDING, OUTBOX_PARKED, 0, NOW, NONE, NONE, NULL, false, false, false, false } },
	{ "parked, parked again", HELD, GIVE(OUTBOX_OUT_PARKED),
	  { OUTBOX_PENDING, OUTBOX_PARKED, 0, NONE, NONE, NONE, NULL, false, false, true, true } },
	{ "parked, failed", HELD, GIVE(OUTBOX_OUT_FAILED, 1, 0, 0, false, "no"),
	  { OUTBOX_FAILED, 0, 1, NONE, NOW, NONE, "no", false, false, true, true } },

	/* it was a suspect */
	{ "suspect, delivered", SUSPECT, GIVE(OUTBOX_OUT_DELIVERED),
	  { OUTBOX_DELIVERED, 0, 0, NONE, NONE, NONE, "lost", false, false, true, true } },
	{ "suspect, returned", SUSPECT, GIVE(OUTBOX_OUT_RETURNED),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 0, NOW, NONE, NONE, "lost", true, false, false, false } },
	{ "suspect, refused by the broker", SUSPECT, GIVE(OUTBOX_OUT_WAITING, 1, 10, 0, false, "busy"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, 10, NOW, NONE, "busy", false, false, true, false } },
	{ "suspect, lost again", SUSPECT, GIVE(OUTBOX_OUT_WAITING, 1, 10, 0, true, "lost again"),
	  { OUTBOX_PENDING, OUTBOX_WAITING, 1, 10, NOW, NONE, "lost again", true, false, true, false } },
};
/* clang-format on */

#endif
