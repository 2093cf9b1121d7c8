/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_AUTH_LIMIT_H
#define HTTP_AUTH_LIMIT_H

/*
 * Wrong tokens, by address: a few a minute get an answer with a reason and a line in the log, the rest do not. However many
 * addresses there are, the log gets a few lines a minute.
 */

#include "http/connections.h"

#define FAILURES_ADDRESSES 64
#define FAILURES_PER_MINUTE 10
#define FAILURES_LINES 10 /* a minute, of all addresses together */

struct auth_failure {
	unsigned char key[ADDRESS_KEY];
	outbox_time since; /* mono: when this minute began; 0: a free place */
	int count;         /* in this minute */
	int untold;        /* not in the log */
};

struct auth_limit {
	struct auth_failure items[FAILURES_ADDRESSES];
	outbox_time since; /* mono: when this minute of lines began */
	int lines;         /* in it */
	int untold;        /* of addresses that got no line, or lost their place */
};

struct auth_verdict {
	bool too_many; /* of this address, in this minute */
	bool tell;     /* write a line ... */
	int untold;    /* ... which also stands for so many before it */
	int elsewhere; /* ... and so many of other addresses */
};

struct auth_verdict auth_limit_note(struct auth_limit *auth_limit,
				    const unsigned char key[ADDRESS_KEY], outbox_time now);

#endif
