/* SPDX-License-Identifier: Apache-2.0 */

/* What `outbox doctor` says about the database. Findings only: nothing is changed. */
#include "store/check.h"
#include "base/cleanup.h"
#include "store/sqlite/delivery.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <string.h>

#define TRIGGERS 4
#define WAL_RESET_FIXED 3051003        /* 3.51.3 */
#define SEQ_NOTABLE ((int64_t)1 << 61) /* half of what the log lets in */
#define WAL_NOTABLE ((int64_t)256 << 20)
/* quick_check reads the whole file: a second or so up to here. */
#define INTEGRITY_MAX ((int64_t)256 << 20)

struct checking {
	struct sqlite_store *s;
	struct check_report report;
};

static void check_version(const struct checking *c)
{
	if (sqlite3_libversion_number() < WAL_RESET_FIXED)
		check_say(&c->report, NOTE, "sqlite",
			  "%s can, very rarely, damage the database; 3.51.3 cannot. Until then run PRAGMA "
			  "wal_autocheckpoint=0 on the application's connections",
			  sqlite3_libversion());
	else
		check_say(&c->report, FINE, "sqlite", "%s", sqlite3_libversion());
}

static int check_journal(const struct checking *c, struct outbox_error *err)
{
	char mode[32];
	int64_t sync;
	int r = sqlite_string(c->s, SQL_CHECK_JOURNAL, NULL, mode, sizeof(mode), err);

	if (r == OUTBOX_OK)
		r = sqlite_number(c->s, SQL_CHECK_SYNCHRONOUS, NULL, 0, &sync, err);
	if (r != OUTBOX_OK)
		return r;
	if (strcmp(mode, "wal") == 0)
		check_say(&c->report, FINE, "journal",
			  "WAL; our connections commit with synchronous=%s",
			  sync >= 2 ? "FULL" : "less than FULL");
	else
		check_say(&c->report, WARNING, "journal",
			  "mode is \"%s\", not WAL: readers and writers wait for each other; run outbox init "
			  "again",
			  mode);
	return OUTBOX_OK;
}

static void check_wal(const struct checking *c)
{
	int64_t size = sqlite_wal_size(c->s);

	if (size > WAL_NOTABLE)
		check_say(&c->report, WARNING, "wal",
			  "the write-ahead log has %lld MiB: a reader that never ends keeps it from being "
			  "checkpointed; find it and end it",
			  (long long)(size >> 20));
	else
		check_say(&c->report, FINE, "wal", "%lld KiB", (long long)(size >> 10));
}

static int check_integrity(const struct checking *c, struct outbox_error *err)
{
	char text[256];
	int64_t size;
	int r = sqlite_number(c->s, SQL_CHECK_PAGES, NULL, 0, &size, err);

	if (r != OUTBOX_OK)
		return r;
	if (size > INTEGRITY_MAX) {
		check_say(&c->report, NOTE, "integrity",
			  "%lld MiB, not checked here; run: sqlite3 %s 'PRAGMA quick_check'",
			  (long long)(size >> 20), c->s->path);
		return OUTBOX_OK;
	}
	r = sqlite_string(c->s, SQL_CHECK_INTEGRITY, NULL, text, sizeof(text), err);
	if (r == OUTBOX_OK && strcmp(text, "ok") == 0)
		check_say(&c->report, FINE, "integrity", "quick check ok");
	else if (r == OUTBOX_OK)
		check_say(&c->report, WRONG, "integrity",
			  "%.200s; restore a backup, or save what can be read: sqlite3 %s .recover",
			  text, c->s->path);
	return r;
}

static int check_schema(const struct checking *c, struct outbox_error *err)
{
	struct sqlite_version v;
	int64_t triggers, janitor;
	int r = sqlite_schema_version(c->s, &v, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(c->s, SQL_CHECK_TRIGGERS, NULL, 0, &triggers, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(c->s, SQL_CHECK_JANITOR, NULL, 0, &janitor, err);
	if (r != OUTBOX_OK)
		return r;
	if (triggers == TRIGGERS)
		check_say(&c->report, FINE, "schema", "version %d, %d lane%s", v.schema, v.lanes,
			  v.lanes == 1 ? "" : "s");
	else
		check_say(&c->report, WRONG, "schema",
			  "%lld of %d triggers of outbox_message are there: messages can be changed or lost; "
			  "recreate them: outbox upgrade --store sqlite:%s",
			  (long long)triggers, TRIGGERS, c->s->path);
	if (janitor)
		check_say(&c->report, WARNING, "schema",
			  "outbox_meta has a row 'janitor': anybody may delete messages; delete it");
	return OUTBOX_OK;
}

/* People may add some to the log. */
static int check_columns(const struct checking *c, struct outbox_error *err)
{
	char names[300];
	int r = sqlite_string(c->s, SQL_CHECK_COLUMNS, NULL, names, sizeof(names), err);

	if (r == OUTBOX_OK && names[0])
		check_say(&c->report, FINE, "columns", "of your own in outbox_message: %s", names);
	return r;
}

/* The numbers of the log: SQLite continues after the highest that is there or that it remembers. */
static int check_sequence(const struct checking *c, struct outbox_error *err)
{
	int64_t end, max;
	int r = sqlite_number(c->s, SQL_CHECK_SEQUENCE, NULL, 0, &end, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(c->s, SQL_CHECK_MAX_SEQ, NULL, 0, &max, err);
	if (r != OUTBOX_OK)
		return r;
	if (max > end)
		check_say(&c->report, WARNING, "log",
			  "sqlite_sequence says %lld, but the log has message %lld: it was changed by hand; the "
			  "next message sets it right",
			  (long long)end, (long long)max);
	if (max >= SEQ_NOTABLE || end >= SEQ_NOTABLE)
		check_say(&c->report, WRONG, "log",
			  "message numbers have reached %lld because one was set by hand; they end at %lld, and "
			  "then nothing can be published",
			  (long long)(max > end ? max : end), (long long)INT64_MAX);
	return OUTBOX_OK;
}

static int check_positions(const struct checking *c, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets t = { 0 };
	struct outbox_error refused = OUTBOX_ERROR_INIT;
	int r = targets_load(c->s, NULL, &t, &refused);

	if (r == OUTBOX_OK)
		r = targets_check_lanes(&t, &refused);
	if (r == OUTBOX_EPROTO)
		check_say(&c->report, WRONG, "positions", "relays refuse lanes; %.400s",
			  refused.message);
	else if (r != OUTBOX_OK)
		return outbox_fail_native(err, r, refused.native, "%s", refused.message);
	else if (!t.count)
		check_say(&c->report, NOTE, "targets",
			  "none is registered: messages wait, and nothing is purged");
	else
		check_say(&c->report, FINE, "positions", "%zu target%s, none ahead of the log",
			  t.count, t.count == 1 ? "" : "s");
	return OUTBOX_OK;
}

int sqlite_check(struct outbox_store *store,
		 void (*say_it)(void *context, int level, const char *subject, const char *text),
		 void *context, struct outbox_error *err)
{
	struct checking c = { sqlite_of(store), { say_it, context } };
	int r;

	check_version(&c);
	r = check_journal(&c, err);
	if (r != OUTBOX_OK)
		return r;
	check_wal(&c);
	r = sqlite_enter(c.s, DB_READ, err);
	if (r != OUTBOX_OK)
		return r;
	r = check_schema(&c, err);
	if (r == OUTBOX_OK)
		r = check_columns(&c, err);
	if (r == OUTBOX_OK)
		r = check_sequence(&c, err);
	if (r == OUTBOX_OK)
		r = check_positions(&c, err);
	if (r == OUTBOX_OK)
		r = check_integrity(&c, err);
	return sqlite_end(c.s, r, err);
}
