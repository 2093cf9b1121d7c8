/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/place_test.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	abort();
}

static void must(struct place *p, int r, const char *what)
{
	if (r != OUTBOX_OK)
		die(what, p->err.message);
}

struct outbox_store *place_open(struct place *p, const char *options)
{
	struct outbox_store *store = NULL;
	char url[192];

	snprintf(url, sizeof(url), "%s%s", p->url, options);
	must(p,
	     sqlite_open(&(struct outbox_store_config){ .struct_size =
								sizeof(struct outbox_store_config),
							.url = url,
							.clock = &p->clock.base,
							.random = &p->random.base },
			 true, &store, &p->err),
	     "open");
	return store;
}

sqlite3 *place_connect(const struct place *p)
{
	sqlite3 *db;

	if (sqlite3_open(p->file, &db) != SQLITE_OK)
		die(p->file, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 10000);
	return db;
}

int place_sql(const struct place *p, const char *sql)
{
	sqlite3 *db = place_connect(p);
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	sqlite3_close(db);
	return rc;
}

int64_t place_number(const struct place *p, const char *sql)
{
	sqlite3 *db = place_connect(p);
	sqlite3_stmt *q;
	int64_t number = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
	if (sqlite3_step(q) == SQLITE_ROW)
		number = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return number;
}

int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	snprintf(p->folder, sizeof(p->folder), "/tmp/sqlite-test-XXXXXX");
	if (!mkdtemp(p->folder))
		die(p->folder, "cannot be made");
	snprintf(p->file, sizeof(p->file), "%s/app.db", p->folder);
	snprintf(p->url, sizeof(p->url), "sqlite:%s", p->file);
	frozen_clock_init(&p->clock, TEST_START);
	random_init(&p->random, 7);
	p->arena = outbox_arena_new((size_t)64 << 20);
	p->store = place_open(p, "");
	*state = p;
	return 0;
}

int place_setup_ready(void **state)
{
	struct place *p;

	if (place_setup(state) != 0)
		return -1;
	p = *state;
	must(p, store_init(p->store, NULL, &p->err), "init");
	place_target(p, "events", false);
	return 0;
}

int place_teardown(void **state)
{
	static const char *const names[] = { "app.db", "app.db-wal", "app.db-shm" };
	struct place *p = *state;
	char file[128];

	sqlite_close(p->store);
	outbox_arena_free(p->arena);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(file, sizeof(file), "%s/%s", p->folder, names[i]);
		unlink(file);
	}
	rmdir(p->folder);
	free(p);
	return 0;
}

int64_t place_publish(struct place *p, const char *type, const char *key, const char *id)
{
	struct outbox_message m = { .type = type, .key = key, .id = id, .data = "{}", .size = 2 };
	int64_t seq = 0;

	must(p, sqlite_append(p->store, &m, 1, &seq, NULL, &p->err), "append");
	return seq;
}

void place_target(struct place *p, const char *name, bool hold)
{
	struct outbox_target_def def = { .name = name, .hold = hold, .start = OUTBOX_START_OLDEST };

	must(p, sqlite_target_put(p->store, &def, NULL, &p->err), "target");
}

struct outbox_head place_take(struct place *p, const char *target)
{
	struct outbox_head head = { 0 };

	must(p, sqlite_take_over(p->store, target, 0, "me", ++p->token, &head, &p->err), "take");
	return head;
}

int place_advance(struct place *p, const char *target, struct outbox_claim *claim, int outcome,
		  size_t max)
{
	struct outbox_settlement *settled = calloc(claim->count + 1, sizeof(*settled));
	struct outbox_settle_and_claim request = {
		.target = target,
		.owner = "me",
		.n = claim->n,
		.fence_token = claim->fence_token,
		.new_token = ++p->token,
		.route_version = 1,
		.settled = settled,
		.n_settled = claim->count,
		.max_messages = max,
		.max_bytes = (size_t)1 << 20,
	};
	int r;

	if (!settled)
		abort();
	for (size_t i = 0; i < claim->count; i++)
		settled[i] = (struct outbox_settlement){
			.seq = claim->items[i].seq, .outcome = outcome, .attempts = 1, .error = "no"
		};
	r = store_settle_and_claim(p->store, &request, p->arena, claim, &p->err);
	free(settled);
	return r;
}

size_t place_drain(struct place *p, const char *target)
{
	struct outbox_head head = place_take(p, target);
	struct outbox_claim claim = { .n = head.n, .fence_token = head.fence_token };
	size_t total = 0;

	do {
		must(p, place_advance(p, target, &claim, OUTBOX_OUT_DELIVERED, 100), "advance");
		total += claim.count;
	} while (claim.count);
	return total;
}
