/* SPDX-License-Identifier: Apache-2.0 */

/* Lifecycle, routing, slots, and what a driver says of a message. */

#include "base/unit_test.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "core/key_hash.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "core/routing.h"
#include "frozen_clock.h"

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <stdio.h>
#include <string.h>

/* Rows: from; columns: claim ack retry return fail defer park requeue discard. */
static const char *const table[] = {
	[OUTBOX_STATE_UNSET] = ".........", [OUTBOX_PENDING] = "s....pp.x",
	[OUTBOX_SENDING] = ".dppf....",     [OUTBOX_DELIVERED] = ".........",
	[OUTBOX_FAILED] = ".......px",      [OUTBOX_DISCARDED] = ".........",
};

static void the_life_of_a_delivery(void **state)
{
	static const char letters[] = ".psdfx";
	size_t count = 0, used = 0, i;
	const struct lifecycle_rule *rules = lifecycle_rules(&count);
	int from, event;

	(void)state;
	for (from = 0; from <= 6; from++) {
		for (event = 0; event <= 10; event++) {
			char want =
				from < 6 && event > 0 && event < 10 ? table[from][event - 1] : '.';
			int next = lifecycle_next(from, event);

			assert_int_equal(letters[next], want);
			used += next != 0;
		}
	}
	assert_int_equal(used, count); /* no rule twice */
	for (i = 0; i < count; i++)
		assert_true(strlen(rules[i].when) > 5);
}

static void what_is_not_allowed_is_told(void **state)
{
	(void)state;
	assert_ok(lifecycle_check(OUTBOX_FAILED, LIFE_REQUEUE, err));
	assert_fails(lifecycle_check(OUTBOX_DELIVERED, LIFE_REQUEUE, err), OUTBOX_ECONFLICT,
		     "cannot requeue a delivered delivery: only failed ones");
	assert_fails(lifecycle_check(OUTBOX_DISCARDED, LIFE_DISCARD, err), OUTBOX_ECONFLICT,
		     "cannot discard a discarded delivery: only pending or failed ones");
	assert_fails(lifecycle_check(OUTBOX_SENDING, LIFE_DISCARD, err), OUTBOX_ECONFLICT,
		     "is being sent right now; try again");
	assert_fails(lifecycle_check(OUTBOX_SENDING, LIFE_REQUEUE, err), OUTBOX_ECONFLICT,
		     "cannot requeue a sending delivery: only failed ones");
	assert_fails(lifecycle_check(9, LIFE_DISCARD, err), OUTBOX_EINTERNAL, "state 9");
}

static void names_of_states(void **state)
{
	static const char *const states[] = { "pending", "sending", "delivered", "failed",
					      "discarded" };
	static const char *const whys[] = { "new", "retry", "deferred", "parked", "paused" };
	int i;

	(void)state;
	for (i = 1; i <= 5; i++) {
		assert_string_equal(outbox_state_name(i), states[i - 1]);
		assert_int_equal(outbox_state_parse(states[i - 1]), i);
		assert_string_equal(outbox_why_name(i), whys[i - 1]);
		assert_int_equal(outbox_why_parse(whys[i - 1]), i);
		assert_int_equal(outbox_why_parse("waiting"), OUTBOX_WAITING);
	}
	assert_null(outbox_state_name(0));
	assert_null(outbox_state_name(6));
	assert_null(outbox_why_name(-1));
	assert_int_equal(outbox_state_parse("Pending"), 0);
	assert_int_equal(outbox_state_parse(NULL), 0);
	assert_int_equal(outbox_why_parse(""), 0);
}

static void routes_match_when_all_conditions_hold(void **state)
{
	const char *types[] = { "order.*", "invoice.paid" };
	struct outbox_route all = { 0 }, some = { .types = types, .n_types = 2 };
	struct outbox_route events = { .kind = OUTBOX_KIND_EVENT },
			    outside = { .published_only = true };

	(void)state;
	assert_true(route_match_fields(&all, "x", OUTBOX_KIND_COMMAND, false));
	assert_true(route_match_fields(&some, "order.placed", 0, false));
	assert_true(route_match_fields(&some, "invoice.paid", 0, false));
	assert_false(route_match_fields(&some, "invoice.sent", 0, false));
	assert_true(route_match_fields(&events, "x", OUTBOX_KIND_UNSET, false));
	assert_true(route_match_fields(&events, "x", OUTBOX_KIND_EVENT, false));
	assert_false(route_match_fields(&events, "x", OUTBOX_KIND_COMMAND, false));
	assert_false(route_match_fields(&outside, "x", 0, false));
	assert_true(route_match_fields(&outside, "x", 0, true));
	some.kind = OUTBOX_KIND_COMMAND;
	assert_false(route_match_fields(&some, "order.placed", OUTBOX_KIND_EVENT, true));
}

static void headers_match_when_every_name_has_a_value(void **state)
{
	static const char *const wanted[] = { "region=eu-*", "tenant=acme", "Region=us", "x=*" };
	struct outbox_header headers[] = { { "X", "" }, { "TENANT", "acme" }, { "region", "eu-1" } };
	struct outbox_route route = { .headers = wanted, .n_headers = 4 };
	struct outbox_message m = { .type = "t", .headers = headers, .n_headers = 3 };

	(void)state;
	assert_true(route_match_headers(&(struct outbox_route){ 0 }, NULL, 0));
	assert_false(route_match_headers(&route, NULL, 0));
	assert_true(route_match(&route, &m));
	headers[2].value = "us";
	assert_true(route_match(&route, &m));
	headers[2].value = "us-1";
	assert_false(route_match(&route, &m));
	headers[2].value = "us";
	headers[1].value = "ACME";
	assert_false(route_match(&route, &m));
	headers[1] = (struct outbox_header){ "tenant2", "acme" };
	assert_false(route_match(&route, &m));
	headers[1] = (struct outbox_header){ "tenan", "acme" };
	assert_false(route_match(&route, &m));
	route.n_headers = 1;
	assert_false(route_match(&route, &m));
	headers[2].value = "eu-";
	assert_true(route_match(&route, &m));
	route.kind = OUTBOX_KIND_COMMAND;
	assert_false(route_match(&route, &m));
}

static void routes_come_back_and_have_one_text(void **state)
{
	static const char again[] = "order.*"; /* the same text in another place */
	const char *types[] = { "order.*", "a\"b", again, "aa" };
	const char *other[] = { "aa", "order.*", "a\"b" };
	const char *headers[] = { "tenant=*", "a=b", "tenant=*" };
	struct outbox_route route = { types, 4, OUTBOX_KIND_EVENT, true };
	struct outbox_route same = { other, 3, OUTBOX_KIND_EVENT, true }, back;
	_cleanup_(buf_deinit) struct buf a = BUF_INIT(4096), b = BUF_INIT(4096);
	struct outbox_arena *arena = outbox_arena_new(4096);

	(void)state;
	route_format(&route, &a);
	assert_string_equal(buf_str(&a),
			    "{\"types\":[\"a\\\"b\",\"aa\",\"order.*\"],\"kind\":\"event\","
			    "\"published\":true}");
	route_format(&same, &b);
	assert_string_equal(buf_str(&a), buf_str(&b));
	assert_ok(route_parse(buf_str(&a), arena, &back, err));
	assert_int_equal(back.n_types, 3);
	assert_string_equal(back.types[0], "a\"b");
	assert_int_equal(back.kind, OUTBOX_KIND_EVENT);
	assert_true(back.published_only);
	/* without bands, or with all of them, as a program writes it that knows none */
	buf_clear(&b);
	route = (struct outbox_route){ .bands = 7 };
	route_format(&route, &b);
	assert_null(strstr(buf_str(&b), "priority"));
	buf_clear(&b);
	route.bands = OUTBOX_BAND_LOW | OUTBOX_BAND_HIGH;
	route_format(&route, &b);
	assert_string_equal(buf_str(&b), "{\"types\":[],\"kind\":\"any\",\"published\":false,"
					 "\"priority\":[\"high\",\"low\"]}");
	assert_ok(route_parse(buf_str(&b), arena, &back, err));
	assert_int_equal(back.bands, OUTBOX_BAND_LOW | OUTBOX_BAND_HIGH);
	/* headers in front of bands, which SQL looks for at the end */
	buf_clear(&b);
	route.headers = headers;
	route.n_headers = 3;
	route_format(&route, &b);
	assert_string_equal(buf_str(&b),
			    "{\"types\":[],\"kind\":\"any\",\"published\":false,"
			    "\"headers\":[\"a=b\",\"tenant=*\"],\"priority\":[\"high\",\"low\"]}");
	assert_ok(route_parse(buf_str(&b), arena, &back, err));
	assert_int_equal(back.n_headers, 2);
	assert_string_equal(back.headers[0], "a=b");
	buf_clear(&b);
	route_format(&(struct outbox_route){ 0 }, &b);
	assert_string_equal(buf_str(&b), "{\"types\":[],\"kind\":\"any\",\"published\":false}");
	assert_ok(route_parse(buf_str(&b), arena, &back, err));
	assert_true(back.n_types == 0 && back.kind == 0 && !back.published_only);
	outbox_arena_free(arena);
}

static void stored_routes_that_are_not_ours(void **state)
{
	static const char *const bad[] = {
		"",
		"null",
		"[]",
		"{}",
		"{\"types\":[],\"kind\":\"any\"}",
		"{\"types\":[1],\"kind\":\"any\",\"published\":true}",
		"{\"types\":[],\"kind\":\"none\",\"published\":true}",
		"{\"types\":[],\"kind\":\"any\",\"published\":1}",
		"{\"types\":[\"a[b\"],\"kind\":\"any\",\"published\":true}",
		"{\"types\":[],\"kind\":\"any\",\"published\":true,\"more\":1}",
		"{\"types\":[],\"kind\":\"any\",\"published\":true,\"headers\":[]}",
		"{\"types\":[],\"kind\":\"any\",\"published\":true,\"headers\":[1]}",
		"{\"types\":[],\"kind\":\"any\",\"published\":true,\"headers\":[\"tenant\"]}",
	};
	struct outbox_arena *arena = outbox_arena_new(4096);
	struct outbox_route back = { .n_types = 9 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(route_parse(bad[i], arena, &back, err), OUTBOX_EPROTO, "route: ");
	assert_fails(route_parse(NULL, arena, &back, err), OUTBOX_EPROTO, "route: ");
	assert_int_equal(back.n_types, 9);
	outbox_arena_free(arena);
}

static void wrong_routes_and_names_are_told(void **state)
{
	static const char *const good[] = { "a", "events", "a-1_b" };
	static const struct {
		const char *text, *told;
	} bad_headers[] = {
		{ "", "header \"\" is not NAME=GLOB; write tenant=acme, or tenant=* for any value" },
		{ "tenant", "header \"tenant\" is not NAME=GLOB" },
		{ "tenant=", "header \"tenant=\" is not NAME=GLOB" },
		{ "=acme", "header \"=acme\" is not NAME=GLOB" },
		{ "ten*=acme", "header \"ten*=acme\" has a pattern for its name; write each name" },
		{ "ten ant=acme", "name \"ten ant\" has a character that headers cannot have" },
		{ "ce-type=acme", "name \"ce-type\" is reserved" },
		{ "tenant=[ab]", "header \"tenant=[ab]\" has a bracket; globs know only * and ?" },
		{ "tenant=a\tb", "control character" },
	};
	static const char *const bad[] = { "", "1a", "-a", "Events", "a b", "a.b", "\xc3\xa9" };
	char longest[OUTBOX_TARGET_NAME_MAX + 2], glob[OUTBOX_TYPE_MAX + 2];
	const char *types[1];
	struct outbox_route route = { types, 1, 0, false };
	size_t i;

	(void)state;
	types[0] = "";
	assert_fails(route_check(&route, err), OUTBOX_ECONFIG, "a type is empty");
	types[0] = "a[b]";
	assert_fails(route_check(&route, err), OUTBOX_ECONFIG, "has a bracket");
	types[0] = "a\n";
	assert_fails(route_check(&route, err), OUTBOX_ECONFIG, "control character");
	memset(glob, 'x', sizeof(glob));
	glob[OUTBOX_TYPE_MAX + 1] = '\0';
	types[0] = glob;
	assert_fails(route_check(&route, err), OUTBOX_ECONFIG, "has 501 characters, at most 500");
	glob[OUTBOX_TYPE_MAX] = '\0';
	assert_ok(route_check(&route, err));
	route.headers = types;
	route.n_headers = 1;
	for (i = 0; i < ARRAY_SIZE(bad_headers); i++) {
		static const char *const ok = "x";

		types[0] = bad_headers[i].text;
		route.types = &ok;
		assert_fails(route_check(&route, err), OUTBOX_ECONFIG, bad_headers[i].told);
	}
	types[0] = "tenant=a=b*";
	assert_ok(route_check(&route, err));
	route.kind = 3;
	assert_fails(route_check(&route, err), OUTBOX_ECONFIG, "kind 3 is unknown");
	for (i = 0; i < ARRAY_SIZE(good); i++)
		assert_ok(target_name_check(good[i], err));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(target_name_check(bad[i], err), OUTBOX_ECONFIG, "is not a name; use");
	assert_fails(target_name_check(NULL, err), OUTBOX_ECONFIG, "is not a name");
	memset(longest, 'a', sizeof(longest));
	longest[OUTBOX_TARGET_NAME_MAX + 1] = '\0';
	assert_fails(target_name_check(longest, err), OUTBOX_ECONFIG, "is not a name");
	longest[OUTBOX_TARGET_NAME_MAX] = '\0';
	assert_ok(target_name_check(longest, err));
}

/* The formula of key_hash.h, once more and straight. These numbers are stored: they never change. */
static void slots_follow_the_formula(void **state)
{
	struct random_state random;
	int round;

	(void)state;
	assert_int_equal(key_hash(""), 0);
	assert_int_equal(key_hash("a"), 7 + 97 * 3 + 97 * 30);
	assert_int_equal(key_hash("42"), (14 + '2' * 3 + '4' * 5 + '4' * 30 + '2' * 38) % 4096);
	assert_int_equal(key_hash("\xc3\xa9"),
			 (14 + 0xa9 * 3 + 0xc3 * 5 + 0xc3 * 30 + 0xa9 * 38) % 4096);
	random_init(&random, 1);
	for (round = 0; round < 20000; round++) {
		char key[300];
		int length = (int)random_between(&random.base, 0, 299), i, sum = 7 * length;

		for (i = 0; i < length; i++)
			key[i] = (char)random_between(&random.base, 1, 255);
		key[length] = '\0';
		for (i = length - 1; i >= 0 && i >= length - 12; i--)
			sum += (unsigned char)key[i] * (2 * (length - 1 - i) + 3);
		for (i = 0; i < 4 && i < length; i++)
			sum += (unsigned char)key[i] * (8 * i + 30);
		assert_int_equal(key_hash(key), sum % 4096);
	}
}

/* Names with a number behind, and ids (messages without a key), spread over the lanes. */
static void slots_spread_over_lanes(void **state)
{
	int names[16] = { 0 }, ids[16] = { 0 }, i;
	struct frozen_clock clock;
	struct random_state random;

	(void)state;
	random_init(&random, 1);
	frozen_clock_init(&clock, 1700000000 * OUTBOX_SECONDS);
	for (i = 0; i < 16000; i++) {
		char key[40];

		snprintf(key, sizeof(key), "order-%d", i);
		names[key_hash(key) % 16]++;
		outbox_uuid(&clock.base, &random.base, key);
		ids[key_hash(key) % 16]++;
		frozen_clock_step(&clock, OUTBOX_MILLISECONDS);
	}
	for (i = 0; i < 16; i++) {
		assert_in_range(names[i], 800, 1200);
		assert_in_range(ids[i], 800, 1200);
	}
}

/* Bare numbers too: each byte of a short key counts at both ends, which must not cancel out. */
static void slots_spread_short_numbers(void **state)
{
	int four[16] = { 0 }, all[16] = { 0 }, i;

	(void)state;
	for (i = 0; i < 16000; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%d", i);
		all[key_hash(key) % 16]++;
		if (i >= 1000 && i < 10000)
			four[key_hash(key) % 16]++;
	}
	for (i = 0; i < 16; i++) {
		assert_in_range(all[i], 800, 1200);
		assert_in_range(four[i], 450, 675);
	}
}

static void a_reason_is_one_clean_line(void **state)
{
	struct outbox_item item = { .verdict = OUTBOX_UNKNOWN }, *items[] = { &item };
	struct outbox_batch batch = { items, 1, outbox_arena_new(1 << 20) };
	static char text[5 * ERROR_TEXT_MAX];
	size_t i;

	(void)state;
	outbox_batch_verdict(&batch, 0, OUTBOX_RETRY, 422, "%d: \"total\"\r\n\xff", 422);
	assert_int_equal(item.verdict, OUTBOX_RETRY);
	assert_int_equal(item.native, 422);
	assert_string_equal(item.reason, "422: \"total\"  ?");
	for (i = 0; i + 4 < sizeof(text); i += 4)
		memcpy(text + i, "\xf0\x9f\x98\x80", 5);
	outbox_batch_verdict(&batch, 0, OUTBOX_REJECTED, 0, "%s", text);
	assert_int_equal(utf8_length(item.reason), ERROR_TEXT_MAX);
	assert_true(utf8_valid(item.reason, strlen(item.reason)));
	outbox_batch_verdict(&batch, 0, OUTBOX_ACKED, 0, NULL);
	assert_int_equal(item.verdict, OUTBOX_ACKED);
	assert_null(item.reason);
	assert_false(item.duplicate);
	outbox_batch_verdict(&batch, 1, OUTBOX_REJECTED, 0, "not there");
	outbox_batch_duplicate(&batch, 1);
	assert_int_equal(item.verdict, OUTBOX_ACKED);
	assert_false(item.duplicate);
	outbox_batch_duplicate(&batch, 0);
	assert_int_equal(item.verdict, OUTBOX_ACKED);
	assert_true(item.duplicate);
	assert_null(item.reason);
	outbox_batch_verdict(&batch, 0, OUTBOX_UNKNOWN, 0, "taken back");
	assert_false(item.duplicate);
	outbox_arena_free(batch.memory);
	batch.memory = outbox_arena_new(16);
	outbox_batch_verdict(&batch, 0, OUTBOX_RETRY, 0, "longer than the arena");
	assert_non_null(item.reason);
	outbox_arena_free(batch.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_life_of_a_delivery),
		cmocka_unit_test(what_is_not_allowed_is_told),
		cmocka_unit_test(names_of_states),
		cmocka_unit_test(routes_match_when_all_conditions_hold),
		cmocka_unit_test(headers_match_when_every_name_has_a_value),
		cmocka_unit_test(routes_come_back_and_have_one_text),
		cmocka_unit_test(stored_routes_that_are_not_ours),
		cmocka_unit_test(wrong_routes_and_names_are_told),
		cmocka_unit_test(slots_follow_the_formula),
		cmocka_unit_test(slots_spread_over_lanes),
		cmocka_unit_test(slots_spread_short_numbers),
		cmocka_unit_test(a_reason_is_one_clean_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
