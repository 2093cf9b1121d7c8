/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/insert.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdlib.h>

static const char insert_text[] =
	"INSERT INTO outbox_message (id, type, key, kind, published, priority, created_at, event_time,"
	" due_at, expires_at, content_type, source, subject, topic, correlation_id, causation_id,"
	" traceparent, headers, payload, payload_bin)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
	" ?19, ?20) ON CONFLICT (id) DO NOTHING";

static int no_outbox(sqlite3 *db, int rc, struct outbox_error *err)
{
	if (rc == SQLITE_ERROR)
		return outbox_fail_native(err, OUTBOX_ESCHEMA, rc,
					  "no outbox in this database that this program knows (%s); run: "
					  "outbox init, or outbox upgrade",
					  sqlite3_errmsg(db));
	return sqlite_fail(db, rc, "publish", err);
}

int sqlite_insert_init(struct sqlite_insert *insert, sqlite3 *db, struct outbox_error *err)
{
	sqlite3_stmt *prepared = NULL;
	int rc = sqlite3_prepare_v2(db, insert_text, sizeof(insert_text), &prepared, NULL);

	if (rc != SQLITE_OK)
		return no_outbox(db, rc, err);
	*insert = (struct sqlite_insert){ .db = db, .insert = prepared };
	return OUTBOX_OK;
}

void sqlite_insert_deinit(struct sqlite_insert *insert)
{
	sqlite3_finalize(insert->insert);
	sqlite3_finalize(insert->find);
	insert->insert = insert->find = NULL;
}

static int bind_message(sqlite3_stmt *q, const struct outbox_message *m, const char *id,
			const char *headers, outbox_time now)
{
	const char *kind = m->kind == OUTBOX_KIND_COMMAND ? kind_name(m->kind) : NULL;
	const char *data = m->data ? m->data : "";
	bool text = message_is_text(m);

	return sqlite_bind(q, ARGS(ARG_TEXT(id), ARG_TEXT(m->type), ARG_TEXT(m->key), ARG_TEXT(kind),
				   ARG_TIME(m->published != 0), ARG_TIME(m->priority), ARG_INT(now),
				   ARG_INT(m->event_time ? m->event_time : now), ARG_TIME(m->due_at),
				   ARG_TIME(m->expires_at), ARG_TEXT(m->content_type),
				   ARG_TEXT(m->source), ARG_TEXT(m->subject), ARG_TEXT(m->topic),
				   ARG_TEXT(m->correlation_id), ARG_TEXT(m->causation_id),
				   ARG_TEXT(m->traceparent), ARG_TEXT(headers),
				   ARG_STRING(text ? data : NULL, m->size),
				   ARG_BYTES(text ? NULL : data, m->size)));
}

static int find(struct sqlite_insert *insert, const char *id, int64_t *ret_seq,
		struct outbox_error *err)
{
	int rc = SQLITE_OK;

	if (!insert->find)
		rc = sqlite3_prepare_v2(insert->db, "SELECT seq FROM outbox_message WHERE id = ?1",
					-1, &insert->find, NULL);
	if (rc != SQLITE_OK)
		return no_outbox(insert->db, rc, err);
	sqlite3_bind_text(insert->find, 1, id, -1, SQLITE_STATIC);
	rc = sqlite3_step(insert->find);
	if (rc == SQLITE_ROW)
		*ret_seq = sqlite3_column_int64(insert->find, 0);
	sqlite3_reset(insert->find);
	if (rc == SQLITE_ROW)
		return OUTBOX_OK;
	if (rc == SQLITE_DONE)
		return outbox_fail(err, OUTBOX_EINTERNAL, "publish: nothing written, nothing found");
	return sqlite_fail(insert->db, rc, "publish", err);
}

static int refused(sqlite3 *db, int rc, struct outbox_error *err)
{
	/* The schema's constraints are named by their remedy. */
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return outbox_fail_native(err, OUTBOX_EINVAL, rc, "the log refuses the message: %s",
					  sqlite3_errmsg(db));
	return sqlite_fail(db, rc, "publish", err);
}

int sqlite_insert_message(struct sqlite_insert *insert, const struct outbox_message *message,
			  const char *id, outbox_time now, struct sqlite_inserted *ret_inserted,
			  struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf headers = BUF_INIT(HEADERS_TEXT_MAX);
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = insert->insert;
	int64_t before = sqlite3_last_insert_rowid(insert->db);
	struct sqlite_inserted done = { 0 };
	int r, rc;

	r = headers_format(message->headers, message->n_headers, &headers, err);
	if (r != OUTBOX_OK)
		return r;
	rc = bind_message(q, message, id, message->n_headers ? buf_str(&headers) : NULL, now);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_DONE)
		return refused(insert->db, rc, err);
	done.repeated = sqlite3_changes(insert->db) == 0;
	if (!done.repeated) {
		done.seq = sqlite3_last_insert_rowid(insert->db);
		/* The application may still want the rowid of its own last row. */
		sqlite3_set_last_insert_rowid(insert->db, before);
	} else {
		r = find(insert, id, &done.seq, err);
		if (r != OUTBOX_OK)
			return r;
	}
	*ret_inserted = done;
	return OUTBOX_OK;
}

/* ---- the op ------------------------------------------------------------------------------------- */

static int append_messages(struct sqlite_store *s, const struct outbox_message *messages, size_t n,
			   struct sqlite_inserted *done, struct outbox_error *err)
{
	_cleanup_(sqlite_insert_deinit) struct sqlite_insert insert = { 0 };
	outbox_time now = sqlite_now(s);
	int r = sqlite_insert_init(&insert, s->db, err);

	for (size_t i = 0; i < n && r == OUTBOX_OK; i++) {
		struct outbox_message m = message_view(&messages[i]);
		char id[37];

		if (!m.id)
			outbox_uuid(s->clock, s->random, id);
		r = sqlite_insert_message(&insert, &m, m.id ? m.id : id, now, &done[i], err);
	}
	return r;
}

int sqlite_append(struct outbox_store *store, const struct outbox_message *messages,
		  size_t n_messages, int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct sqlite_inserted *done = NULL;
	struct sqlite_store *s = sqlite_of(store);
	int r;

	done = calloc(n_messages ? n_messages : 1, sizeof(*done));
	if (!done)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_end(s, append_messages(s, messages, n_messages, done, err), err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		if (ret_seqs)
			ret_seqs[i] = done[i].seq;
		if (ret_repeated)
			ret_repeated[i] = done[i].repeated;
	}
	return r;
}
