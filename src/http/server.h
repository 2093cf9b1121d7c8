/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

/* The admin HTTP server: one thread that serves all sockets, two that run what may wait. */

#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"

#include <outbox/clock.h>

struct admin;
struct daemon;
struct watch;

struct admin_options {
	const struct config_admin *config; /* its listen must be set */
	struct daemon *daemon;
	struct watch *watch;
	struct log log;
	struct outbox_clock *clock;
};

/*
 * Bind, read or make the tokens, start the threads. Borrows daemon and watch until admin_stop(). ECONFIG: what it
 * was told is not safe or not possible, with the remedy; ECONN: the address is taken.
 */
int admin_start(const struct admin_options *options, struct admin **ret_admin,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
struct admin *admin_stop(struct admin *admin);

DEFINE_CLEANUP(struct admin *, admin_stop)

/* Read the tokens again. Wrong in any way: the old ones stay. Any thread. */
int admin_reload(struct admin *admin, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Where it listens, for people: "http://127.0.0.1:8040". */
const char *admin_address(const struct admin *admin);

#endif
