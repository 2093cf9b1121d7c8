/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

/* Where the admin server listens, and under which names it may be asked for. */

#include "config/listen.h"
#include "http/parse.h"

/* Bind and listen; the descriptor is the caller's. A stale UNIX socket is replaced. */
int listen_open(struct endpoint *endpoint, int *ret_fd, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What a Host header may say. */
int hosts_make(const struct endpoint *endpoint, const struct config_admin *config,
	       struct outbox_arena *arena, struct hosts *ret_hosts,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
