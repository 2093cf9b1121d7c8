/* SPDX-License-Identifier: Apache-2.0 */
#include "admin_world.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool on_postgres;

static void run_postgres(const char *url, const char *sql)
{
	PGconn *conn = PQconnectdb(url);
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
	PQfinish(conn);
}

void run(const struct world *w, const char *sql)
{
	sqlite3 *db = NULL;
	char *why = NULL;

	if (on_postgres) {
		run_postgres(w->url, sql);
		return;
	}
	assert_int_equal(sqlite3_open(w->place, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}

void publish(const struct world *w, int from, int to)
{
	char sql[400];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO outbox_message (id, type, key, payload) WITH RECURSIVE s(i) AS (SELECT %d "
		 "UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT 'm-' || i, 'order.placed', "
		 "'k-' || i, '{}' FROM s",
		 from, to);
	run(w, sql);
}

struct outbox_admin *admin_of(const char *url, const char *name,
			      const struct outbox_health_limits *limits)
{
	struct outbox_admin_config config = OUTBOX_ADMIN_CONFIG_INIT;
	struct outbox_admin *admin = NULL;

	config.store = url;
	config.actor = "ops@test";
	config.name = name;
	config.limits = limits;
	OK(outbox_admin_new(&admin, &config, err));
	return admin;
}

static int handle(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	const struct world *w = context;

	(void)item;
	return w->broken ? outbox_fail(err, OUTBOX_EINVAL, "not today") : OUTBOX_OK;
}

int setup(void **state)
{
	static int number;
	const char *server = getenv("OUTBOX_TEST_POSTGRES");
	struct world *w = calloc(1, sizeof(*w));
	char sql[100];

	assert_non_null(w);
	snprintf(w->place, sizeof(w->place), "admin_test_%d_%d", (int)getpid(), number++);
	if (on_postgres) {
		if (!server)
			return -1;
		snprintf(sql, sizeof(sql), "CREATE DATABASE %s", w->place);
		run_postgres(server, sql);
		snprintf(w->url, sizeof(w->url), "%.*s/%s", (int)(strrchr(server, '/') - server),
			 server, w->place);
	} else {
		snprintf(w->url, sizeof(w->url), "sqlite:%s", w->place);
	}
	w->arena = outbox_arena_new((size_t)64 << 20);
	OK(outbox_registry_new(&w->registry, err));
	OK(outbox_registry_handle(w->registry, "*", handle, w, err));
	w->admin = admin_of(w->url, NULL, NULL);
	*state = w;
	return 0;
}

int setup_ready(void **state)
{
	setup(state);
	OK(outbox_admin_init(((struct world *)*state)->admin, NULL, err));
	return 0;
}

int teardown(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	struct world *w = *state;
	char path[80];

	outbox_admin_free(w->admin);
	outbox_registry_free(w->registry);
	outbox_arena_free(w->arena);
	for (size_t i = 0; !on_postgres && i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", w->place, ends[i]);
		unlink(path);
	}
	free(w);
	return 0;
}

struct outbox_relay *relay_new(struct world *w)
{
	static struct outbox_policy once = { .name = "once",
					     .max_attempts = 1,
					     .base = OUTBOX_SECONDS,
					     .cap = OUTBOX_SECONDS,
					     .factor = 1 };
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay *relay = NULL;

	once.struct_size = sizeof(once);
	target.name = "events";
	target.to = "handler:";
	target.policy = &once;
	target.hold = w->hold;
	config.store = w->url;
	config.targets = &target;
	config.n_targets = 1;
	config.registry = w->registry;
	config.purge_interval = OUTBOX_NEVER;
	OK(outbox_relay_new(&relay, &config, err));
	return relay;
}

void deliver(struct world *w, bool broken)
{
	struct outbox_relay *relay = relay_new(w);

	w->broken = broken;
	OK(outbox_relay_run_until_idle(relay, NULL, err));
	outbox_relay_free(relay);
}
