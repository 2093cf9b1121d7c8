/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_LISTEN_H
#define CONFIG_LISTEN_H

/* Where the admin server shall listen: what can be said of it before there is a server. */

#include "config/config.h"

#include <netinet/in.h>
#include <sys/un.h>

struct endpoint {
	bool local; /* a UNIX socket, or an address of this machine only */
	bool is_unix;
	char text[128]; /* as people write it: 127.0.0.1:8040, unix:/run/outbox.sock */
	uint16_t port;
	socklen_t size;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} address;
};

/* "127.0.0.1:8040", "[::1]:8040", "localhost:8040", "unix:PATH". Names are not looked up. EINVAL says what is. */
int listen_parse(const char *text, struct endpoint *ret_endpoint,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ECONFIG: off this machine without TLS; *ret_key is the key of config that it is about. Pure. */
int listen_check(const struct endpoint *endpoint, const struct config_admin *config,
		 const char **ret_key, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The text of a PEM file, which the caller frees; a secret one must be closed to others. ECONFIG names the remedy. */
int pem_read(const char *path, bool secret, char **ret_text,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
