/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

/* The admin HTTP server: one thread that serves all sockets, two that run what may wait. */

#include "base/cleanup.h"
#include "config/config.h"

struct http_server;
struct daemon;
struct sampler;

/*
 * Bind, read or make the tokens, start the threads. config->listen must be set. Borrows daemon and sampler until
 * http_server_stop(). ECONFIG: what the configuration asks for is not safe or not possible, with the remedy; ECONN: the
 * address is taken.
 */
int http_server_start(const struct config_admin *config, struct daemon *daemon,
		      struct sampler *sampler, struct http_server **ret_server,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
struct http_server *http_server_stop(struct http_server *server);

DEFINE_CLEANUP(struct http_server *, http_server_stop)

/* Read the tokens again. Wrong in any way: the old ones stay. Any thread. */
int http_server_reload(struct http_server *server, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
