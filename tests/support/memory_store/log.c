/* SPDX-License-Identifier: Apache-2.0 */
#include "core/key_hash.h"
#include "core/message.h"
#include "memory_store/db.h"

#include <stdlib.h>
#include <string.h>

struct memory_message *memory_log_row(const struct memory_db *db, int64_t seq)
{
	if (seq < db->base || seq >= db->base + (int64_t)db->n_rows)
		return NULL;
	return db->rows[seq - db->base];
}

int64_t memory_log_last(const struct memory_db *db)
{
	return db->base + (int64_t)db->n_rows - 1;
}

static struct memory_message **id_bucket(const struct memory_db *db, const char *id)
{
	return &db->ids[memory_hash(id) & (MEMORY_BUCKETS - 1)];
}

struct memory_message *memory_log_find(const struct memory_db *db, const char *id)
{
	struct memory_message *row = *id_bucket(db, id);

	while (row && strcmp(row->m.id, id) != 0)
		row = row->next_id;
	return row;
}

/* Moves a text into the block behind the message. */
static const char *put_text(char **at, const char *text)
{
	char *copy = *at;
	size_t size;

	if (!text)
		return NULL;
	size = strlen(text) + 1;
	memcpy(copy, text, size);
	*at += size;
	return copy;
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* A copy of the message in one block of memory, headers first, since they want alignment. */
struct memory_message *memory_log_copy(const struct outbox_message *m, const char *id)
{
	const char *const texts[] = { m->type,         m->key,
				      m->content_type, id,
				      m->source,       m->subject,
				      m->topic,        m->correlation_id,
				      m->causation_id, m->traceparent };
	size_t headers = m->n_headers * sizeof(struct outbox_header);
	size_t size = sizeof(struct memory_message) + headers + m->size + 1;
	struct outbox_header *copies;
	struct memory_message *row;
	char *at;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		size += text_size(texts[i]);
	for (size_t i = 0; i < m->n_headers; i++)
		size += text_size(m->headers[i].name) + text_size(m->headers[i].value);

	row = memory_alloc(size);
	row->m = *m;
	copies = (struct outbox_header *)(row + 1);
	at = (char *)(copies + m->n_headers);
	for (size_t i = 0; i < m->n_headers; i++) {
		copies[i].name = put_text(&at, m->headers[i].name);
		copies[i].value = put_text(&at, m->headers[i].value);
	}
	row->m.headers = m->n_headers ? copies : NULL;
	row->m.type = put_text(&at, m->type);
	row->m.key = put_text(&at, m->key);
	row->m.content_type = put_text(&at, m->content_type);
	row->m.id = put_text(&at, id);
	row->m.source = put_text(&at, m->source);
	row->m.subject = put_text(&at, m->subject);
	row->m.topic = put_text(&at, m->topic);
	row->m.correlation_id = put_text(&at, m->correlation_id);
	row->m.causation_id = put_text(&at, m->causation_id);
	row->m.traceparent = put_text(&at, m->traceparent);
	row->m.data = at;
	if (m->size)
		memcpy(at, m->data, m->size);
	return row;
}

void memory_log_free(struct memory_message *row)
{
	if (row) {
		memory_amended_free(row);
		free(row->cancelled);
	}
	free(row);
}

struct memory_message *memory_log_insert(struct memory_db *db, const struct outbox_message *message,
					 outbox_time now, struct outbox_random *random,
					 struct outbox_clock *clock)
{
	struct outbox_message m = message_view(message);
	struct memory_message *row, **bucket;
	char id[37];

	if (!m.id)
		outbox_uuid(clock, random, id);
	row = memory_log_copy(&m, m.id ? m.id : id);
	row->key_hash = key_hash(row->m.key ? row->m.key : row->m.id);
	row->created_at = now;
	if (!row->m.event_time)
		row->m.event_time = now;
	if (!row->m.kind)
		row->m.kind = OUTBOX_KIND_EVENT;

	bucket = id_bucket(db, row->m.id);
	row->next_id = *bucket;
	*bucket = row;

	row->seq = memory_log_next(db);
	row->again = row->seq <= memory_log_last(db);
	db->n_again += row->again;
	if (!row->again) {
		db->rows = memory_grow(db->rows, db->n_rows, &db->cap_rows,
				       sizeof(struct memory_message *));
		db->n_rows++;
	}
	db->rows[row->seq - db->base] = row;
	if ((size_t)(row->seq - db->base) < db->n_gone)
		db->n_gone = (size_t)(row->seq - db->base);
	for (size_t i = 0; i < db->n_targets; i++)
		memory_target_reserve(db->targets[i], db->n_rows);
	return row;
}

void memory_log_commit(struct memory_db *db, struct memory_message *row)
{
	row->committed = ++db->commits;
	db->count++;
	if (row->seq > db->visible)
		db->visible = row->seq;
}

void memory_log_remove(struct memory_db *db, struct memory_message *row)
{
	struct memory_message **at = id_bucket(db, row->m.id);

	while (*at != row)
		at = &(*at)->next_id;
	*at = row->next_id;
	if (row->committed)
		db->count--;
	db->n_again -= row->again;
	db->rows[row->seq - db->base] = NULL;
	memory_log_free(row);
}

void memory_log_trim(struct memory_db *db)
{
	size_t gone = db->n_gone, left;

	while (gone < db->n_rows && !db->rows[gone])
		gone++;
	db->n_gone = gone;
	if (gone < 64 || gone < db->n_rows / 2)
		return;

	left = db->n_rows - gone;
	memmove(db->rows, db->rows + gone, left * sizeof(*db->rows));
	for (size_t i = 0; i < db->n_targets; i++) {
		struct memory_delivery *deliveries = db->targets[i]->deliveries;

		memmove(deliveries, deliveries + gone, left * sizeof(*deliveries));
		memset(deliveries + left, 0, gone * sizeof(*deliveries));
	}
	db->base += (int64_t)gone;
	db->n_rows = left;
	db->n_gone = 0;
}

/* Copies one text; false when the arena is full. */
static bool take_text(struct outbox_arena *arena, const char **text)
{
	const char *from = *text;

	*text = outbox_arena_text(arena, from);
	return !from || *text;
}

static bool take_headers(struct outbox_arena *arena, struct outbox_message *m)
{
	struct outbox_header *headers;

	if (!m->n_headers)
		return true;
	headers = outbox_arena_copy(arena, m->headers, m->n_headers * sizeof(*headers));
	if (!headers)
		return false;
	for (size_t i = 0; i < m->n_headers; i++) {
		if (!take_text(arena, &headers[i].name) || !take_text(arena, &headers[i].value))
			return false;
	}
	m->headers = headers;
	return true;
}

bool memory_log_read(const struct memory_db *db, const struct memory_message *row, bool payload,
		     struct outbox_arena *arena, struct outbox_claimed *ret_message)
{
	struct outbox_claimed claimed = { .message = row->m,
					  .seq = row->seq,
					  .created_at = row->created_at };
	struct outbox_message *m = &claimed.message;
	const char **const texts[] = {
		&m->type,    &m->key,   &m->content_type,   &m->id,           &m->source,
		&m->subject, &m->topic, &m->correlation_id, &m->causation_id, &m->traceparent
	};

	m->struct_size = sizeof(*m);
	if (!m->content_type)
		m->content_type = message_is_text(m) ? DEFAULT_CONTENT_TYPE : DEFAULT_BYTES_TYPE;
	if (!m->source)
		m->source = db->source;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!take_text(arena, texts[i]))
			return false;
	}
	if (!take_headers(arena, m))
		return false;
	if (payload) {
		m->data = outbox_arena_copy(arena, m->data, m->size);
		if (!m->data)
			return false;
	} else {
		m->data = NULL;
		m->size = 0;
	}
	*ret_message = claimed;
	return true;
}
