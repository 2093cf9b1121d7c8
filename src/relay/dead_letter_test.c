/* SPDX-License-Identifier: Apache-2.0 */

/* What a dead letter says of itself, and what it looks like in each envelope. */

#include "relay/dead_letter.h"

#include "base/cleanup.h"
#include "base/unit_test.h"
#include "core/message.h"

#include <outbox/transport.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define AT (1700000000 * OUTBOX_SECONDS + 250000)

static const struct outbox_header own[] = { { "tenant", "7" } };
static struct outbox_arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = outbox_arena_new(1 << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	arena = outbox_arena_free(arena);
	return 0;
}

/* It failed at "events" after three tries. */
static struct outbox_claimed claimed(void)
{
	struct outbox_claimed c = { .seq = 7,
				    .created_at = 1,
				    .dead_target = "events",
				    .dead_reason = "no such queue",
				    .dead_attempts = 3,
				    .dead_at = AT };

	c.message = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	c.message.id = "m1";
	c.message.type = "order.placed";
	c.message.source = "/shop";
	c.message.content_type = "application/json";
	c.message.data = "{}";
	c.message.size = 2;
	c.message.headers = own;
	c.message.n_headers = 1;
	return c;
}

static const char *header(const struct outbox_header *headers, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(headers[i].name, name) == 0)
			return headers[i].value;
	return NULL;
}

static const char *said(const struct outbox_claimed *c, const char *name)
{
	return header(c->message.headers, c->message.n_headers, name);
}

static void assert_said(const struct outbox_header *headers, size_t n)
{
	assert_string_equal(header(headers, n, "outbox-dead-target"), "events");
	assert_string_equal(header(headers, n, "outbox-dead-reason"), "no such queue");
	assert_string_equal(header(headers, n, "outbox-dead-attempts"), "3");
	assert_string_equal(header(headers, n, "outbox-dead-at"), "2023-11-14T22:13:20.25Z");
	assert_string_equal(header(headers, n, "tenant"), "7");
}

static void where_why_how_often_and_when(void **state)
{
	struct outbox_claimed c = claimed();

	(void)state;
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_int_equal(c.message.n_headers, 5);
	assert_said(c.message.headers, 5);
	assert_string_equal(c.message.headers[0].name, "tenant"); /* ours are behind */
	assert_string_equal(own[0].value, "7");
}

static void others_are_left_alone(void **state)
{
	struct outbox_claimed c = claimed();

	(void)state;
	c.dead_target = NULL;
	c.message.expires_at = c.message.due_at = 9;
	c.message.data = "{x";
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_ptr_equal(c.message.headers, own);
	assert_int_equal(c.message.n_headers, 1);
	assert_int_equal(c.message.expires_at, 9);
	assert_int_equal(c.message.due_at, 9);
	assert_string_equal(c.message.content_type, "application/json");
	c = claimed();
	c.malformed = "headers: not a JSON object";
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_int_equal(c.message.n_headers, 1);
}

static void a_reason_is_one_line_of_bounded_length(void **state)
{
	char reason[5000];
	struct outbox_claimed c = claimed();

	(void)state;
	c.dead_reason = NULL;
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_string_equal(said(&c, "outbox-dead-reason"), "unknown");
	c = claimed();
	c.dead_reason = "a\r\nEvil: 1\x1b[31m\x7f";
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_null(strpbrk(said(&c, "outbox-dead-reason"), "\r\n\x1b\x7f"));
	assert_non_null(strstr(said(&c, "outbox-dead-reason"), "Evil: 1"));
	c.dead_reason = "no \"queue\" C:\\x";
	c.message.n_headers = 0;
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_string_equal(said(&c, "outbox-dead-reason"), "no \"queue\" C:\\x");
	memset(reason, 'x', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	c = claimed();
	c.dead_reason = reason;
	assert_ok(dead_letter_headers(&c, arena, err));
	assert_in_range(strlen(said(&c, "outbox-dead-reason")), 500, 1000);
}

/* As many as it may have: the last are left out, and its own all stay. */
static void a_message_full_of_headers(void **state)
{
	struct outbox_header many[OUTBOX_HEADERS_MAX];
	char names[OUTBOX_HEADERS_MAX][8];

	(void)state;
	for (size_t i = 0; i < OUTBOX_HEADERS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "h%zu", i);
		many[i] = (struct outbox_header){ names[i], "v" };
	}
	for (size_t room = 0; room <= 4; room++) {
		struct outbox_claimed c = claimed();

		c.message.headers = many;
		c.message.n_headers = OUTBOX_HEADERS_MAX - room;
		c.message.expires_at = 5;
		assert_ok(dead_letter_headers(&c, arena, err));
		assert_int_equal(c.message.n_headers, OUTBOX_HEADERS_MAX);
		assert_non_null(said(&c, names[OUTBOX_HEADERS_MAX - room - 1]));
		assert_int_equal(!!said(&c, "outbox-dead-target"), room >= 1);
		assert_int_equal(!!said(&c, "outbox-dead-reason"), room >= 2);
		assert_int_equal(!!said(&c, "outbox-dead-attempts"), room >= 3);
		assert_int_equal(!!said(&c, "outbox-dead-at"), room >= 4);
		assert_int_equal(c.message.expires_at, 0);
	}
}

/* It must not fail for the reasons it failed for before. */
static void its_bars_are_lifted(void **state)
{
	static const struct {
		const char *type, *data, *want;
	} rows[] = {
		{ "application/json", "{}", "application/json" },
		{ "application/json", "{broken", "text/plain" },
		{ "application/vnd.shop+json", "{broken", "text/plain" },
		{ "application/json", "\xff\xfe", "application/octet-stream" },
		{ "image/png", "\xff\xfe", "image/png" },
		{ "application/json", "", "application/json" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct outbox_claimed c = claimed();

		c.message.expires_at = c.message.due_at = 9;
		c.message.content_type = rows[i].type;
		c.message.data = rows[i].data;
		c.message.size = strlen(rows[i].data);
		assert_ok(dead_letter_headers(&c, arena, err));
		assert_int_equal(c.message.expires_at, 0);
		assert_int_equal(c.message.due_at, 0);
		assert_string_equal(c.message.content_type, rows[i].want);
		assert_ptr_equal(c.message.data, rows[i].data);
	}
}

static void without_memory_it_says_so(void **state)
{
	struct outbox_arena *small = outbox_arena_new(16);
	struct outbox_claimed c = claimed();

	(void)state;
	assert_non_null(small);
	assert_fails(dead_letter_headers(&c, small, err), OUTBOX_ENOMEM, "out of memory");
	assert_ptr_equal(c.message.headers, own);
	outbox_arena_free(small);
}

/* ---- in envelopes --------------------------------------------------------------------------- */

/* Encoded by an encoder that the caller frees. */
static struct outbox_encoded encode(int envelope, struct outbox_encoder **ret_encoder)
{
	struct outbox_claimed c = claimed();
	struct outbox_item item = { .message = &c.message, .seq = 7, .created_at = 1 };
	struct outbox_encoded encoded = { 0 };

	assert_ok(dead_letter_headers(&c, arena, err));
	assert_ok(outbox_encoder_new(envelope, NULL, ret_encoder, err));
	assert_ok(outbox_encode(*ret_encoder, &item, &encoded, err));
	return encoded;
}

static json_t *structured(int envelope)
{
	struct outbox_encoder *encoder;
	struct outbox_encoded encoded = encode(envelope, &encoder);
	json_t *root = json_loadb(encoded.body, encoded.size, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(root);
	outbox_encoder_free(encoder);
	return root;
}

static void assert_member(json_t *root, const char *name, const char *want)
{
	const char *got = json_string_value(json_object_get(root, name));

	if (!got || strcmp(got, want) != 0)
		fail_msg("%s is %s, not %s", name, got ? got : "missing", want);
}

static void attributes_in_the_structured_one(void **state)
{
	json_auto_t *root = structured(OUTBOX_ENVELOPE_CE_STRUCTURED);

	(void)state;
	assert_member(root, "outboxdeadtarget", "events");
	assert_member(root, "outboxdeadreason", "no such queue");
	assert_member(root, "outboxdeadattempts", "3");
	assert_member(root, "outboxdeadat", "2023-11-14T22:13:20.25Z");
	assert_member(root, "tenant", "7");
	assert_null(json_object_get(root, "outboxheaders"));
}

static void none_go_outside(void **state)
{
	struct outbox_encoder *encoder;
	struct outbox_encoded encoded = encode(OUTBOX_ENVELOPE_EXTERNAL, &encoder);
	json_auto_t *root = structured(OUTBOX_ENVELOPE_EXTERNAL);

	(void)state;
	assert_member(root, "tenant", "7");
	assert_null(memmem(encoded.body, encoded.size, "dead", 4));
	assert_null(memmem(encoded.body, encoded.size, "no such queue", 13));
	assert_int_equal(encoded.n_headers, 0);
	outbox_encoder_free(encoder);
}

static void headers_in_the_others(void **state)
{
	static const int envelopes[] = { OUTBOX_ENVELOPE_CE_BINARY, OUTBOX_ENVELOPE_NATIVE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(envelopes); i++) {
		struct outbox_encoder *encoder;
		struct outbox_encoded encoded = encode(envelopes[i], &encoder);

		assert_said(encoded.headers, encoded.n_headers);
		assert_int_equal(encoded.size, 2);
		outbox_encoder_free(encoder);
	}
}

/* Nobody who publishes can say such a thing. */
static void they_are_refused_from_publishers(void **state)
{
	static const struct outbox_header forged[] = { { "outbox-dead-target", "events" } };

	(void)state;
	assert_fails(headers_check(forged, 1, err), OUTBOX_EINVAL, "is reserved");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(where_why_how_often_and_when),
		CASE(others_are_left_alone),
		CASE(a_reason_is_one_line_of_bounded_length),
		CASE(a_message_full_of_headers),
		CASE(its_bars_are_lifted),
		CASE(without_memory_it_says_so),
		CASE(attributes_in_the_structured_one),
		CASE(none_go_outside),
		CASE(headers_in_the_others),
		CASE(they_are_refused_from_publishers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
