/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RETENTION_CASES_H
#define RETENTION_CASES_H

/*
 * What a purge may take: a message, how it stands with each of two targets, and what is asked for.
 * src/core/store_rules_test.c asks core/retention.h, store_contract_rules.c every store.
 */

#include <stdbool.h>

enum stand {
	NO_TARGET, /* there is none */
	UNROUTED,  /* the target does not get it, and its lane has not come by */
	PASSED,    /* the same, and its lane has */
	BEFORE,    /* it was published before the target's start */
	UNREAD,    /* to be delivered */
	IN_FLIGHT, /* being sent */
	WAITS,     /* for its next attempt */
	STRAIGHT,  /* delivered, and only a receipt tells */
	DELIVERED, /* delivered after a detour */
	FAILED,    /* failed */
	DISCARDED, /* by an operator */
};

/* Of what was settled, and of the message: before the time that the purge gives, or after it. */
enum age { LONG_AGO, JUST_NOW };

struct retention_case {
	const char *name;
	struct {
		enum stand stand;
		enum age age;
	} targets[2];
	enum age published;
	bool delivered, failed; /* the purge is for these */
	bool goes;
};

/* clang-format off */
static const struct retention_case retention_cases[] = {
	{ "delivered long ago", { { STRAIGHT, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "delivered just now", { { STRAIGHT, JUST_NOW } }, LONG_AGO, true, false, false },
	{ "delivered, and the purge is for failed ones", { { STRAIGHT, LONG_AGO } }, LONG_AGO, false, true, false },
	{ "delivered late, long ago", { { DELIVERED, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "delivered late, just now", { { DELIVERED, JUST_NOW } }, LONG_AGO, true, false, false },
	{ "discarded long ago", { { DISCARDED, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "discarded just now", { { DISCARDED, JUST_NOW } }, LONG_AGO, true, false, false },
	{ "discarded, and the purge is for failed ones", { { DISCARDED, LONG_AGO } }, LONG_AGO, false, true, false },
	{ "failed long ago", { { FAILED, LONG_AGO } }, LONG_AGO, false, true, true },
	{ "failed just now", { { FAILED, JUST_NOW } }, LONG_AGO, true, true, false },
	{ "failed, and the purge is for delivered ones", { { FAILED, LONG_AGO } }, LONG_AGO, true, false, false },
	{ "unread", { { UNREAD, LONG_AGO } }, LONG_AGO, true, true, false },
	{ "in flight", { { IN_FLIGHT, LONG_AGO } }, LONG_AGO, true, true, false },
	{ "waits", { { WAITS, LONG_AGO } }, LONG_AGO, true, true, false },
	/* of two targets both must be done with it */
	{ "both long ago", { { STRAIGHT, LONG_AGO }, { STRAIGHT, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "one just now", { { STRAIGHT, LONG_AGO }, { STRAIGHT, JUST_NOW } }, LONG_AGO, true, false, false },
	{ "one has not read it", { { STRAIGHT, LONG_AGO }, { UNREAD, LONG_AGO } }, LONG_AGO, true, true, false },
	{ "one is waiting", { { STRAIGHT, LONG_AGO }, { WAITS, LONG_AGO } }, LONG_AGO, true, true, false },
	{ "one failed and is kept", { { STRAIGHT, LONG_AGO }, { FAILED, LONG_AGO } }, LONG_AGO, true, false, false },
	{ "one failed and is not kept", { { STRAIGHT, LONG_AGO }, { FAILED, LONG_AGO } }, LONG_AGO, true, true, true },
	{ "one discarded, one failed", { { DISCARDED, LONG_AGO }, { FAILED, LONG_AGO } }, LONG_AGO, true, true, true },
	/* who does not get it holds nothing back */
	{ "one has no interest", { { STRAIGHT, LONG_AGO }, { UNROUTED, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "one has no interest, the other is late", { { STRAIGHT, JUST_NOW }, { UNROUTED, LONG_AGO } }, LONG_AGO, true, false, false },
	{ "one has passed it by", { { STRAIGHT, LONG_AGO }, { PASSED, JUST_NOW } }, LONG_AGO, true, false, true },
	{ "one began later", { { STRAIGHT, LONG_AGO }, { BEFORE, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "one began later, the other is late", { { STRAIGHT, JUST_NOW }, { BEFORE, LONG_AGO } }, LONG_AGO, true, false, false },
	{ "one began later, the other has not read it", { { UNREAD, LONG_AGO }, { BEFORE, LONG_AGO } }, LONG_AGO, true, true, false },
	{ "failed, the other has no interest", { { FAILED, LONG_AGO }, { UNROUTED, LONG_AGO } }, LONG_AGO, false, true, true },
	/* nobody's message goes by its own age */
	{ "nobody's, old", { { UNROUTED, LONG_AGO }, { UNROUTED, LONG_AGO } }, LONG_AGO, true, false, true },
	{ "nobody's, young", { { UNROUTED, LONG_AGO }, { UNROUTED, LONG_AGO } }, JUST_NOW, true, false, false },
	{ "nobody's, passed by all, young", { { PASSED, JUST_NOW } }, JUST_NOW, true, false, false },
	{ "before all began, old", { { BEFORE, LONG_AGO }, { BEFORE, JUST_NOW } }, LONG_AGO, true, false, true },
	{ "before all began, young", { { BEFORE, JUST_NOW } }, JUST_NOW, true, false, false },
	{ "before one began, the other has no interest, young", { { BEFORE, JUST_NOW }, { UNROUTED, LONG_AGO } }, JUST_NOW, true, false, false },
	{ "before all began, and the purge is for failed ones", { { BEFORE, LONG_AGO } }, LONG_AGO, false, true, false },
	{ "nobody's, and the purge is for failed ones", { { UNROUTED, LONG_AGO } }, LONG_AGO, false, true, false },
};
/* clang-format on */

#endif
