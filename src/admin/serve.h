/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_SERVE_H
#define ADMIN_SERVE_H

#include "admin/http.h"

/* Set up libmicrohttpd for this server. */
int serve_make(struct admin *admin, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The thread that serves all sockets, until admin->stop. */
void *serve_run(void *admin);

#endif
