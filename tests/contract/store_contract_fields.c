/* SPDX-License-Identifier: Apache-2.0 */

/* What went in comes out, byte for byte, with the defaults filled in. */

#include "store/store.h"
#include "store_world.h"

/* The message with this seq as get() and as a claim give it: both must agree with each case. */
static struct outbox_claimed read_both(struct store_world *w, int64_t seq,
				       void (*check)(struct store_world *w,
						     const struct outbox_claimed *c))
{
	struct outbox_claimed got = { 0 };
	struct worker *k;

	world_target(w, "a");
	OK(store_get(w->store, world_id(w, "a", seq), w->arena, &got, &w->err));
	assert_int_equal(got.seq, seq);
	check(w, &got);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	check(w, &k->claim.items[0]);
	assert_false(k->claim.items[0].detour);
	assert_false(k->claim.items[0].blocked);
	assert_false(k->claim.items[0].suspect);
	assert_null(k->claim.items[0].malformed);
	assert_int_equal(k->claim.items[0].attempts, 0);
	return got;
}

static void check_defaults(struct store_world *w, const struct outbox_claimed *c)
{
	const struct outbox_message *m = &c->message;
	struct outbox_store_info info;
	char source[160] = "/outbox/";

	OK(store_info(w->store, &info, &w->err));
	assert_true(info.name[0]);
	strcat(source, info.name);
	assert_string_equal(m->type, "t");
	assert_string_equal(m->content_type, "application/json");
	assert_string_equal(m->source, source);
	assert_int_equal(m->kind, OUTBOX_KIND_EVENT);
	assert_int_equal(strlen(m->id), 36);
	assert_int_equal(c->created_at, world_now(w));
	assert_int_equal(m->event_time, c->created_at);
	assert_int_equal(m->published, 0);
	assert_int_equal(m->priority, 0);
	assert_int_equal(m->n_headers, 0);
	assert_int_equal(m->due_at, 0);
	assert_int_equal(m->expires_at, 0);
	assert_null(m->key);
	assert_null(m->subject);
	assert_null(m->topic);
	assert_null(m->correlation_id);
	assert_null(m->causation_id);
	assert_null(m->traceparent);
	assert_int_equal(m->size, 2);
	assert_memory_equal(m->data, "{}", 2);
}

static void defaults_are_filled_in(struct store_world *w)
{
	read_both(w, world_publish(w, NULL), check_defaults);
}

static void check_all_fields(struct store_world *w, const struct outbox_claimed *c)
{
	const struct outbox_message *m = &c->message;

	(void)w;
	assert_string_equal(m->type, "order.placed");
	assert_string_equal(m->key, "k\xc3\xa4y \xe2\x82\xac 'quoted' \\ \xf0\x9f\x93\xae");
	assert_string_equal(m->content_type, "text/plain; charset=utf-8");
	assert_string_equal(m->id, "an id of mine");
	assert_string_equal(m->source, "/shop");
	assert_string_equal(m->subject, "order 42");
	assert_string_equal(m->topic, "orders");
	assert_string_equal(m->correlation_id, "corr");
	assert_string_equal(m->causation_id, "cause");
	assert_string_equal(m->traceparent,
			    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	assert_int_equal(m->kind, OUTBOX_KIND_COMMAND);
	assert_true(m->published);
	assert_int_equal(m->priority, -7);
	assert_int_equal(m->event_time, 1234567890123456);
	assert_int_equal(m->due_at, 2234567890123456);
	assert_int_equal(m->expires_at, 3234567890123456);
	assert_int_equal(m->n_headers, 3);
	assert_string_equal(m->headers[0].name, "Zeta");
	assert_string_equal(m->headers[0].value, "\xc3\xbcml\xc3\xa4ut \xe6\xbc\xa2\xe5\xad\x97");
	assert_string_equal(m->headers[1].name, "alpha");
	assert_string_equal(m->headers[1].value, "");
	assert_string_equal(m->headers[2].name, "X-Mid.dle_1");
	assert_string_equal(m->headers[2].value, "a \"quote\", a \\ and a\ttab");
}

static void every_field_comes_back(struct store_world *w)
{
	const struct outbox_header headers[] = {
		{ "Zeta", "\xc3\xbcml\xc3\xa4ut \xe6\xbc\xa2\xe5\xad\x97" },
		{ "alpha", "" },
		{ "X-Mid.dle_1", "a \"quote\", a \\ and a\ttab" },
	};
	struct outbox_message m = {
		.struct_size = sizeof(m),
		.type = "order.placed",
		.key = "k\xc3\xa4y \xe2\x82\xac 'quoted' \\ \xf0\x9f\x93\xae",
		.data = "hello",
		.size = 5,
		.content_type = "text/plain; charset=utf-8",
		.id = "an id of mine",
		.kind = OUTBOX_KIND_COMMAND,
		.published = 1,
		.source = "/shop",
		.subject = "order 42",
		.topic = "orders",
		.correlation_id = "corr",
		.causation_id = "cause",
		.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		.headers = headers,
		.n_headers = 3,
		.priority = -7,
		.event_time = 1234567890123456,
		.due_at = 2234567890123456,
		.expires_at = 3234567890123456,
	};

	read_both(w, world_publish_message(w, &m), check_all_fields);
}

/* Publishes the bytes in a transaction of the application and by the op; both must come back. */
static void payload_survives(struct store_world *w, const void *data, size_t size, const char *type)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	void *tx = w->fixture->begin(w->place);
	int64_t seqs[2] = { 0 };
	struct worker *k;

	m.type = "t";
	m.content_type = type;
	m.data = data;
	m.size = size;
	OK(w->fixture->publish(tx, &m, &seqs[0], &w->err));
	w->fixture->commit(tx);
	seqs[1] = world_publish_message(w, &m);
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 2, seqs[0], seqs[1]);
	for (size_t i = 0; i < 2; i++) {
		const struct outbox_message *read = &k->claim.items[i].message;

		assert_int_equal(read->size, size);
		if (size)
			assert_memory_equal(read->data, data, size);
		assert_string_equal(read->content_type, type);
	}
	OK(store_release(w->store, "a", 0, "k", &w->err));
}

static void payload_empty(struct store_world *w)
{
	payload_survives(w, NULL, 0, "text/plain");
}

static void payload_empty_binary(struct store_world *w)
{
	payload_survives(w, "", 0, "application/octet-stream");
}

static void payload_with_every_byte(struct store_world *w)
{
	unsigned char bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	payload_survives(w, bytes, sizeof(bytes), "application/octet-stream");
}

static void payload_text_with_a_nul(struct store_world *w)
{
	payload_survives(w, "before\0after", 12, "text/plain");
}

static void payload_text_that_is_not_utf8(struct store_world *w)
{
	payload_survives(w, "\xff\xfe latin \xe4", 10, "text/plain");
}

static void payload_json_with_escapes(struct store_world *w)
{
	static const char json[] = "{\"a\":\"\\\\ \\\" \\u00e4 \xc3\xa4 '\",\"b\":[1.50,1e3]}";

	payload_survives(w, json, sizeof(json) - 1, "application/json");
}

static void payload_of_a_mebibyte(struct store_world *w)
{
	size_t size = (size_t)1 << 20;
	unsigned char *bytes = outbox_arena_alloc(w->arena, size);

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 31 + i / 256);
	payload_survives(w, bytes, size, "application/octet-stream");
}

static void event_time_never_changes(struct store_world *w)
{
	int64_t seq = world_publish(w, "x");
	outbox_time then = world_now(w);
	struct worker *k;

	world_target(w, "a");
	world_step(w, 5 * SEC);
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(worker_advance(k, MANY), 1);
		assert_int_equal(k->claim.items[0].message.event_time, then);
		assert_int_equal(k->claim.items[0].created_at, then);
		settle_wait(k, 0, SEC);
		worker_advance(k, 0);
		world_step(w, SEC);
	}
	assert_drains(k, 1, seq);
	assert_int_equal(world_row(w, "a", seq)->event_time, then);
	assert_int_equal(world_row(w, "a", seq)->created_at, then);
	assert_int_equal(world_row(w, "a", seq)->last_status_at, world_now(w));
}

static void an_old_application_knows_fewer_fields(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	void *tx = w->fixture->begin(w->place);
	struct outbox_claimed got;
	int64_t seq = 0;

	m.type = "t";
	m.key = "x";
	m.subject = "not known to it";
	m.struct_size = offsetof(struct outbox_message, subject);
	OK(w->fixture->publish(tx, &m, &seq, &w->err));
	w->fixture->commit(tx);
	world_target(w, "a");
	OK(store_get(w->store, world_id(w, "a", seq), w->arena, &got, &w->err));
	assert_string_equal(got.message.key, "x");
	assert_null(got.message.subject);
}

const struct store_case fields_cases[] = {
	{ "defaults_are_filled_in", defaults_are_filled_in, 0, 0 },
	{ "every_field_comes_back", every_field_comes_back, 0, 0 },
	{ "payload_empty", payload_empty, 0, 0 },
	{ "payload_empty_binary", payload_empty_binary, 0, 0 },
	{ "payload_with_every_byte", payload_with_every_byte, 0, 0 },
	{ "payload_text_with_a_nul", payload_text_with_a_nul, 0, 0 },
	{ "payload_text_that_is_not_utf8", payload_text_that_is_not_utf8, 0, 0 },
	{ "payload_json_with_escapes", payload_json_with_escapes, 0, 0 },
	{ "payload_of_a_mebibyte", payload_of_a_mebibyte, 0, 0 },
	{ "event_time_never_changes", event_time_never_changes, 0, 0 },
	{ "an_old_application_knows_fewer_fields", an_old_application_knows_fewer_fields, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
