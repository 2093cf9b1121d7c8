/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_WORLD_H
#define ADMIN_WORLD_H

/* A store of its own for each test of outbox/admin.h, on the kind that the command line names. */

#include <outbox/outbox.h>

#include <stdbool.h>
#include <string.h>

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
/* clang-format on */

extern bool on_postgres;

struct world {
	char place[64], url[200]; /* a file, or a database of the server */
	struct outbox_arena *arena;
	struct outbox_admin *admin;
	struct outbox_registry *registry;
	bool broken; /* what the handler finds */
	bool hold;   /* the target's */
};

#define OK(call)                                                 \
	do {                                                     \
		struct outbox_error err_ = OUTBOX_ERROR_INIT;    \
		struct outbox_error *err = &err_;                \
		if ((call) != OUTBOX_OK)                         \
			fail_msg("%s: %s", #call, err_.message); \
		(void)err;                                       \
	} while (0)

#define FAILS(call, status_, text_)                                            \
	do {                                                                   \
		struct outbox_error err_ = OUTBOX_ERROR_INIT;                  \
		struct outbox_error *err = &err_;                              \
		assert_int_equal((call), (status_));                           \
		if (!strstr(err_.message, (text_)))                            \
			fail_msg("\"%s\" is not in: %s", text_, err_.message); \
		(void)err;                                                     \
	} while (0)

int setup(void **state);       /* no outbox yet */
int setup_ready(void **state); /* an empty one */
int teardown(void **state);

/* For whoever has rights beside the library: any SQL that both stores know. */
void run(const struct world *w, const char *sql);
/* Messages m-FROM to m-TO with keys k-FROM to k-TO. */
void publish(const struct world *w, int from, int to);
struct outbox_admin *admin_of(const char *url, const char *name,
			      const struct outbox_health_limits *limits);
/* One target "events", whose first failure is final. */
struct outbox_relay *relay_new(struct world *w);
void deliver(struct world *w, bool broken);

/* admin_health_test.c */
void health_has_rules_and_limits(void **state);
void metrics_are_of_stores_and_relays(void **state);
void a_lost_connection_is_made_again(void **state);
void any_thread_may_call(void **state);

#endif
