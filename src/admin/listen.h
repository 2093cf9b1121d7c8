/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_LISTEN_H
#define ADMIN_LISTEN_H

/* Where the admin server listens, and under which names it may be asked for. */

#include "admin/parse.h"
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

/* Bind and listen; the descriptor is the caller's. A stale UNIX socket is replaced. */
int listen_open(struct endpoint *endpoint, int *ret_fd, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What a Host header may say. */
int hosts_make(const struct endpoint *endpoint, const struct config_admin *config,
	       struct outbox_arena *arena, struct hosts *ret_hosts,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
