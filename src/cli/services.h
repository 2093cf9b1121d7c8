/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SERVICES_H
#define CLI_SERVICES_H

/* What runs beside the relays in a daemon, and never in their way: the sampler, the admin server, the exports. */

#include "daemon/daemon.h"

struct services;

/* Before daemon_start(): what is wrong is told before anything is delivered. */
int services_start(struct daemon *daemon, struct services **ret_services,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* After daemon_stop(), before daemon_free(). NULL is legal; returns NULL. */
struct services *services_stop(struct services *services);

#endif
