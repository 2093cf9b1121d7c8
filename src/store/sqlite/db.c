/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/db.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT(name, text) text,
static const char *const statement_texts[] = {
	/* clang-format off */
	STATEMENTS_BASE(TEXT)
	STATEMENTS_RELAY(TEXT)
	STATEMENTS_LOOK(TEXT)
	/* clang-format on */
};

const char *sqlite_statement_text(enum sqlite_statement id)
{
	return statement_texts[id];
}

/* A status is what the caller must do next, so many codes become few. Without a text it is SQLite's. */
static const struct {
	int code, status;
	const char *text;
} meanings[] = {
	{ SQLITE_BUSY, OUTBOX_EBUSY, "the database is locked by another connection" },
	{ SQLITE_LOCKED, OUTBOX_EBUSY, NULL },
	{ SQLITE_PROTOCOL, OUTBOX_EBUSY, NULL },
	{ SQLITE_FULL, OUTBOX_EFULL, "the disk is full; nothing is lost, make room" },
	{ SQLITE_IOERR, OUTBOX_ECONN, NULL },
	{ SQLITE_CANTOPEN, OUTBOX_ECONN, NULL },
	{ SQLITE_INTERRUPT, OUTBOX_ECONN, NULL },
	{ SQLITE_CORRUPT, OUTBOX_EPROTO, NULL },
	{ SQLITE_NOTADB, OUTBOX_EPROTO, "the file is not an SQLite database" },
	{ SQLITE_FORMAT, OUTBOX_EPROTO, NULL },
	{ SQLITE_READONLY, OUTBOX_EAUTH,
	  "the database cannot be written; check the permissions of the file and its folder" },
	{ SQLITE_PERM, OUTBOX_EAUTH, NULL },
	{ SQLITE_AUTH, OUTBOX_EAUTH, NULL },
	{ SQLITE_NOMEM, OUTBOX_ENOMEM, NULL },
	{ SQLITE_CONSTRAINT, OUTBOX_EINVAL, NULL },
	{ SQLITE_TOOBIG, OUTBOX_EINVAL, NULL },
	{ SQLITE_MISMATCH, OUTBOX_EINVAL, NULL },
};

int sqlite_fail(sqlite3 *db, int rc, const char *what, struct outbox_error *err)
{
	const char *text =
		db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].code == (rc & 0xff))
			return outbox_fail_native(err, meanings[i].status, rc, "%s: %s", what,
						  meanings[i].text ? meanings[i].text : text);
	if (rc == SQLITE_ERROR && strstr(text, "no such table: outbox_inbox"))
		return outbox_fail_native(err, OUTBOX_ESCHEMA, rc,
					  "%s: no inbox here (%s); run: outbox init --inbox", what,
					  text);
	if (rc == SQLITE_ERROR && strstr(text, "no such table: outbox_"))
		return outbox_fail_native(err, OUTBOX_ESCHEMA, rc,
					  "%s: no outbox here (%s); run: outbox init", what, text);
	return outbox_fail_native(err, OUTBOX_EINTERNAL, rc, "%s: %s", what, text);
}

static int bind_one(sqlite3_stmt *statement, int i, const struct sqlite_arg *arg)
{
	/* Static: every caller's text outlives its statement's run. */
	if (arg->type == DB_ARG_INT)
		return sqlite3_bind_int64(statement, i, arg->number);
	if (!arg->text)
		return sqlite3_bind_null(statement, i);
	if (arg->type == DB_ARG_TEXT)
		return sqlite3_bind_text(statement, i, arg->text, -1, SQLITE_STATIC);
	if (arg->type == DB_ARG_STRING)
		return sqlite3_bind_text64(statement, i, arg->text, (uint64_t)arg->number,
					   SQLITE_STATIC, SQLITE_UTF8);
	return sqlite3_bind_blob64(statement, i, arg->text, (uint64_t)arg->number, SQLITE_STATIC);
}

int sqlite_bind(sqlite3_stmt *statement, const struct sqlite_args *args)
{
	int n = sqlite3_bind_parameter_count(statement);
	int rc = SQLITE_OK;

	for (int i = 0; i < n && rc == SQLITE_OK; i++)
		rc = bind_one(statement, i + 1, &args->values[i]);
	return rc;
}

static int prepare(struct sqlite_store *s, enum sqlite_statement id, struct outbox_error *err)
{
	int rc;

	if (s->statements[id])
		return OUTBOX_OK;
	rc = sqlite3_prepare_v3(s->db, sqlite_statement_text(id), -1, SQLITE_PREPARE_PERSISTENT,
				&s->statements[id], NULL);
	return rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(s->db, rc, "prepare", err);
}

int sqlite_query(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		 sqlite3_stmt **ret_statement, struct outbox_error *err)
{
	static const struct sqlite_args none;
	sqlite3_stmt **cached = &s->statements[id];
	int rc;

	/* A column that could not be read for want of memory rolls back everything without a word:
	 * what follows would commit alone. */
	if (s->inside && sqlite3_get_autocommit(s->db))
		return sqlite_fail(s->db, SQLITE_NOMEM, "the transaction was rolled back", err);
	rc = prepare(s, id, err);
	if (rc != OUTBOX_OK)
		return rc;
	sqlite3_reset(*cached);
	rc = sqlite_bind(*cached, args ? args : &none);
	if (rc != SQLITE_OK)
		return sqlite_fail(s->db, rc, "bind", err);
	*ret_statement = *cached;
	return OUTBOX_OK;
}

bool sqlite_next(sqlite3_stmt *statement, int *r, struct outbox_error *err)
{
	int rc;

	if (*r != OUTBOX_OK)
		return false;
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		return true;
	if (rc != SQLITE_DONE)
		*r = sqlite_fail(sqlite3_db_handle(statement), rc, "store", err);
	sqlite3_reset(statement);
	return false;
}

int sqlite_run(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
	       struct outbox_error *err)
{
	sqlite3_stmt *statement = NULL;
	int r = sqlite_query(s, id, args, &statement, err);

	while (sqlite_next(statement, &r, err))
		;
	return r;
}

int sqlite_number(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		  int64_t fallback, int64_t *ret_number, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, id, args, &q, err);
	bool row = sqlite_next(q, &r, err);

	if (r != OUTBOX_OK)
		return r;
	if (!row || sqlite3_column_type(q, 0) == SQLITE_NULL)
		*ret_number = fallback;
	else
		*ret_number = sqlite3_column_int64(q, 0);
	return OUTBOX_OK;
}

int sqlite_string(struct sqlite_store *s, enum sqlite_statement id, const struct sqlite_args *args,
		  char *out, size_t size, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, id, args, &q, err);
	bool row = sqlite_next(q, &r, err);

	snprintf(out, size, "%s", row ? sqlite_peek(q, 0, &r, err) : "");
	return r;
}

int sqlite_script(sqlite3 *db, const char *sql, const char *what, struct outbox_error *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? OUTBOX_OK : sqlite_fail(db, rc, what, err);
}

int sqlite_begin(struct sqlite_store *s, enum db_mode mode, struct outbox_error *err)
{
	/* The way out first: when memory has run out inside, it is too late to prepare it. */
	int r = prepare(s, SQL_ROLLBACK, err);

	/* After a change of the schema even that is prepared again: what could not be ended then is now. */
	if (r == OUTBOX_OK && !sqlite3_get_autocommit(s->db))
		r = sqlite_run(s, SQL_ROLLBACK, NULL, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_run(s, mode == DB_WRITE ? SQL_BEGIN_WRITE : SQL_BEGIN_READ, NULL, err);
	s->inside = r == OUTBOX_OK;
	return r;
}

int sqlite_end(struct sqlite_store *s, int r, struct outbox_error *err)
{
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_COMMIT, NULL, err);
	s->inside = false;
	/* SQLite has rolled back by itself after some failures: then there is nothing to end. */
	if (r != OUTBOX_OK && !sqlite3_get_autocommit(s->db))
		(void)!sqlite_run(s, SQL_ROLLBACK, NULL, NULL);
	return r;
}

int sqlite_in_place(struct sqlite_store *s, struct outbox_error *err)
{
	const char *file = sqlite3_db_filename(s->db, "main");
	struct stat st;
	int moved = 0;

	/* SQLite compares the inode with that of its descriptor, but not the device: a file system that
	 * was mounted over the folder may have the same number. */
	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (!moved && (!file || (stat(file, &st) == 0 && st.st_dev == s->device)))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONN,
			   "the database %s was moved, removed or replaced while it was open; put it "
			   "back, beside its -wal",
			   s->path);
}

int sqlite_text(sqlite3_stmt *statement, int column, struct outbox_arena *arena,
		const char **ret_text, struct outbox_error *err)
{
	int r = OUTBOX_OK;
	const char *text = sqlite_look(statement, column, &r, err);
	char *copy;

	if (!text) {
		if (r == OUTBOX_OK)
			*ret_text = NULL;
		return r;
	}
	copy = outbox_arena_copy(arena, text, (size_t)sqlite3_column_bytes(statement, column));
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the rows asked for");
	*ret_text = copy;
	return OUTBOX_OK;
}

const char *sqlite_look(sqlite3_stmt *statement, int column, int *r, struct outbox_error *err)
{
	bool null = sqlite3_column_type(statement, column) == SQLITE_NULL;
	const unsigned char *text = null ? NULL : sqlite3_column_text(statement, column);

	if (!text && !null && *r == OUTBOX_OK)
		*r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory for a text");
	return (const char *)text;
}

const char *sqlite_peek(sqlite3_stmt *statement, int column, int *r, struct outbox_error *err)
{
	const char *text = sqlite_look(statement, column, r, err);

	return text ? text : "";
}

int sqlite_keep(const char **const *texts, size_t n, struct outbox_arena *arena,
		struct outbox_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (*texts[i] && !(*texts[i] = outbox_arena_text(arena, *texts[i])))
			return outbox_fail(err, OUTBOX_ENOMEM,
					   "out of memory for the rows asked for");
	}
	return OUTBOX_OK;
}

int sqlite_grow(void *list, size_t *capacity, size_t count, size_t size, struct outbox_error *err)
{
	size_t larger = *capacity ? *capacity * 2 : 64;
	void *elements;

	if (count < *capacity)
		return OUTBOX_OK;
	memcpy(&elements, list, sizeof(elements));
	elements = realloc(elements, larger * size);
	if (!elements)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	memcpy(list, &elements, sizeof(elements));
	*capacity = larger;
	return OUTBOX_OK;
}

int64_t sqlite_wal_size(struct sqlite_store *s)
{
	const char *file = sqlite3_db_filename(s->db, "main");
	struct stat st;

	/* Only the size: opening and closing the file ourselves would drop SQLite's locks. */
	if (!file || !file[0] || stat(sqlite3_filename_wal(file), &st) != 0)
		return 0;
	return st.st_size;
}
