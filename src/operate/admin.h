/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_ADMIN_H
#define OPERATE_ADMIN_H

/* The object behind outbox/admin.h: one connection, one caller at a time. */

#include "base/random.h"
#include "config/config.h"
#include "config/rules.h"

#include <outbox/admin.h>

#include <pthread.h>

struct outbox_admin {
	struct outbox_arena *arena; /* the configuration's texts */
	const char *url, *actor;
	const char *name; /* NULL: the store's */
	const struct outbox_registry *registry;
	struct outbox_clock *clock;
	struct random_state random;
	struct config_health limits;
	pthread_mutex_t mutex;      /* guards what follows, and random */
	struct outbox_store *store; /* NULL: not connected */
	struct outbox_store_info info;
};

enum admin_need {
	NEED_READY = 0, /* an outbox of this version */
	NEED_STORE,     /* a database, whatever is in it */
	NEED_CREATE     /* the same, made where it can be */
};

/* Lock, connect, look what is there. Only after OK comes admin_leave(), with the call's status, which it returns. */
int admin_enter(struct outbox_admin *admin, enum admin_need need,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int admin_leave(struct outbox_admin *admin, int status);

#endif
