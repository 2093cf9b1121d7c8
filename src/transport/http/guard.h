/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_HTTP_GUARD_H
#define TRANSPORT_HTTP_GUARD_H

/*
 * Where a webhook may go: to public addresses, and to those that the configuration names. Whoever may register a webhook
 * could otherwise make the relay talk to what only the inside of a network can reach. Addresses are judged as the
 * resolver gave them, after all spellings of a name or number, and right before the connection is made.
 */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

struct sockaddr;

/* A network: 10.0.0.0/8, fd00::/8; an address alone is one of its own. */
struct guard_network {
	bool ipv6;
	unsigned bits;
	unsigned char address[16]; /* IPv4 has 4 */
};

#define GUARD_NETWORKS_MAX 64

struct guard {
	struct guard_network allowed[GUARD_NETWORKS_MAX];
	size_t n_allowed;
};

/* Networks with commas between them, added to those that are allowed. ECONFIG names the one that is none. */
int guard_allow(struct guard *guard, const char *list, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What is special about an address: "loopback", "private" ...; NULL: it is public. */
const char *guard_range(const struct sockaddr *address);

/* Public, or in a network that is allowed? */
bool guard_admits(const struct guard *guard, const struct sockaddr *address);

#endif
