/* SPDX-License-Identifier: Apache-2.0 */

/* Which messages are taken, and what is said of the others. */

#include "base/unit_test.h"

#include "base/cleanup.h"
#include "core/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct outbox_message minimal(void)
{
	return (struct outbox_message){ sizeof(struct outbox_message), .type = "order.placed" };
}

static void only_a_type_is_required(void **state)
{
	struct outbox_message message = minimal();

	(void)state;
	assert_ok(outbox_message_validate(&message, 0, err));
	message.type = NULL;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "type: is missing");
	assert_fails(outbox_message_validate(NULL, 0, err), OUTBOX_EINVAL, "message: is NULL");
	assert_int_equal(outbox_message_validate(&message, 0, NULL), OUTBOX_EINVAL);
}

static void every_field_at_its_best(void **state)
{
	static const struct outbox_header headers[] = { { "X-Tenant", "\xc3\xa9 = \"7\"\t" },
							{ "empty", "" } };
	struct outbox_message message = {
		sizeof(message),
		.type = "t",
		.key = "k",
		.data = "\x00\xff",
		.size = 2,
		.content_type = "application/octet-stream",
		.id = "my-id",
		.kind = OUTBOX_KIND_COMMAND,
		.published = 1,
		.source = "/shop",
		.subject = "s",
		.topic = "t",
		.correlation_id = "c",
		.causation_id = "d",
		.traceparent = TRACE,
		.headers = headers,
		.n_headers = 2,
		.priority = -100,
		.event_time = 1,
		.due_at = 5,
		.expires_at = 6,
	};

	(void)state;
	assert_ok(outbox_message_validate(&message, 0, err));
}

/* Each text field: its maximum in characters is fine, one more is not, and so on. */
static void texts_are_checked(void **state)
{
	static const struct {
		const char *name;
		size_t offset, max;
	} fields[] = {
		{ "type", offsetof(struct outbox_message, type), 500 },
		{ "key", offsetof(struct outbox_message, key), 255 },
		{ "id", offsetof(struct outbox_message, id), 255 },
		{ "source", offsetof(struct outbox_message, source), 2048 },
		{ "subject", offsetof(struct outbox_message, subject), 2048 },
		{ "topic", offsetof(struct outbox_message, topic), 2048 },
		{ "correlation_id", offsetof(struct outbox_message, correlation_id), 2048 },
		{ "causation_id", offsetof(struct outbox_message, causation_id), 2048 },
	};
	static const char *const bad[][2] = { { "", "is empty" },
					      { "a\nb", "has a control character" },
					      { "a\x7f", "has a control character" },
					      { "a\xc2\x85", "has a control character" },
					      { "a\xff", "is not UTF-8" } };
	char text[3 * 2049 + 1], want[200];
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		struct outbox_message message = minimal();
		const char **field = (const char **)((char *)&message + fields[i].offset);

		for (j = 0; j <= fields[i].max; j++)
			memcpy(text + 3 * j, "\xe2\x82\xac", 4);
		*field = text;
		snprintf(want, sizeof(want), "%s: \"", fields[i].name);
		assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, want);
		snprintf(want, sizeof(want), "...\" has %zu characters, at most %zu; shorten it",
			 fields[i].max + 1, fields[i].max);
		assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, want);
		text[3 * fields[i].max] = '\0';
		assert_ok(outbox_message_validate(&message, 0, err));
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			*field = bad[j][0];
			assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
				     bad[j][1]);
			assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
				     fields[i].name);
		}
	}
}

static void content_types_and_traces_have_their_form(void **state)
{
	static const char *const types[] = { "json", "/json", "text/", "text/;x",
					     "t\xc3\xa9xt/plain" };
	static const char *const traces[] = {
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
		"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	};
	struct outbox_message message = minimal();
	size_t i;

	(void)state;
	message.traceparent = TRACE;
	assert_ok(outbox_message_validate(&message, 0, err));
	message.traceparent = "01"
			      "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
	assert_ok(outbox_message_validate(&message, 0, err));
	for (i = 0; i < ARRAY_SIZE(traces); i++) {
		message.traceparent = traces[i];
		assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
			     "is not a W3C trace context; write 00-");
	}
	message.traceparent = NULL;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		message.content_type = types[i];
		assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
			     "is not a media type; write one such as");
	}
	message.content_type = "text/plain; charset=utf-8";
	assert_ok(outbox_message_validate(&message, 0, err));
}

static void numbers_are_checked(void **state)
{
	struct outbox_message message = minimal();

	(void)state;
	message.kind = 3;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "kind: 3 is unknown");
	message.kind = -1;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "kind: -1");
	message = minimal();
	message.priority = 101;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "priority: 101");
	message.priority = -101;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "priority: -101");
	message = minimal();
	message.event_time = -1;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "event_time: -1");
	message.event_time = 253402300800 * OUTBOX_SECONDS;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
		     "is after the year 9999");
	message = minimal();
	message.due_at = -1;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "due_at: -1");
	message = minimal();
	message.expires_at = -1;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "expires_at: -1");
	message.due_at = 5 * OUTBOX_SECONDS;
	message.expires_at = 5 * OUTBOX_SECONDS;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
		     "expires_at: 1970-01-01T00:00:05Z is not after due_at");
	message.expires_at++;
	assert_ok(outbox_message_validate(&message, 0, err));
}

static void payloads_are_bounded(void **state)
{
	struct outbox_message message = minimal();
	char *data = calloc(1, OUTBOX_PAYLOAD_MAX + 1);

	(void)state;
	assert_non_null(data);
	message.content_type = "application/octet-stream";
	message.size = 1;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
		     "data: NULL with a size");
	message.data = data;
	message.size = OUTBOX_PAYLOAD_MAX;
	assert_ok(outbox_message_validate(&message, 0, err));
	message.size++;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
		     "data: has 16777217 bytes, at most 16777216");
	assert_ok(outbox_message_validate(&message, OUTBOX_PAYLOAD_MAX + 1, err));
	assert_fails(outbox_message_validate(&message, 10, err), OUTBOX_EINVAL, "at most 10");
	free(data);
}

static void what_claims_to_be_json_must_be(void **state)
{
	struct outbox_message message = minimal();

	(void)state;
	message.data = "{\"a\":1,}";
	message.size = 8;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL,
		     "data: not JSON at line 1, column 8");
	message.content_type = "Application/Problem+JSON; charset=utf-8";
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "data: not JSON");
	message.content_type = "text/plain";
	assert_ok(outbox_message_validate(&message, 0, err));
}

static void an_older_header_goes_on_working(void **state)
{
	struct outbox_message message = minimal(), view;
	char memory[sizeof(message) + 64];

	(void)state;
	message.struct_size = 0;
	message.expires_at = 7;
	view = message_view(&message);
	assert_int_equal(view.struct_size, sizeof(message));
	assert_string_equal(view.type, "order.placed");
	assert_int_equal(view.expires_at, 7);
	/* A newer header's message: what is behind ours is not looked at. */
	memset(memory, 0x55, sizeof(memory));
	message.struct_size = sizeof(memory);
	memcpy(memory, &message, sizeof(message));
	view = message_view((struct outbox_message *)memory);
	assert_int_equal(view.struct_size, sizeof(message));
	message.struct_size = 8;
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "struct_size: 8");
}

static void text_and_json_are_told_by_content_type(void **state)
{
	static const char *const json[] = { NULL, "application/json", "APPLICATION/JSON",
					    "text/json ; charset=utf-8", "application/vnd.x+json" };
	static const char *const other[] = { "application/jsonx",
					     "application/x-ndjson",
					     "json",
					     "+json",
					     "text/plain; x=application/json",
					     "application/octet-stream" };
	struct outbox_message message = minimal();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(json); i++)
		assert_true(content_type_is_json(json[i]));
	for (i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(content_type_is_json(other[i]));
	assert_true(message_is_text(&message));
	message.data = "a\0b";
	message.size = 3;
	assert_false(message_is_text(&message));
	message.size = 1;
	assert_true(message_is_text(&message));
	message.data = "\xff";
	assert_false(message_is_text(&message));
	message.data = "x";
	message.content_type = "application/octet-stream";
	assert_false(message_is_text(&message));
	message.content_type = "TEXT/csv";
	assert_true(message_is_text(&message));
	message.content_type = "application/soap+xml; x=y";
	assert_true(message_is_text(&message));
}

static void what_follows_bears_the_first_ones_id(void **state)
{
	struct outbox_message order = minimal(), invoice = minimal(), letter = minimal();

	(void)state;
	assert_fails(outbox_message_caused_by(&invoice, &order, err), OUTBOX_EINVAL,
		     "id: the parent");
	assert_fails(outbox_message_caused_by(&invoice, NULL, err), OUTBOX_EINVAL, "NULL");
	assert_null(invoice.causation_id);
	order.id = "order-1";
	order.traceparent = TRACE;
	assert_ok(outbox_message_caused_by(&invoice, &order, err));
	assert_string_equal(invoice.causation_id, "order-1");
	assert_string_equal(invoice.correlation_id, "order-1");
	assert_string_equal(invoice.traceparent, TRACE);
	invoice.id = "invoice-1";
	letter.traceparent = "its own";
	assert_ok(outbox_message_caused_by(&letter, &invoice, err));
	assert_string_equal(letter.causation_id, "invoice-1");
	assert_string_equal(letter.correlation_id, "order-1");
	assert_string_equal(letter.traceparent, "its own");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_type_is_required),
		cmocka_unit_test(every_field_at_its_best),
		cmocka_unit_test(texts_are_checked),
		cmocka_unit_test(content_types_and_traces_have_their_form),
		cmocka_unit_test(numbers_are_checked),
		cmocka_unit_test(payloads_are_bounded),
		cmocka_unit_test(what_claims_to_be_json_must_be),
		cmocka_unit_test(an_older_header_goes_on_working),
		cmocka_unit_test(text_and_json_are_told_by_content_type),
		cmocka_unit_test(what_follows_bears_the_first_ones_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
