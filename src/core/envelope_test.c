/* SPDX-License-Identifier: Apache-2.0 */

/* Every envelope, key by key, read back with jansson. */

#include "base/unit_test.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <outbox/transport.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const struct outbox_header own[] = { { "tenant", "7" },
					    { "X-Trace-Id", "q\"\xe2\x82\xac" },
					    { "kind", "mine" },
					    { "tabbed", "a\tb" },
					    { "averyveryverylongname1", "x" } };

static const struct outbox_message full = {
	sizeof(struct outbox_message),
	.type = "order.placed",
	.key = "42",
	.data = "{\"id\":42}",
	.size = 9,
	.id = "id-1",
	.kind = OUTBOX_KIND_COMMAND,
	.published = 1,
	.source = "/shop",
	.subject = "order/42",
	.topic = "orders",
	.correlation_id = "corr",
	.causation_id = "cause",
	.traceparent = TRACE,
	.headers = own,
	.n_headers = ARRAY_SIZE(own),
	.priority = 9,
	.event_time = 1700000000250000,
	.due_at = 5,
	.expires_at = 6,
};

/* Encodes one message and keeps its encoder until the next call. */
static struct outbox_encoded encode(int envelope, const struct outbox_message *message)
{
	static struct outbox_encoder *encoder;
	struct outbox_item item = { .message = message, .seq = 77, .created_at = 1 };
	struct outbox_encoded encoded = { 0 };

	outbox_encoder_free(encoder);
	encoder = NULL;
	if (!message)
		return encoded;
	assert_ok(outbox_encoder_new(envelope, NULL, &encoder, err));
	assert_ok(outbox_encode(encoder, &item, &encoded, err));
	return encoded;
}

static int teardown(void **state)
{
	(void)state;
	encode(0, NULL);
	return 0;
}

static json_t *structured(int envelope, const struct outbox_message *message)
{
	struct outbox_encoded encoded = encode(envelope, message);
	json_t *root = json_loadb(encoded.body, encoded.size, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(root);
	assert_null(memchr(encoded.body, '\n', encoded.size));
	assert_string_equal(encoded.content_type, "application/cloudevents+json");
	assert_int_equal(encoded.n_headers, 0);
	return root;
}

/* Exactly these members with these strings; `data` apart. */
static void assert_members(json_t *root, const char *const (*want)[2], size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const char *got = json_string_value(json_object_get(root, want[i][0]));

		if (!got || strcmp(got, want[i][1]) != 0)
			fail_msg("%s is %s, not %s", want[i][0], got ? got : "missing", want[i][1]);
	}
	assert_int_equal(json_object_size(root), n + 1);
	assert_non_null(json_object_get(root, "data"));
}

#define OTHERS \
	"{\"X-Trace-Id\":\"q\\\"\xe2\x82\xac\",\"kind\":\"mine\",\"tabbed\":\"a\\tb\",\"averyveryverylongname1\":\"x\"}"
#define SHARED                                                                            \
	{ "specversion", "1.0" }, { "id", "id-1" }, { "source", "/shop" },                \
		{ "type", "order.placed" }, { "subject", "order/42" },                    \
		{ "time", "2023-11-14T22:13:20.25Z" }, { "partitionkey", "42" },          \
		{ "correlationid", "corr" }, { "traceparent", TRACE }, { "tenant", "7" }, \
		{ "outboxheaders", OTHERS },                                              \
	{                                                                                 \
		"datacontenttype", "application/json"                                     \
	}

static void structured_has_everything_once(void **state)
{
	static const char *const want[][2] = { SHARED,
					       { "causationid", "cause" },
					       { "kind", "command" },
					       { "topic", "orders" },
					       { "sequence", "77" } };
	json_auto_t *root = structured(OUTBOX_ENVELOPE_CE_STRUCTURED, &full);

	(void)state;
	assert_members(root, want, ARRAY_SIZE(want));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "data"), "id")),
			 42);
}

static void external_has_the_allow_list_and_nothing_else(void **state)
{
	static const char *const want[][2] = { SHARED };
	json_auto_t *root = structured(OUTBOX_ENVELOPE_EXTERNAL, &full);

	(void)state;
	assert_members(root, want, ARRAY_SIZE(want));
}

static void a_minimal_event(void **state)
{
	struct outbox_message message = { .type = "t", .id = "i", .source = "/s" };
	struct outbox_encoded encoded = encode(OUTBOX_ENVELOPE_EXTERNAL, &message);

	(void)state;
	assert_string_equal(encoded.body,
			    "{\"specversion\":\"1.0\",\"id\":\"i\",\"source\":\"/s\","
			    "\"type\":\"t\",\"time\":\"1970-01-01T00:00:00.000001Z\"}");
	encoded = encode(OUTBOX_ENVELOPE_NATIVE, &message);
	assert_int_equal(encoded.size, 0);
	assert_non_null(encoded.body);
	assert_string_equal(encoded.content_type, "application/json");
}

static void payloads_in_json(void **state)
{
	static const struct {
		const char *type, *data;
		size_t size;
		const char *want; /* the end of the envelope */
	} cases[] = {
		{ NULL, "[1, 2.50]", 9, ",\"data\":[1, 2.50]}" },
		{ NULL, "{\n  \"a\\n\" : [1,\r\n 2]\n}\n", 23, ",\"data\":{\"a\\n\":[1,2]}}" },
		{ NULL, "12345678901234567890123", 23, ",\"data\":12345678901234567890123}" },
		{ "text/plain", "a\"\n\xe2\x82\xac", 6, ",\"data\":\"a\\\"\\n\xe2\x82\xac\"}" },
		{ "text/plain", "\xff\xfe", 2, ",\"data_base64\":\"//4=\"}" },
		{ "text/plain", "a\0b", 3, ",\"data_base64\":\"YQBi\"}" },
		{ "application/octet-stream", "abc", 3, ",\"data_base64\":\"YWJj\"}" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct outbox_message message = { .type = "t",
						  .id = "i",
						  .source = "/s",
						  .content_type = cases[i].type,
						  .data = cases[i].data,
						  .size = cases[i].size };
		struct outbox_encoded encoded = encode(OUTBOX_ENVELOPE_CE_STRUCTURED, &message);
		size_t n = strlen(cases[i].want);

		assert_true(encoded.size > n);
		assert_string_equal((const char *)encoded.body + encoded.size - n, cases[i].want);
	}
}

static void assert_headers(const struct outbox_encoded *encoded, const char *const (*want)[2],
			   size_t n)
{
	size_t i, j;

	assert_int_equal(encoded->n_headers, n);
	for (i = 0; i < n; i++) {
		for (j = 0; j < n && strcmp(encoded->headers[j].name, want[i][0]) != 0; j++)
			;
		assert_true(j < n);
		assert_string_equal(encoded->headers[j].value, want[i][1]);
	}
	assert_int_equal(encoded->size, 9);
	assert_memory_equal(encoded->body, "{\"id\":42}", 9);
	assert_string_equal(encoded->content_type, "application/json");
}

#define OWN                                                                         \
	{ "tenant", "7" }, { "X-Trace-Id", "q\"\xe2\x82\xac" }, { "kind", "mine" }, \
		{ "tabbed", "a\tb" },                                               \
	{                                                                           \
		"averyveryverylongname1", "x"                                       \
	}

static void binary_has_attributes_as_headers(void **state)
{
	static const char *const want[][2] = { { "ce-specversion", "1.0" },
					       { "ce-id", "id-1" },
					       { "ce-source", "/shop" },
					       { "ce-type", "order.placed" },
					       { "ce-subject", "order/42" },
					       { "ce-time", "2023-11-14T22:13:20.25Z" },
					       { "ce-partitionkey", "42" },
					       { "ce-correlationid", "corr" },
					       { "ce-causationid", "cause" },
					       { "ce-traceparent", TRACE },
					       { "ce-kind", "command" },
					       { "ce-topic", "orders" },
					       { "ce-sequence", "77" },
					       { "traceparent", TRACE },
					       OWN };
	static const struct outbox_header theirs[] = { { "TraceParent", "theirs" },
						       { "tracestate", "a=1" } };
	struct outbox_message traced = full;
	struct outbox_encoded encoded = encode(OUTBOX_ENVELOPE_CE_BINARY, &full);
	struct outbox_item item = { .message = &full };
	struct outbox_encoder *encoder;

	(void)state;
	assert_headers(&encoded, want, ARRAY_SIZE(want));
	assert_ok(outbox_encoder_new(OUTBOX_ENVELOPE_CE_BINARY, "ce_", &encoder, err));
	assert_ok(outbox_encode(encoder, &item, &encoded, err));
	assert_string_equal(encoded.headers[0].name, "ce_specversion");
	traced.headers = theirs;
	traced.n_headers = 2;
	encoded = encode(OUTBOX_ENVELOPE_CE_BINARY, &traced);
	assert_int_equal(encoded.n_headers, 15);
	assert_string_equal(encoded.headers[13].value, TRACE);
	assert_string_equal(encoded.headers[14].name, "tracestate");
	traced.traceparent = NULL;
	encoded = encode(OUTBOX_ENVELOPE_CE_BINARY, &traced);
	assert_int_equal(encoded.n_headers, 14);
	assert_string_equal(encoded.headers[12].value, "theirs");
	assert_null(outbox_encoder_free(encoder));
	assert_null(outbox_encoder_free(NULL));
}

static void native_has_our_headers(void **state)
{
	static const char *const want[][2] = { { "outbox-id", "id-1" },
					       { "outbox-source", "/shop" },
					       { "outbox-type", "order.placed" },
					       { "outbox-subject", "order/42" },
					       { "outbox-time", "2023-11-14T22:13:20.25Z" },
					       { "outbox-key", "42" },
					       { "outbox-correlation-id", "corr" },
					       { "outbox-causation-id", "cause" },
					       { "traceparent", TRACE },
					       { "outbox-kind", "command" },
					       { "outbox-attempt", "1" },
					       OWN };
	static const struct outbox_header twice[] = { { "TraceParent", "theirs" } };
	struct outbox_encoded encoded = encode(OUTBOX_ENVELOPE_NATIVE, &full);
	struct outbox_message message = full;

	(void)state;
	assert_headers(&encoded, want, ARRAY_SIZE(want));
	message.headers = twice;
	message.n_headers = 1;
	assert_int_equal(encode(OUTBOX_ENVELOPE_NATIVE, &message).n_headers, 11);
	message.traceparent = NULL;
	encoded = encode(OUTBOX_ENVELOPE_NATIVE, &message);
	assert_int_equal(encoded.n_headers, 11);
	assert_string_equal(encoded.headers[10].value, "theirs");
}

static const char *header_of(const struct outbox_encoded *encoded, const char *name)
{
	for (size_t i = 0; i < encoded->n_headers; i++)
		if (strcmp(encoded->headers[i].name, name) == 0)
			return encoded->headers[i].value;
	return NULL;
}

/* A consumer that is asked again may want to know. An event that goes straight through says nothing of it. */
static void the_attempt_is_told(void **state)
{
	static const int envelopes[] = { OUTBOX_ENVELOPE_NATIVE, OUTBOX_ENVELOPE_CE_BINARY,
					 OUTBOX_ENVELOPE_CE_STRUCTURED, OUTBOX_ENVELOPE_EXTERNAL };
	static const char *const names[] = { "outbox-attempt", "ce-outboxattempt" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(envelopes); i++) {
		struct outbox_item item = { .message = &full, .attempts = 2 };
		struct outbox_encoder *encoder;
		struct outbox_encoded encoded;

		assert_ok(outbox_encoder_new(envelopes[i], NULL, &encoder, err));
		assert_ok(outbox_encode(encoder, &item, &encoded, err));
		if (i < 2)
			assert_string_equal(header_of(&encoded, names[i]), "3");
		else
			assert_int_equal(strstr(encoded.body, ",\"outboxattempt\":\"3\"") != NULL,
					 envelopes[i] == OUTBOX_ENVELOPE_CE_STRUCTURED);
		item.attempts = 0;
		assert_ok(outbox_encode(encoder, &item, &encoded, err));
		if (i == 1)
			assert_null(header_of(&encoded, names[i]));
		else if (i > 1)
			assert_null(strstr(encoded.body, "outboxattempt"));
		outbox_encoder_free(encoder);
	}
}

/* Rows that somebody inserted past the library. */
static void what_cannot_be_encoded_is_refused(void **state)
{
	static const struct outbox_header evil[] = { { "a", "x\r\nEvil: 1" } };
	struct outbox_message bad[11];
	static const char *const want[] = { "data: not JSON at line 1, column 7",
					    "id: is missing",
					    "type: is missing",
					    "source: is missing",
					    "is not UTF-8",
					    "has a line break",
					    "content_type: ",
					    "time: 10000-01-01T00:00:00Z is not within",
					    "time: -",
					    "partitionkey: ",
					    "subject: " };
	int envelope;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = full;
	bad[0].data = "{\"id\":x}";
	bad[0].size = 8;
	bad[1].id = NULL;
	bad[2].type = "";
	bad[3].source = NULL;
	bad[4].key = "\xff";
	bad[5].headers = evil;
	bad[5].n_headers = 1;
	bad[6].content_type = "text/plain\r\nEvil: 1";
	bad[7].event_time = 253402300800 * OUTBOX_SECONDS;
	bad[8].event_time = INT64_MIN;
	bad[9].key = "a\nEvil: 1"; /* a header cannot carry it, JSON can */
	bad[10].subject = "a\x7f";
	for (envelope = 1; envelope <= 4; envelope++) {
		struct outbox_encoder *encoder;

		assert_ok(outbox_encoder_new(envelope, NULL, &encoder, err));
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			struct outbox_encoded encoded = { .size = 42 };
			struct outbox_item item = { .message = &bad[i] };

			if (i >= 9 && envelope != OUTBOX_ENVELOPE_CE_BINARY &&
			    envelope != OUTBOX_ENVELOPE_NATIVE) {
				assert_ok(outbox_encode(encoder, &item, &encoded, err));
				assert_null(memchr(encoded.body, '\n', encoded.size));
				continue;
			}
			assert_fails(outbox_encode(encoder, &item, &encoded, err), OUTBOX_EINVAL,
				     want[i]);
			assert_int_equal(encoded.size, 42);
		}
		outbox_encoder_free(encoder);
	}
	assert_fails(outbox_encoder_new(0, NULL, &(struct outbox_encoder *){ NULL }, err),
		     OUTBOX_EINVAL, "envelope: 0");
	assert_fails(outbox_encoder_new(5, NULL, &(struct outbox_encoder *){ NULL }, err),
		     OUTBOX_EINVAL, "envelope: 5");
}

/* One encoder, many messages: nothing of one is left in the next, a huge one does no harm. */
static void an_encoder_is_used_again(void **state)
{
	struct outbox_message small = { .type = "t", .id = "i", .source = "/s" }, large = small;
	struct outbox_item item = { .message = &small, .created_at = 1 };
	struct outbox_encoder *encoder;
	struct outbox_encoded encoded;
	char first[200], *data = calloc(1, 8 << 20);
	size_t size, i;

	(void)state;
	assert_non_null(data);
	large.data = data;
	large.size = 8 << 20;
	large.content_type = "application/octet-stream";
	large.headers = own;
	large.n_headers = ARRAY_SIZE(own);
	assert_ok(outbox_encoder_new(OUTBOX_ENVELOPE_CE_STRUCTURED, NULL, &encoder, err));
	assert_ok(outbox_encode(encoder, &item, &encoded, err));
	size = encoded.size;
	assert_true(size < sizeof(first));
	memcpy(first, encoded.body, size);
	for (i = 0; i < 3; i++) {
		item.message = &large;
		assert_ok(outbox_encode(encoder, &item, &encoded, err));
		assert_true(encoded.size > large.size);
		item.message = &small;
		assert_ok(outbox_encode(encoder, &item, &encoded, err));
		assert_int_equal(encoded.size, size);
		assert_memory_equal(encoded.body, first, size);
	}
	outbox_encoder_free(encoder);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(structured_has_everything_once, teardown),
		cmocka_unit_test_teardown(external_has_the_allow_list_and_nothing_else, teardown),
		cmocka_unit_test_teardown(a_minimal_event, teardown),
		cmocka_unit_test_teardown(payloads_in_json, teardown),
		cmocka_unit_test_teardown(binary_has_attributes_as_headers, teardown),
		cmocka_unit_test_teardown(native_has_our_headers, teardown),
		cmocka_unit_test_teardown(the_attempt_is_told, teardown),
		cmocka_unit_test_teardown(what_cannot_be_encoded_is_refused, teardown),
		cmocka_unit_test_teardown(an_encoder_is_used_again, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
