/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_PROXIED_H
#define TRANSPORT_PROXIED_H

/* What the fixtures of all brokers share: a server behind a proxy. The first member of a fixture's state. */

#include "transport_proxy.h"

struct proxied {
	struct proxy *proxy;
	size_t message_bytes; /* about what one of the suite's small messages takes on the wire */
	size_t window; /* the driver waits for answers after so many at the latest; 0: after all */
	char url[200], missing[200];
};

/* Ops of struct transport_fixture. */
const char *proxied_url(void *state);
const char *proxied_missing_url(void *state);
void proxied_outage(void *state, bool on);
void proxied_outage_after(void *state, size_t n);
bool proxied_touched(void *state);

/* They, as a fixture names them. */
#define PROXIED_OPS                                                                       \
	.url = proxied_url, .missing_url = proxied_missing_url, .outage = proxied_outage, \
	.outage_after = proxied_outage_after, .touched = proxied_touched

#endif
