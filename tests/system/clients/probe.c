/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the library makes of the clients' cases (clients/testdata/cases.json): client_probe DATABASE < CASES
 *
 * Each message of "publish" is published in a transaction of its own. To stdout, as JSON: why each of
 * "refused" was refused, and how each of "webhooks" is signed.
 */

#include "base/base64.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/message.h"
#include "transport/http/sign.h"

#include <outbox/sqlite.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS 100

struct call {
	struct outbox_message message;
	struct outbox_header headers[HEADERS];
};

static void die(const char *what)
{
	fprintf(stderr, "client_probe: %s\n", what);
	exit(1);
}

/* {"repeat": "x", "times": 3} is "xxx". */
static const char *text_of(json_t *value)
{
	json_int_t times = json_integer_value(json_object_get(value, "times"));
	struct buf text = BUF_INIT((size_t)64 << 20);

	if (!json_is_object(value))
		return json_string_value(value);
	for (; times > 0; times--)
		buf_text(&text, json_string_value(json_object_get(value, "repeat")));
	return buf_str(&text);
}

static const char *field(json_t *message, const char *name)
{
	return text_of(json_object_get(message, name));
}

static outbox_time time_of(json_t *message, const char *name)
{
	const char *text = field(message, name);
	outbox_time time = 0;

	return text && time_parse(text, 0, &time, NULL) != OUTBOX_OK ? -1 : time;
}

static void read_payload(json_t *message, struct outbox_message *m)
{
	json_t *data = json_object_get(message, "data");
	const char *base64 = field(message, "payload_base64");
	unsigned char *bytes;

	m->data =
		data ? json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY) : field(message, "payload");
	m->size = m->data ? strlen(m->data) : 0;
	if (!base64)
		return;
	bytes = malloc(strlen(base64) + 1);
	if (!bytes || !base64_decode(base64, strlen(base64), bytes, &m->size))
		die("payload_base64 cannot be read");
	m->data = bytes;
}

static void read_headers(json_t *message, struct call *call)
{
	const char *name;
	json_t *value;

	call->message.headers = call->headers;
	json_object_foreach(json_object_get(message, "headers"), name, value)
	{
		if (call->message.n_headers == HEADERS)
			die("too many headers");
		call->headers[call->message.n_headers++] =
			(struct outbox_header){ name, text_of(value) };
	}
}

static void set_text(json_t *message, const char *name, const char **place)
{
	if (json_object_get(message, name))
		*place = field(message, name);
}

static int read_call(json_t *one, struct call *call, struct outbox_error *err)
{
	json_t *message = json_object_get(one, "message"),
	       *handling = json_object_get(one, "handling");
	struct outbox_message *m = &call->message;
	const char *kind = field(message, "kind");
	struct outbox_message parent = OUTBOX_MESSAGE_INIT;

	*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	parent.id = field(handling, "id");
	parent.correlation_id = field(handling, "correlationid");
	parent.traceparent = field(handling, "traceparent");
	if (handling && outbox_message_caused_by(m, &parent, err) != OUTBOX_OK)
		return err->status;
	set_text(message, "type", &m->type);
	set_text(message, "key", &m->key);
	set_text(message, "id", &m->id);
	set_text(message, "content_type", &m->content_type);
	set_text(message, "source", &m->source);
	set_text(message, "subject", &m->subject);
	set_text(message, "topic", &m->topic);
	set_text(message, "correlation_id", &m->correlation_id);
	set_text(message, "causation_id", &m->causation_id);
	set_text(message, "traceparent", &m->traceparent);
	m->kind = !kind                          ? OUTBOX_KIND_UNSET
		  : strcmp(kind, "event") == 0   ? OUTBOX_KIND_EVENT
		  : strcmp(kind, "command") == 0 ? OUTBOX_KIND_COMMAND
						 : 99;
	m->published = json_is_true(json_object_get(message, "published"));
	m->priority = (int)json_integer_value(json_object_get(message, "priority"));
	m->event_time = time_of(message, "event_time");
	m->due_at = time_of(message, "due_at");
	m->expires_at = time_of(message, "expires_at");
	read_payload(message, m);
	read_headers(message, call);
	return OUTBOX_OK;
}

static void publish(sqlite3 *db, json_t *one)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct call call = { 0 };

	if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL))
		die(sqlite3_errmsg(db));
	if (read_call(one, &call, &err) || outbox_publish_sqlite(db, &call.message, &err))
		die(err.message);
	if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
		die(sqlite3_errmsg(db));
}

static bool has_nul(json_t *message)
{
	const char *name;
	json_t *value;

	json_object_foreach(message, name, value)
	{
		if (json_is_string(value) &&
		    strlen(json_string_value(value)) != json_string_length(value))
			return true;
	}
	return false;
}

/* null where no message of the library can say it */
static json_t *refusal(json_t *one)
{
	json_t *message = json_object_get(one, "message");
	int payloads = !!json_object_get(message, "data") + !!json_object_get(message, "payload") +
		       !!json_object_get(message, "payload_base64");
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct call call = { 0 };

	if (payloads != 1 || has_nul(message))
		return json_null();
	if (read_call(one, &call, &err) || outbox_message_validate(&call.message, 0, &err))
		return json_string(err.message);
	return json_string("it was accepted");
}

static json_t *signature(json_t *webhook)
{
	json_t *one = json_object_get(webhook, "sent");
	struct signer signer = { .preset = SIGN_STANDARD };
	struct buf id = BUF_INIT(4096), out = BUF_INIT(4096);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct sign_input input;
	json_t *made;

	sign_id(&id, field(one, "id"));
	input = (struct sign_input){
		.id = buf_str(&id),
		.timestamp = json_integer_value(json_object_get(one, "timestamp")),
		.body = field(one, "body"),
		.size = strlen(field(one, "body")),
	};
	if (signer_add(&signer, "keys", field(one, "signed_with"), &err) ||
	    signer_sign(&signer, &input, &out, &err))
		die(err.message);
	made = json_pack("[ss]", buf_str(&id), buf_str(&out));
	signer_deinit(&signer);
	buf_deinit(&id);
	buf_deinit(&out);
	return made;
}

int main(int argc, char **argv)
{
	json_t *cases = json_loadf(stdin, JSON_ALLOW_NUL, NULL), *refusals = json_array(),
	       *signatures = json_array();
	sqlite3 *db = NULL;
	json_t *one;
	size_t i;

	if (argc != 2 || !cases || sqlite3_open(argv[1], &db))
		die("client_probe DATABASE < CASES");
	json_array_foreach(json_object_get(cases, "publish"), i, one) publish(db, one);
	sqlite3_close(db);
	json_array_foreach(json_object_get(cases, "refused"), i, one)
		json_array_append_new(refusals, refusal(one));
	json_array_foreach(json_object_get(cases, "webhooks"), i, one)
		json_array_append_new(signatures, signature(one));
	json_dumpf(json_pack("{s:o, s:o}", "refused", refusals, "webhooks", signatures), stdout, 0);
	return 0;
}
