/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include <outbox/error.h>

struct http_server;

/* Set up libmicrohttpd for this server. */
int serve_make(struct http_server *server, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Have the serving thread look again. Any thread. */
void serve_wake(struct http_server *server);

/* The thread that serves all sockets, until server->stop; its argument is the struct http_server. */
void *serve_run(void *argument);

#endif
