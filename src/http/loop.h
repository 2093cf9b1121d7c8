/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include "http/http.h"

/* Set up libmicrohttpd for this server. */
int serve_make(struct admin *admin, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Have the serving thread look again. Any thread. */
void serve_wake(struct admin *admin);

/* The thread that serves all sockets, until admin->stop; its argument is the struct admin. */
void *serve_run(void *argument);

#endif
