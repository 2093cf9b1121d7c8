/* SPDX-License-Identifier: Apache-2.0 */
/* redis:// under the transport contract: a real server behind a proxy, a stream for each case. */

#include "transport_case.h"
#include "transport_proxied.h"

#include <hiredis/hiredis.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops redis_transport_ops;

#define MESSAGE_BYTES 314 /* about: one of the suite's messages as a command */
#define SCRIPT_MESSAGES 128

struct place {
	struct proxied link;
	redisContext *redis; /* past the proxy */
	char stream[64];
};

static const char *unavailable(void)
{
	return getenv("REDIS_PORT") ? NULL : "no server; run it with tests/support/with-redis";
}

static void *setup(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));
	int port = atoi(getenv("REDIS_PORT"));

	assert_non_null(place);
	place->redis = redisConnect("127.0.0.1", port);
	assert_non_null(place->redis);
	assert_int_equal(place->redis->err, 0);
	place->link.message_bytes = MESSAGE_BYTES;
	place->link.window = SCRIPT_MESSAGES;
	place->link.proxy = proxy_start(port);
	snprintf(place->stream, sizeof(place->stream), "case:%d", ++number);
	snprintf(place->link.url, sizeof(place->link.url), "redis://127.0.0.1:%d/?stream=%s",
		 proxy_port(place->link.proxy), place->stream);
	/* Port 1 (tcpmux) has no server anywhere that tests run. */
	snprintf(place->link.missing, sizeof(place->link.missing), "redis://127.0.0.1:1/");
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	proxy_stop(place->link.proxy);
	redisFree(place->redis);
	free(place);
}

/* ---- reading back ---------------------------------------------------------------------------- */

static bool is(const redisReply *reply, const char *text)
{
	return strcmp(reply->str, text) == 0;
}

static const redisReply *field(const redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		if (is(fields->element[i], name))
			return fields->element[i + 1];
	return NULL;
}

static void add_structured(struct arrivals *arrivals, const redisReply *event)
{
	json_t *json = json_loadb(event->str, event->len, 0, NULL);
	json_t *data = json_object_get(json, "data");
	char *body = data ? json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	assert_non_null(json);
	arrivals_add(arrivals, json_string_value(json_object_get(json, "id")), body,
		     body ? strlen(body) : 0);
	free(body);
	json_decref(json);
}

static void add_entry(struct arrivals *arrivals, const redisReply *fields)
{
	const redisReply *event = field(fields, "event"), *id, *data;

	if (event) {
		add_structured(arrivals, event);
		return;
	}
	id = field(fields, "id");
	data = field(fields, "data");
	assert_non_null(id);
	assert_non_null(data);
	arrivals_add(arrivals, id->str, data->str, data->len);
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		if (strncmp(fields->element[i]->str, "header.", 7) == 0)
			arrivals_header(arrivals, fields->element[i]->str + 7,
					fields->element[i + 1]->str);
}

static void read_back(void *state, struct arrivals *arrivals)
{
	struct place *place = state;
	redisReply *entries = redisCommand(place->redis, "XRANGE %s - +", place->stream);

	assert_non_null(entries);
	assert_int_equal(entries->type, REDIS_REPLY_ARRAY);
	for (size_t i = 0; i < entries->elements; i++)
		add_entry(arrivals, entries->element[i]->element[1]);
	freeReplyObject(entries);
}

static const struct bad_url bad_urls[] = {
	{ "redis:", "host" },
	{ "redis://", "host" },
	{ "redis:///", "host" },
	{ "redis://127.0.0.1:99999/", "port" },
	{ "redis://127.0.0.1/shop", "database" },
	{ "redis://127.0.0.1/-1", "database" },
	{ "redis://user@127.0.0.1/", "password" },
	{ "redis://127.0.0.1/?stream=", "stream" },
	{ "redis://127.0.0.1/?stream={typo}", "typo" },
	{ "redis://127.0.0.1/?stream={type", "{type}" },
	{ "redis://127.0.0.1/?maxlen=0", "maxlen" },
	{ "redis://127.0.0.1/?maxlen=many", "maxlen" },
	{ "redis://127.0.0.1/?maxlen=5&maxlen_exact=1", "maxlen_exact" },
	{ "redis://127.0.0.1/?maxlen_exact=yes", "maxlen" },
	{ "redis://127.0.0.1/?create=perhaps", "create" },
	{ "redis://127.0.0.1/?wait=-1", "wait" },
	{ "redis://127.0.0.1/?ca=/etc/passwd", "TLS" },
	{ "redis://:x@127.0.0.1/?password_file=/nowhere", "password_file" },
	{ "rediss://127.0.0.1/", "TLS" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_redis",
	.ops = &redis_transport_ops,
	.unavailable = unavailable,
	.setup = setup,
	.teardown = teardown,
	PROXIED_OPS,
	.bad_urls = bad_urls,
	.missing_status = OUTBOX_ECONN,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
