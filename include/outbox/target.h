/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_TARGET_H
#define OUTBOX_TARGET_H

/* Targets as a store registers them: which messages they get, and where they start. */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Priority bands. A message is in one of them: above 0 high, 0 or not set normal, below 0 low. */
#define OUTBOX_BAND_HIGH 1u
#define OUTBOX_BAND_NORMAL 2u
#define OUTBOX_BAND_LOW 4u
#define OUTBOX_BAND_NONE 8u /* no band at all: nothing new, only what it got before */

/* Which messages a target gets: all conditions hold. Globs know * and ?; nothing else is special. */
struct outbox_route {
	const char *const *types; /* any of these; none means every type */
	size_t n_types;
	int kind; /* enum outbox_kind; UNSET means both */
	bool published_only;
	bool nothing; /* not one, whatever the others say: a target that is only a dead letter of others */
	unsigned bands; /* OUTBOX_BAND_*, any of these; 0: every band */
	/*
	 * NAME=GLOB each: for every name here, the message has such a header, and one of the name's globs fits
	 * its value. Names without regard to case.
	 */
	const char *const *headers;
	size_t n_headers;
};

enum outbox_start {
	OUTBOX_START_UNSET = 0, /* oldest while nothing was ever settled here, else an error */
	OUTBOX_START_OLDEST = 1,
	OUTBOX_START_NOW = 2,
	OUTBOX_START_TIME =
		3 /* at the first retained message with created_at >= start_time; none: now */
};

struct outbox_target_def {
	const char *name;
	struct outbox_route route;
	bool hold;              /* later messages of a key wait after a failed one (default: no) */
	bool unordered;         /* keys have no effect: nothing blocks, nothing is parked */
	int start;              /* enum outbox_start; only looked at when the target is new */
	outbox_time start_time; /* of OUTBOX_START_TIME; one in the future is ECONFIG */
	/*
	 * The registered target that gets what fails here; NULL: none. In the transaction that makes a
	 * delivery failed, the same message becomes pending for that target, whatever its route says and
	 * whatever became of it there before. One that is not registered, or that leads back here, is
	 * ECONFIG. A change of it is no change of routing.
	 */
	const char *dead_letter;
	/* The target whose messages are split up among bands, which is registered first and bears its own
	 * name here; NULL: this target's priorities are a condition like any other. See target_put() */
	const char *band_of;
	/* It is registered paused, by the actor OUTBOX_PAUSED_BY_CONFIGURATION; only looked at when it is new. */
	bool paused;
};

#define OUTBOX_PAUSED_BY_CONFIGURATION "configuration"

#ifdef __cplusplus
}
#endif

#endif
