/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_ENDPOINT_H
#define TRANSPORT_ENDPOINT_H

/*
 * What the URLs of all brokers share: addresses, who logs in, and TLS.
 *
 *	scheme://user:password@host:port,host:port/...?password_file=PATH&ca=PATH&cert=PATH&key=PATH&verify=yes|no
 *
 * Servers are verified (chain and name) unless verify=no is said.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/url.h"

#include <stdbool.h>

#define ENDPOINT_OPTIONS "password_file, ca, cert, key, verify"
#define ENDPOINT_CA_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

struct address {
	char host[256]; /* without the brackets of an IPv6 address */
	int port;
};

struct endpoint {
	struct address *addresses; /* in the order of the URL; at least one */
	size_t n_addresses;
	char *user, *password; /* NULL: none given */
	bool tls;
	bool verify;
	char *ca;         /* with tls never NULL */
	char *cert, *key; /* both or none */
	char *hosts;      /* "host:port,host:port", all of them */
	char shown[300];  /* the same for people, cut when it is too long for them */
};

/*
 * Takes the options above from the URL. tls: does the scheme mean TLS? Its options are errors without it.
 * ECONFIG: no host, a bad port, a file that cannot be read, cert without key.
 */
int endpoint_parse(struct url *url, int default_port, bool tls, struct endpoint *ret_endpoint,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Other addresses than those of the URL: "host:port,host". ECONFIG as above. */
int endpoint_set_hosts(struct endpoint *endpoint, const char *hosts, int default_port,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
void endpoint_deinit(struct endpoint *endpoint);

/* Is every address this machine's own? */
bool endpoint_is_loopback(const struct endpoint *endpoint);

/* An option that names a file: a copy of its path; NULL stays NULL without it. ECONFIG when it cannot be read. */
int endpoint_file(struct url *url, const char *option, char **ret_path,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Try one address after the other until one works, each with its share of the time that is left. When none does, the
 * last failure is told, unless one of them is for somebody to repair (EAUTH, ECONFIG): that a standby is down does not
 * explain a wrong password.
 */
int endpoint_try(const struct endpoint *endpoint, struct outbox_clock *clock, outbox_time deadline,
		 int (*attempt)(void *context, const struct address *address, outbox_time until,
				struct outbox_error *err),
		 void *context, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
