/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, and what makes and removes the schema. */

#include "cases.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

static void prepare_version_1(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct sqlite_migrations first = { sqlite_migrations.list, 1, "" };

	must(sqlite_schema_init(sqlite_of(w->store), &first, NULL, &err), &err, "init");
}

static int call_open(struct world *w, struct outbox_error *err)
{
	return world_try_open(w, err);
}

static int call_init(struct world *w, struct outbox_error *err)
{
	return store_init(w->store, &(struct outbox_init_options){ .lanes = 2 }, err);
}

static int call_info(struct world *w, struct outbox_error *err)
{
	struct outbox_store_info info;
	int r = sqlite_info(w->store, &info, err);

	if (r == OUTBOX_OK)
		world_say(w, "%s %d of %d, %d lanes", info.name, info.schema_version,
			  info.program_version, info.lanes);
	return r;
}

static int call_upgrade(struct world *w, struct outbox_error *err)
{
	int from = -1, r = sqlite_upgrade(w->store, NULL, &from, err);

	if (r == OUTBOX_OK)
		world_say(w, "from %d", from);
	return r;
}

static void add_subject(void *context, int level, const char *subject, const char *text)
{
	/* Sizes differ from run to run, and a page that cannot be read is a finding. */
	(void)level;
	(void)text;
	world_say(context, "%s\n", subject);
}

static int call_check(struct world *w, struct outbox_error *err)
{
	return sqlite_check(w->store, add_subject, w, err);
}

/* SQLite makes the text of a number when it is asked for: without memory there is none, which is not NULL. */
static int call_texts(struct world *w, struct outbox_error *err)
{
	sqlite3 *db = sqlite_of(w->store)->db;
	const char *peeked, *looked, *copied = NULL;
	sqlite3_stmt *q = NULL;
	int r = OUTBOX_OK, rc;

	outbox_arena_reset(w->arena);
	rc = sqlite3_prepare_v2(db, "SELECT 123456789012345, 1.5, 42, NULL", -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_ROW) {
		r = sqlite_fail(db, rc, "texts", err);
		sqlite3_finalize(q);
		return r;
	}
	peeked = sqlite_peek(q, 0, &r, err);
	looked = sqlite_look(q, 1, &r, err);
	if (r == OUTBOX_OK)
		r = sqlite_text(q, 2, w->arena, &copied, err);
	if (r == OUTBOX_OK)
		world_say(w, "%s %s %s %d", peeked, looked, copied,
			  sqlite_look(q, 3, &r, err) == NULL);
	sqlite3_finalize(q);
	return r;
}

static int call_append(struct world *w, struct outbox_error *err)
{
	struct outbox_message messages[] = {
		{ .type = "order.placed", .id = "n-1", .key = "k", .data = "{}", .size = 2 },
		{ .type = "order.placed", .key = "k", .data = "{}", .size = 2 },
		{ .type = "order.placed", .id = "n-1", .key = "k", .data = "{}", .size = 2 },
	};
	int64_t seqs[3];
	bool repeated[3];
	int r;

	r = sqlite_append(w->store, messages, 3, seqs, repeated, err);
	if (r == OUTBOX_OK)
		world_say(w, "%lld %lld %lld %d%d%d", (long long)seqs[0], (long long)seqs[1],
			  (long long)seqs[2], repeated[0], repeated[1], repeated[2]);
	return r;
}

static int call_truncate(struct world *w, struct outbox_error *err)
{
	return sqlite_truncate(w->store, err);
}

static int call_drop(struct world *w, struct outbox_error *err)
{
	return sqlite_drop(w->store, err);
}

const struct store_case schema_cases[] = {
	{ "open", prepare_log, NULL, call_open, CASE_CLOSED | CASE_AGAIN, 20, 5 },
	{ "open, new", NULL, NULL, call_open, CASE_CLOSED | CASE_AGAIN, 20, 1 },
	{ "init", NULL, NULL, call_init, CASE_AGAIN | CASE_DDL, 200, 20 },
	{ "info", prepare_log, NULL, call_info, CASE_AGAIN, 10, 1 },
	{ "upgrade", prepare_version_1, NULL, call_upgrade, CASE_DDL, 200, 20 },
	{ "upgrade, code alone", prepare_log, NULL, call_upgrade, CASE_AGAIN | CASE_DDL, 200, 12 },
	{ "check", prepare_trouble, NULL, call_check, CASE_AGAIN, 20, 5 },
	{ "texts", prepare_schema, NULL, call_texts, CASE_AGAIN, 10, 0 },
	{ "append", prepare_log, NULL, call_append, 0, 40, 20 },
	{ "truncate", prepare_trouble, NULL, call_truncate, 0, 40, 20 },
	{ "drop", prepare_trouble, NULL, call_drop, CASE_DDL, 40, 20 },
	{ NULL },
};
