/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REDIS_FAKE_H
#define REDIS_FAKE_H

/* A server that answers what the test wants, right or wrong. One thread, one connection at a time, loopback. */

#include <stdbool.h>
#include <stddef.h>

#define FAKE_ADDS 4

/* What it says to each command; NULL: what a good server would say, "" nothing. */
struct fake_script {
	const char *greeting; /* before anybody asked; NULL: nothing */
	const char *ping, *auth, *info, *wait;
	const char *eval;       /* NULL: it may not be run */
	const char *first_wait; /* to the first WAIT of all, at connect; NULL: many replicas */
	const char *adds[FAKE_ADDS]; /* to the first XADD, the second ...; the last of them to all that follow */
	size_t padding; /* so many bytes more in every answer to XADD, which then is an error */
	bool hang_up;   /* after its first answer */
	bool trickle;   /* a byte every 20 ms, without an end, in place of answers to XADD */
};

struct fake *fake_start(const struct fake_script *script);
int fake_port(const struct fake *fake);
/* Say something now, unasked, to whoever is connected. */
void fake_say(struct fake *fake, const char *text);
void fake_stop(struct fake *fake);

#endif
