/* SPDX-License-Identifier: Apache-2.0 */

/*
 * outbox.so, a loadable extension of SQLite: publishing as SQL functions, on the connection that loads it. A thin layer on
 * the library's own functions, so that what is refused there is refused here, with the same words. No statement is kept:
 * a connection with one could not be closed.
 */
#include <outbox/sqlite.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "core/json.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT1

#define VERSION_MIN 3037000

int sqlite3_outbox_init(sqlite3 *db, char **ret_error, const sqlite3_api_routines *api);

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

/* With the code of SQLite's that was the reason, for programs that wait and try again. */
static void fail(sqlite3_context *context, const struct outbox_error *err)
{
	bool busy = err->status == OUTBOX_EBUSY;

	sqlite3_result_error(context, err->message, -1);
	if (busy)
		sqlite3_result_error_code(context, SQLITE_BUSY);
}

/* ---- the options of outbox_publish(), a JSON object ---------------------------------------------- */

enum option_type {
	OPTION_TEXT,
	OPTION_TIME,
	OPTION_PRIORITY,
	OPTION_PUBLISHED,
	OPTION_KIND,
	OPTION_HEADERS
};

#define TEXT(field)                                                         \
	{                                                                   \
#field, OPTION_TEXT, offsetof(struct outbox_message, field) \
	}
#define TIME(field)                                                         \
	{                                                                   \
#field, OPTION_TIME, offsetof(struct outbox_message, field) \
	}

static const struct option {
	const char *name;
	enum option_type type;
	size_t place; /* of texts and times */
} options[] = {
	TEXT(id),
	TEXT(content_type),
	TEXT(source),
	TEXT(subject),
	TEXT(topic),
	TEXT(correlation_id),
	TEXT(causation_id),
	TEXT(traceparent),
	TIME(event_time),
	TIME(due_at),
	TIME(expires_at),
	{ "priority", OPTION_PRIORITY, 0 },
	{ "published", OPTION_PUBLISHED, 0 },
	{ "kind", OPTION_KIND, 0 },
	{ "headers", OPTION_HEADERS, 0 },
};

static int refuse(const char *name, const char *wanted, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL, "%s: is not %s", name, wanted);
}

static bool is(const struct json_piece *value, const char *text)
{
	return value->size == strlen(text) && memcmp(value->at, text, value->size) == 0;
}

/* NULL, and why in err, unless it is a string that texts of ours can be. */
static const char *read_text(const char *name, const struct json_piece *value,
			     struct outbox_arena *arena, int *r, struct outbox_error *err)
{
	char *text = value->at[0] == '"' ? outbox_arena_alloc(arena, value->size) : NULL;

	if (value->at[0] != '"')
		*r = refuse(name, "a string", err);
	else if (!text)
		*r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	else if (json_string_read(value, text))
		*r = refuse(name, "text without NULs", err);
	return *r == OUTBOX_OK ? text : NULL;
}

static int read_number(const char *name, const struct json_piece *value, int64_t *ret_number,
		       struct outbox_error *err)
{
	char text[24] = "", *end;

	if (value->size < sizeof(text))
		memcpy(text, value->at, value->size);
	*ret_number = strtoll(text, &end, 10);
	return text[0] && !*end ? OUTBOX_OK : refuse(name, "an integer", err);
}

static int read_kind(const struct json_piece *value, int *ret_kind, struct outbox_error *err)
{
	if (is(value, "\"event\""))
		*ret_kind = OUTBOX_KIND_EVENT;
	else if (is(value, "\"command\""))
		*ret_kind = OUTBOX_KIND_COMMAND;
	else
		return refuse("kind", "\"event\" or \"command\"", err);
	return OUTBOX_OK;
}

static int read_headers(const struct json_piece *value, struct outbox_arena *arena,
			struct outbox_message *m, struct outbox_error *err)
{
	char *text = outbox_arena_copy(arena, value->at, value->size);
	struct outbox_header *headers = NULL;
	int r;

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = headers_parse(text, arena, &headers, &m->n_headers, err);
	m->headers = headers;
	return r;
}

static int read_option(const struct option *option, const struct json_piece *value,
		       struct outbox_arena *arena, struct outbox_message *m,
		       struct outbox_error *err)
{
	int64_t number = 0;
	int r = OUTBOX_OK;

	switch (option->type) {
	case OPTION_TEXT:
		*(const char **)((char *)m + option->place) =
			read_text(option->name, value, arena, &r, err);
		return r;
	case OPTION_TIME:
		return read_number(option->name, value, (int64_t *)((char *)m + option->place), err);
	case OPTION_PRIORITY:
		r = read_number(option->name, value, &number, err);
		m->priority = number < -999 ? -999 : number > 999 ? 999 : (int)number;
		return r;
	case OPTION_PUBLISHED:
		m->published = is(value, "true");
		return m->published || is(value, "false")
			       ? OUTBOX_OK
			       : refuse("published", "true or false", err);
	case OPTION_KIND:
		return read_kind(value, &m->kind, err);
	default:
		return read_headers(value, arena, m, err);
	}
}

static const struct option *find_option(const struct json_piece *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		size_t length = strlen(options[i].name);

		if (name->size == length + 2 && memcmp(name->at + 1, options[i].name, length) == 0)
			return &options[i];
	}
	return NULL;
}

static int read_options(const char *json, size_t size, struct outbox_arena *arena,
			struct outbox_message *m, struct outbox_error *err)
{
	struct json_members members;
	struct json_piece name, value;
	int r = json_text_check(json, size, err);

	if (r != OUTBOX_OK) {
		outbox_wrap(err, "options");
		return r;
	}
	if (!json_members_begin(&members, json, size))
		return refuse("options", "a JSON object", err);
	while (r == OUTBOX_OK && json_members_next(&members, &name, &value)) {
		const struct option *option = find_option(&name);

		if (!option)
			r = outbox_fail(
				err, OUTBOX_EINVAL,
				"options: %.*s is unknown; there are: id, content_type, source, subject, "
				"topic, correlation_id, causation_id, traceparent, event_time, due_at, "
				"expires_at, priority, published, kind, headers",
				(int)(name.size < 60 ? name.size : 60), name.at);
		else if (!is(&value, "null"))
			r = read_option(option, &value, arena, m, err);
	}
	return r;
}

/* ---- the functions ------------------------------------------------------------------------------- */

/* Texts of ours end at a NUL: what stands behind one would be lost, and two ids could become one. NULL where it is NULL. */
static int text_of(const char *name, sqlite3_value *value, const char **ret_text,
		   struct outbox_error *err)
{
	const char *text = (const char *)sqlite3_value_text(value);

	if (!text && sqlite3_value_type(value) != SQLITE_NULL)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_text = text;
	return !text || strlen(text) == (size_t)sqlite3_value_bytes(value)
		       ? OUTBOX_OK
		       : refuse(name, "text without NULs", err);
}

static int read_message(int argc, sqlite3_value **argv, struct outbox_arena *arena,
			struct outbox_message *m, struct outbox_error *err)
{
	bool bytes = sqlite3_value_type(argv[2]) == SQLITE_BLOB;
	const char *given = NULL;
	int r = text_of("type", argv[0], &m->type, err);

	if (r == OUTBOX_OK)
		r = text_of("key", argv[1], &m->key, err);
	if (r == OUTBOX_OK && argc > 3)
		r = text_of("options", argv[3], &given, err);
	if (r == OUTBOX_OK && given)
		r = read_options(given, strlen(given), arena, m, err);
	if (r != OUTBOX_OK)
		return r;
	if (sqlite3_value_type(argv[2]) == SQLITE_NULL)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"payload: is NULL; give text, JSON unless content_type says otherwise, or a BLOB");
	m->data = bytes ? sqlite3_value_blob(argv[2]) : sqlite3_value_text(argv[2]);
	m->size = (size_t)sqlite3_value_bytes(argv[2]);
	if (bytes && !m->content_type)
		m->content_type = DEFAULT_BYTES_TYPE;
	return OUTBOX_OK;
}

static void publish(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new((size_t)1 << 24);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_published published;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = arena ? read_message(argc, argv, arena, &m, &err)
		      : outbox_fail(&err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = outbox_publish_sqlite_batch(sqlite3_context_db_handle(context), &m, 1, 0,
						&published, &err);
	if (r == OUTBOX_OK)
		sqlite3_result_text(context, published.id, -1, SQLITE_TRANSIENT);
	else
		fail(context, &err);
}

static void cancel(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const char *id, *reason = NULL;
	bool done = false;
	int r = text_of("id", argv[0], &id, &err);

	if (r == OUTBOX_OK && argc > 1)
		r = text_of("reason", argv[1], &reason, &err);
	if (r == OUTBOX_OK)
		r = outbox_cancel_sqlite(sqlite3_context_db_handle(context), id, reason, &done, &err);
	if (r == OUTBOX_OK)
		sqlite3_result_int(context, done);
	else
		fail(context, &err);
}

static void accept(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const char *consumer, *id;
	bool first = false;
	int r = text_of("consumer", argv[0], &consumer, &err);

	(void)argc;
	if (r == OUTBOX_OK)
		r = text_of("id", argv[1], &id, &err);
	if (r == OUTBOX_OK)
		r = outbox_inbox_accept_sqlite(sqlite3_context_db_handle(context), consumer, id,
					       &first, &err);
	if (r == OUTBOX_OK)
		sqlite3_result_int(context, first);
	else
		fail(context, &err);
}

static void make_id(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct random_state *random = sqlite3_user_data(context);
	char id[37];

	(void)argc;
	(void)argv;
	outbox_uuid(outbox_clock_system(), &random->base, id);
	sqlite3_result_text(context, id, -1, SQLITE_TRANSIENT);
}

/* Not in triggers and views: they would work only for connections that have loaded the extension. */
static int add(sqlite3 *db, const char *name, int argc,
	       void (*function)(sqlite3_context *, int, sqlite3_value **))
{
	return sqlite3_create_function_v2(db, name, argc, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
					  function, NULL, NULL, NULL);
}

static int add_uuid(sqlite3 *db)
{
	struct random_state *random = malloc(sizeof(*random));

	if (!random)
		return SQLITE_NOMEM;
	random_init(random, random_system_seed());
	/* freed by SQLite, also when this fails */
	return sqlite3_create_function_v2(db, "outbox_uuid7", 0, SQLITE_UTF8 | SQLITE_INNOCUOUS,
					  random, make_id, NULL, NULL, free);
}

__attribute__((visibility("default"))) int sqlite3_outbox_init(sqlite3 *db, char **ret_error,
							       const sqlite3_api_routines *api)
{
	int rc;

	SQLITE_EXTENSION_INIT2(api);
	if (sqlite3_libversion_number() < VERSION_MIN) {
		*ret_error =
			sqlite3_mprintf("outbox: SQLite %s is too old; 3.37 or later is required",
					sqlite3_libversion());
		return SQLITE_ERROR;
	}
	rc = add(db, "outbox_publish", 3, publish);
	if (rc == SQLITE_OK)
		rc = add(db, "outbox_publish", 4, publish);
	if (rc == SQLITE_OK)
		rc = add(db, "outbox_cancel", 1, cancel);
	if (rc == SQLITE_OK)
		rc = add(db, "outbox_cancel", 2, cancel);
	if (rc == SQLITE_OK)
		rc = add(db, "outbox_inbox_accept", 2, accept);
	return rc == SQLITE_OK ? add_uuid(db) : rc;
}
