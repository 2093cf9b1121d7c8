/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"

#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA ((size_t)16 << 20)

extern const struct outbox_store_ops postgres_store_ops;

static void quiet(void *context, const char *text)
{
	(void)context;
	(void)text;
}

PGconn *place_connect(const struct place *p)
{
	PGconn *db = PQconnectdb(getenv("OUTBOX_TEST_POSTGRES"));
	char sql[192];

	PQsetNoticeProcessor(db, quiet, NULL);
	snprintf(sql, sizeof(sql), "SET search_path = %s; SET application_name = %s", p->schema,
		 p->schema);
	PQclear(PQexec(db, sql));
	assert_int_equal(PQstatus(db), CONNECTION_OK);
	return db;
}

static PGresult *execute(struct place *p, const char *format, va_list args) OUTBOX_PRINTF(2, 0);

static PGresult *execute(struct place *p, const char *format, va_list args)
{
	char sql[2048];
	PGresult *result;

	vsnprintf(sql, sizeof(sql), format, args);
	result = PQexec(p->db, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(p->db));
	return result;
}

void place_sql(struct place *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	PQclear(execute(p, format, args));
	va_end(args);
}

int64_t place_number(struct place *p, const char *format, ...)
{
	PGresult *result;
	int64_t number;
	va_list args;

	va_start(args, format);
	result = execute(p, format, args);
	va_end(args);
	number = PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : -1;
	PQclear(result);
	return number;
}

struct outbox_store *place_open(struct place *p, const char *url)
{
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = url,
					      .clock = &p->clock.base,
					      .random = &p->random.base };
	struct outbox_store *store = NULL;

	if (store_open(&postgres_store_ops, &config, true, &store, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return store;
}

void place_target(struct place *p, const char *name)
{
	struct outbox_target_def def = { .name = name, .start = OUTBOX_START_OLDEST };

	if (pg_target_put(p->store, &def, NULL, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
}

void place_target_of(struct place *p, const char *name, const char *type)
{
	struct outbox_target_def def = { .name = name,
					 .start = OUTBOX_START_OLDEST,
					 .route = { .types = &type, .n_types = 1 } };

	if (pg_target_put(p->store, &def, NULL, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
}

/* Functions of the schema with a bug in them, when tests/system/postgres/run-bugs says so. */
static void plant(struct place *p)
{
	const char *path = getenv("OUTBOX_TEST_PLANT");
	char text[1 << 16];
	FILE *file = path ? fopen(path, "re") : NULL;

	if (!path)
		return;
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	PQclear(PQexec(p->db, text));
	if (PQerrorMessage(p->db)[0])
		fail_msg("%s: %s", path, PQerrorMessage(p->db));
}

static int setup(void **state, bool partition)
{
	static int number;
	struct place *p = calloc(1, sizeof(*p));
	struct outbox_init_options options = { .struct_size = sizeof(options),
					       .lanes = 1,
					       .partition = partition };

	if (!p || !getenv("OUTBOX_TEST_POSTGRES"))
		return -1;
	frozen_clock_init(&p->clock, TEST_START);
	random_init(&p->random, 4711);
	p->arena = outbox_arena_new(ARENA);
	snprintf(p->schema, sizeof(p->schema), "place_%d_%d", (int)getpid(), ++number);
	snprintf(p->url, sizeof(p->url), "%s?clock=client&schema=%s",
		 getenv("OUTBOX_TEST_POSTGRES"), p->schema);
	p->db = place_connect(p);
	p->store = place_open(p, p->url);
	if (store_init(p->store, &options, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	plant(p);
	place_target(p, "events");
	*state = p;
	return 0;
}

int place_setup(void **state)
{
	return setup(state, false);
}

int place_setup_partitioned(void **state)
{
	int r;

	setenv("PGOPTIONS", "-c outbox.partition_rows=10", 1);
	r = setup(state, true);
	unsetenv("PGOPTIONS");
	return r;
}

int place_teardown(void **state)
{
	struct place *p = *state;

	store_close(p->store);
	/* A failed case may have left a transaction open. */
	place_sql(p,
		  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
		  " WHERE application_name = '%s' AND pid <> pg_backend_pid()",
		  p->schema);
	place_sql(p, "DROP SCHEMA %s CASCADE", p->schema);
	PQfinish(p->db);
	outbox_arena_free(p->arena);
	free(p);
	return 0;
}

void place_publish(struct place *p, int n)
{
	place_sql(p,
		  "INSERT INTO outbox_message (type, payload) SELECT 't', '{}' FROM generate_series(1, %d)",
		  n);
}

void place_publish_now(struct place *p, const char *type, int n)
{
	place_sql(p,
		  "INSERT INTO outbox_message (type, payload, created_at)"
		  " SELECT '%s', '{}', to_timestamp(%lld) FROM generate_series(1, %d)",
		  type, (long long)(p->clock.wall / OUTBOX_SECONDS), n);
}

size_t place_settle(struct place *p, const char *target, int outcome, int64_t *ret_seqs, size_t max)
{
	struct outbox_settlement settled[100] = { 0 };
	struct outbox_settle_and_claim request = {
		.target = target, .owner = "me", .route_version = 1, .max_bytes = 1 << 20
	};
	struct outbox_claim claim = { 0 };
	struct outbox_head head;
	size_t total = 0;

	if (pg_take_over(p->store, target, 0, "me", ++p->token, &head, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	claim.n = head.n;
	claim.fence_token = head.fence_token;
	do {
		for (size_t i = 0; i < claim.count; i++) {
			settled[i] = (struct outbox_settlement){ .seq = claim.items[i].seq,
								 .outcome = outcome,
								 .attempts = 1 };
			if (ret_seqs)
				ret_seqs[total + i] = claim.items[i].seq;
		}
		total += claim.count;
		request.n = claim.n;
		request.fence_token = claim.fence_token;
		request.new_token = ++p->token;
		request.settled = settled;
		request.n_settled = claim.count;
		request.max_messages = max - total < 100 ? max - total : 100;
		if (store_settle_and_claim(p->store, &request, p->arena, &claim, &p->err) !=
		    OUTBOX_OK)
			fail_msg("%s", p->err.message);
	} while (claim.count);
	outbox_arena_reset(p->arena);
	return total;
}

size_t place_drain(struct place *p, const char *target)
{
	return place_settle(p, target, OUTBOX_OUT_DELIVERED, NULL, SIZE_MAX);
}

struct outbox_purged place_purge(struct place *p, outbox_time age)
{
	struct outbox_purge what = { .delivered_before = p->clock.wall - age };
	struct outbox_purged purged = { 0 }, total = { 0 };
	int calls = 0;

	do {
		if (pg_purge(p->store, &what, &purged, &p->err) != OUTBOX_OK)
			fail_msg("%s", p->err.message);
		total.messages += purged.messages;
		total.receipts += purged.receipts;
		total.detours += purged.detours;
		assert_true(++calls < 100); /* it comes to an end */
	} while (purged.more);
	return total;
}
