/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SQLite tells each virtual table that a transaction has written to of its commit, which the table may refuse, of its
 * rollback, and of savepoints. So a unit is such a table, with no rows: a DELETE from it joins the transaction. Commit and
 * rollback hooks, of which a connection has one each and nobody can read, stay the application's, and savepoints are
 * followed without its help.
 *
 * A table may outlive its object until the transaction ends: both know the link between them, and it outlives both.
 */
#include <outbox/sqlite.h>

#include "base/cleanup.h"
#include "client/events.h"
#include "client/publish.h"
#include "client/sqlite.h"
#include "store/sqlite/db.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct frame {
	size_t collected, written; /* when the savepoint was opened */
};

struct link {
	struct events *events; /* NULL: it is gone */
	int references;
};

struct events {
	struct outbox_events base;
	sqlite3 *db;
	struct link *link;
	char name[40];        /* of the table */
	struct frame *frames; /* of the savepoints that are open, by their depth */
	size_t n_frames, capacity;
};

struct table {
	sqlite3_vtab base;
	struct link *link;
};

static struct link *link_take(struct link *link)
{
	link->references++;
	return link;
}

static void link_drop(void *arg)
{
	struct link *link = arg;

	if (--link->references == 0)
		free(link);
}

/* ---- a table without rows ------------------------------------------------------------------------ */

static int connect_table(sqlite3 *db, void *arg, int argc, const char *const *argv,
			 sqlite3_vtab **ret_table, char **ret_error)
{
	struct table *table;
	int rc = sqlite3_declare_vtab(db, "CREATE TABLE unit (x)");

	(void)argc;
	(void)argv;
	(void)ret_error;
	if (rc != SQLITE_OK)
		return rc;
	table = sqlite3_malloc(sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	*table = (struct table){ .link = link_take(arg) };
	*ret_table = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	link_drop(((struct table *)base)->link);
	sqlite3_free(base);
	return SQLITE_OK;
}

static int plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	(void)info;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
	(void)base;
	*ret_cursor = sqlite3_malloc(sizeof(**ret_cursor));
	if (!*ret_cursor)
		return SQLITE_NOMEM;
	**ret_cursor = (sqlite3_vtab_cursor){ 0 };
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *cursor, int plan_number, const char *plan_text, int argc,
		  sqlite3_value **argv)
{
	(void)cursor;
	(void)plan_number;
	(void)plan_text;
	(void)argc;
	(void)argv;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	(void)cursor;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
	(void)cursor;
	return 1;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int i)
{
	(void)cursor;
	(void)context;
	(void)i;
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_id)
{
	(void)cursor;
	*ret_id = 0;
	return SQLITE_OK;
}

static int update(sqlite3_vtab *base, int argc, sqlite3_value **argv, sqlite3_int64 *ret_id)
{
	(void)base;
	(void)argc;
	(void)argv;
	(void)ret_id;
	return SQLITE_READONLY;
}

/* ---- what becomes of the transaction ------------------------------------------------------------- */

static struct events *events_of(sqlite3_vtab *base)
{
	return ((struct table *)base)->link->events;
}

static int on_begin(sqlite3_vtab *base)
{
	(void)base;
	return SQLITE_OK;
}

/* COMMIT asks. Refused, it is a rollback. */
static int on_sync(sqlite3_vtab *base)
{
	struct events *events = events_of(base);
	size_t unwritten = events ? events_unwritten(&events->base) : 0;

	if (!unwritten)
		return SQLITE_OK;
	sqlite3_free(base->zErrMsg);
	base->zErrMsg =
		sqlite3_mprintf("%d collected events are not written; call outbox_events_flush() "
				"before COMMIT; the transaction was rolled back",
				(int)unwritten);
	return SQLITE_CONSTRAINT_COMMITHOOK;
}

static int on_end(sqlite3_vtab *base)
{
	struct events *events = events_of(base);

	if (events) {
		events->n_frames = 0;
		events_end(&events->base);
	}
	return SQLITE_OK;
}

/* Those below it that are not known were opened before the unit. */
static int on_savepoint(sqlite3_vtab *base, int depth)
{
	struct events *events = events_of(base);

	if (!events)
		return SQLITE_OK;
	if ((size_t)depth < events->n_frames)
		events->n_frames = (size_t)depth;
	while (events->n_frames <= (size_t)depth) {
		if (sqlite_grow(&events->frames, &events->capacity, events->n_frames,
				sizeof(*events->frames), NULL) != OUTBOX_OK)
			return SQLITE_NOMEM;
		events->frames[events->n_frames++] =
			(struct frame){ events->base.count, events->base.written };
	}
	return SQLITE_OK;
}

static int on_release(sqlite3_vtab *base, int depth)
{
	struct events *events = events_of(base);

	if (events && (size_t)depth < events->n_frames)
		events->n_frames = (size_t)depth;
	return SQLITE_OK;
}

/* -1: the savepoint that is the transaction. */
static int on_rollback_to(sqlite3_vtab *base, int depth)
{
	struct events *events = events_of(base);
	size_t kept = depth < 0 ? 0 : (size_t)depth + 1;
	struct frame frame = { 0 };

	if (!events)
		return SQLITE_OK;
	if (kept && kept <= events->n_frames)
		frame = events->frames[depth];
	if (kept < events->n_frames)
		events->n_frames = kept;
	events_rewind(&events->base, frame.collected, frame.written);
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.iVersion = 2,
	.xConnect = connect_table,
	.xDisconnect = disconnect_table,
	.xBestIndex = plan,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next_row,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = row_id,
	.xUpdate = update,
	.xBegin = on_begin,
	.xSync = on_sync,
	.xCommit = on_end,
	.xRollback = on_end,
	.xSavepoint = on_savepoint,
	.xRelease = on_release,
	.xRollbackTo = on_rollback_to,
};

/* ---- the unit ------------------------------------------------------------------------------------ */

static int check(struct outbox_events *base, struct outbox_error *err)
{
	struct events *events = (struct events *)base;

	if (sqlite_is_closed(events->db))
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"events: the connection was closed; free the object before the connection");
	return sqlite3_get_autocommit(events->db) ? publish_check_autocommit(0, err) : OUTBOX_OK;
}

static int join(struct outbox_events *base, struct outbox_error *err)
{
	struct events *events = (struct events *)base;
	char sql[64];

	events->n_frames = 0;
	snprintf(sql, sizeof(sql), "DELETE FROM %s", events->name);
	return sqlite_script(events->db, sql, "events", err);
}

static void settle(struct outbox_events *base)
{
	(void)base;
}

static bool holds(const struct outbox_events *base)
{
	return ((const struct events *)base)->n_frames > 0;
}

static void free_events(struct outbox_events *base)
{
	struct events *events = (struct events *)base;

	if (events->link) {
		events->link->events = NULL;
		if (!sqlite_is_closed(events->db))
			sqlite3_create_module_v2(events->db, events->name, NULL, NULL, NULL);
		link_drop(events->link);
	}
	events_deinit(base);
	free(events->frames);
	free(events);
}

static const struct events_ops events_ops = {
	.check = check,
	.join = join,
	.settle = settle,
	.holds = holds,
	.savepoints = true,
	.free = free_events,
};

static int make_table(struct events *events, struct outbox_error *err)
{
	static atomic_uint number;
	int rc;

	events->link = malloc(sizeof(*events->link));
	if (!events->link)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*events->link = (struct link){ .events = events, .references = 2 };
	snprintf(events->name, sizeof(events->name), "outbox_events_%u",
		 atomic_fetch_add(&number, 1));
	/* Whether it succeeds or not, the module's reference is its own from now on. */
	rc = sqlite3_create_module_v2(events->db, events->name, &module, events->link, link_drop);
	return rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(events->db, rc, "events", err);
}

int outbox_events_new_sqlite(struct outbox_events **ret_events, sqlite3 *db,
			     const struct outbox_events_config *config, struct outbox_error *err)
{
	struct outbox_events_config view = events_config(config);
	struct outbox_publisher *publisher = NULL;
	struct events *events;
	int r = outbox_publisher_new_sqlite(&publisher, db, view.flags, err);

	if (r != OUTBOX_OK)
		return r;
	events = calloc(1, sizeof(*events));
	if (!events) {
		outbox_publisher_free(publisher);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	events->db = db;
	r = events_init(&events->base, &events_ops, publisher, &view, err);
	if (r == OUTBOX_OK)
		r = make_table(events, err);
	if (r == OUTBOX_OK)
		*ret_events = &events->base;
	else
		free_events(&events->base);
	return r;
}
