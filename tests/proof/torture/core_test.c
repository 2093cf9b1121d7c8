/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoders, URLs, validation and the registry with a failure at every allocation: each gives the answer
 * that it gives with memory enough, or says that there is none.
 */

#include "base/buf.h"
#include "base/url.h"
#include "core/message.h"
#include "core/routing.h"
#include "drive.h"

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trial {
	/* Appends to said what came out. */
	int (*call)(struct trial *trial, struct outbox_error *err);
	int envelope;
	char said[8192];
	size_t n_said;
	char *wanted;
};

static void add_result(struct trial *t, const char *format, ...) OUTBOX_PRINTF(2, 3);

static void add_result(struct trial *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->n_said +=
		(size_t)vsnprintf(t->said + t->n_said, sizeof(t->said) - t->n_said, format, args);
	va_end(args);
	if (t->n_said >= sizeof(t->said))
		abort();
}

static void run(void *context)
{
	struct trial *t = context;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	t->n_said = 0;
	t->said[0] = '\0';
	fault_on();
	r = t->call(t, &err);
	fault_off();
	torture_check_answer(r, &err, t->said, &t->wanted);
}

/* ---- the calls ----------------------------------------------------------------------------- */

static char long_value[3000];

static struct outbox_header headers[] = { { "tenant", "t-1" }, { "long", long_value } };

static struct outbox_message message(void)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "order.placed";
	m.id = "m-1";
	m.key = "k";
	m.source = "/torture";
	m.subject = "s";
	m.correlation_id = "c";
	m.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
	m.content_type = "application/json";
	m.data = "{\"text\":\"quoted \\\" and \\u00e9\"}";
	m.size = strlen(m.data);
	m.headers = headers;
	m.n_headers = 2;
	m.event_time = 1700000000 * OUTBOX_SECONDS;
	return m;
}

static int encode(struct trial *t, struct outbox_encoder *encoder, const struct outbox_message *m,
		  struct outbox_error *err)
{
	struct outbox_item item = { .message = m, .seq = 7, .created_at = m->event_time };
	struct outbox_encoded encoded;
	int r = outbox_encode(encoder, &item, &encoded, err);

	if (r != OUTBOX_OK)
		return r;
	add_result(t, "%.*s %s", (int)encoded.size, (const char *)encoded.body, encoded.content_type);
	for (size_t i = 0; i < encoded.n_headers; i++)
		add_result(t, " %s=%.50s", encoded.headers[i].name, encoded.headers[i].value);
	return OUTBOX_OK;
}

static int call_encode(struct trial *t, struct outbox_error *err)
{
	struct outbox_message text = message(), raw = message();
	struct outbox_encoder *encoder = NULL;
	int r;

	raw.content_type = "application/octet-stream";
	raw.data = "\x01\x02\xff";
	raw.size = 3;
	r = outbox_encoder_new(t->envelope, NULL, &encoder, err);
	if (r == OUTBOX_OK)
		r = encode(t, encoder, &text, err);
	if (r == OUTBOX_OK && t->envelope != OUTBOX_ENVELOPE_NATIVE)
		r = encode(t, encoder, &raw, err);
	outbox_encoder_free(encoder);
	return r;
}

static int call_url(struct trial *t, struct outbox_error *err)
{
	struct url url = { 0 };
	int r = url_parse("amqp://user:p%40ss@host:1,other:2/a%20path?one=1&two=%32", &url, err);

	if (r != OUTBOX_OK)
		return r;
	add_result(t, "%s %s %s %s %s", url.scheme, url.user, url.password, url.host, url.path);
	for (size_t i = 0; i < url.n_options; i++)
		add_result(t, " %s=%s", url.options[i].name, url.options[i].value);
	url_deinit(&url);
	return OUTBOX_OK;
}

static int call_validate(struct trial *t, struct outbox_error *err)
{
	struct outbox_message m = message();

	(void)t;
	return outbox_message_validate(&m, 0, err);
}

static int parse(struct trial *t, const char *json, struct outbox_error *err)
{
	struct outbox_arena *arena = outbox_arena_new(1 << 20);
	struct outbox_header *list;
	size_t n;
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = headers_parse(json, arena, &list, &n, err);
	for (size_t i = 0; r == OUTBOX_OK && i < n; i++)
		add_result(t, "%s=%s ", list[i].name, list[i].value);
	outbox_arena_free(arena);
	return r;
}

static int call_headers(struct trial *t, struct outbox_error *err)
{
	struct buf text = BUF_INIT(1 << 16);
	int r = headers_format(headers, 2, &text, err);

	if (r == OUTBOX_OK)
		r = parse(t, buf_str(&text), err);
	buf_deinit(&text);
	if (r == OUTBOX_OK)
		r = parse(t,
			  "{\"n\":1234567890123456789012,\"f\":-0.1234567890123456789e+10,"
			  "\"b\":true,\"u\":\"\\ud83d\\ude00\"}",
			  err);
	return r;
}

static int call_route(struct trial *t, struct outbox_error *err)
{
	struct outbox_arena *arena = outbox_arena_new(1 << 20);
	struct outbox_route route;
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = route_parse("{\"types\":[\"order.*\",\"a.long.name.of.a.type.*\"],\"kind\":\"event\","
			"\"published\":true}",
			arena, &route, err);
	for (size_t i = 0; r == OUTBOX_OK && i < route.n_types; i++)
		add_result(t, "%s ", route.types[i]);
	outbox_arena_free(arena);
	return r;
}

int main(int argc, char **argv)
{
	static struct trial trials[] = {
		{ .call = call_encode, .envelope = OUTBOX_ENVELOPE_CE_STRUCTURED },
		{ .call = call_encode, .envelope = OUTBOX_ENVELOPE_CE_BINARY },
		{ .call = call_encode, .envelope = OUTBOX_ENVELOPE_NATIVE },
		{ .call = call_encode, .envelope = OUTBOX_ENVELOPE_EXTERNAL },
		{ .call = call_url },
		{ .call = call_headers },
		{ .call = call_route },
		{ .call = call_validate },
	};
	static const struct scenario scenarios[] = {
		{ "encode, structured", run, &trials[0], 3, 0 },
		{ "encode, binary", run, &trials[1], 3, 0 },
		{ "encode, native", run, &trials[2], 2, 0 },
		{ "encode, external", run, &trials[3], 3, 0 },
		{ "url", run, &trials[4], 5, 0 },
		{ "headers", run, &trials[5], 4, 0 },
		{ "route", run, &trials[6], 10, 0 },
	};
	struct scenario validate = { "validate", run, &trials[7], 0, 0 };

	memset(long_value, 'v', sizeof(long_value) - 1);
	torture_begin("torture core", argc, argv);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		torture(&scenarios[i]);
	torture(&validate); /* allocates nothing: there is no point to fail at */
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
		free(trials[i].wanted);
	return torture_end();
}
