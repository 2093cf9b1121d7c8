/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON scanner, with jansson as the witness, and headers as JSON. */

#include "base/unit_test.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "core/json.h"
#include "core/message.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_is_taken(void **state)
{
	static const char *const good[] = {
		"{}",
		"[]",
		"null",
		"true",
		"false",
		"0",
		"-0",
		"-1.5e+30",
		"1E400",
		"\"\"",
		" [ 1 , 2 ] ",
		"{\"a\":{\"b\":[{},[],\"\\u00e9\\n\"]},\"a\":2}",
		"\"\xe2\x82\xac\"",
		"\t\r\n1",
		"123456789012345678901234567890123456789",
		"\"\\u0000\"",
		"[[[[[[[[[[]]]]]]]]]]",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\uABCD\"",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++)
		assert_ok(json_text_check(good[i], strlen(good[i]), err));
}

static void other_text_is_refused_with_its_place(void **state)
{
	static const char *const bad[][2] = {
		{ "", "line 1, column 1: it ends where a value is expected" },
		{ "   ", "line 1, column 4" },
		{ "{\n\"a\": tru}", "line 2, column 6: a value expected" },
		{ "{\"a\":1,}", "column 8: a string in double quotes expected" },
		{ "[1,]", "column 4: a value expected" },
		{ "[1 2]", "a comma or ] expected" },
		{ "{\"a\":1]", "a comma or } expected" },
		{ "{\"a\" 1}", "a colon expected" },
		{ "{a:1}", "a string in double quotes expected" },
		{ "[1", "a comma or ] expected" },
		{ "\"abc", "a string does not end" },
		{ "\"a\nb\"", "a control character inside a string" },
		{ "\"\\x\"", "invalid escape" },
		{ "\"\\u12g4\"", "\\u without four" },
		{ "01", "more text after the value" },
		{ "1.", "a digit expected" },
		{ "-", "a digit expected" },
		{ "1e", "a digit expected" },
		{ "{} {}", "more text after the value" },
		{ "NaN", "a value expected" },
		{ "'a'", "a value expected" },
		{ "]", "a value expected" },
		{ "nul", "a value expected" },
		{ "\"\xff\"", "not UTF-8" },
		{ "\xef\xbb\xbf{}", "a value expected" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(json_text_check(bad[i][0], strlen(bad[i][0]), err), OUTBOX_EINVAL,
			     bad[i][1]);
	assert_fails(json_text_check("1\0", 2, err), OUTBOX_EINVAL, "more text");
	assert_fails(json_text_check("\"\0\"", 3, err), OUTBOX_EINVAL, "control character");
	/* The size counts, not a NUL: nothing behind it is read. */
	assert_fails(json_line_check("{\"a\":\ntrue", 10, err), OUTBOX_EINVAL, "at column 11");
	assert_ok(json_line_check("{}\r", 3, err));
	assert_fails(json_text_check("truely", 3, err), OUTBOX_EINVAL, "a value expected");
	assert_ok(json_text_check("truely", 4, err));
}

static void depth_is_bounded(void **state)
{
	char text[2 * (JSON_DEPTH_MAX + 1)];

	(void)state;
	memset(text, '[', sizeof(text) / 2);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_ok(json_text_check(text, 2 * JSON_DEPTH_MAX, err));
	memset(text, '[', sizeof(text) / 2);
	memset(text + sizeof(text) / 2, ']', sizeof(text) / 2);
	assert_fails(json_text_check(text, sizeof(text), err), OUTBOX_EINVAL, "nested deeper");
}

/* Random texts out of JSON's pieces: the verdict is jansson's, the compacted text means the same. */
static void agrees_with_jansson(void **state)
{
	static const char *const pieces[] = { "{",     "}",        "[", "]",    ",",    ":",
					      "\"a\"", "\"b\\n\"", "1", "-2.5", "true", "null",
					      " ",     "\n",       "0", "\"",   "\\",   "e-" };
	_cleanup_(buf_deinit) struct buf compact = BUF_INIT(4096);
	struct random_state random;
	int round, valid = 0;

	(void)state;
	random_init(&random, 21);
	for (round = 0; round < 300000; round++) {
		int n = (int)random_between(&random.base, 1, 9), i;
		char text[128] = "";
		json_auto_t *want = NULL, *got = NULL;

		for (i = 0; i < n; i++)
			strcat(text, pieces[random_between(&random.base, 0, ARRAY_SIZE(pieces) - 1)]);
		want = json_loads(text, JSON_DECODE_ANY, NULL);
		if ((json_text_check(text, strlen(text), NULL) == OUTBOX_OK) != (want != NULL))
			fail_msg("jansson %s it: %s", want ? "takes" : "refuses", text);
		if (!want)
			continue;
		valid++;
		buf_clear(&compact);
		json_append_compact(&compact, text, strlen(text));
		assert_null(strpbrk(buf_str(&compact), "\n\r\t"));
		got = json_loads(buf_str(&compact), JSON_DECODE_ANY, NULL);
		assert_true(json_equal(want, got));
	}
	assert_true(valid > 3000);
}

static void strings_come_back(void **state)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4096);
	char text[260];
	json_auto_t *back = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < 128; i++)
		text[i] = (char)i;
	memcpy(text + 128, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	json_append_string(&out, text, 137);
	assert_null(strpbrk(buf_str(&out), "\n\r\t\x01\x7f"));
	back = json_loads(buf_str(&out), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	assert_int_equal(json_string_length(back), 137);
	assert_memory_equal(json_string_value(back), text, 137);
	buf_clear(&out);
	json_append_compact(&out, "{ \"a b\\\" c\" : [ 1 ,\n 2 ] }", 26);
	assert_string_equal(buf_str(&out), "{\"a b\\\" c\":[1,2]}");
}

static void headers_come_back_in_order(void **state)
{
	static const struct outbox_header headers[] = {
		{ "zeta", "1" }, { "Alpha", "\"quoted\"" }, { "m.i_d-", "\xe2\x82\xac" }, { "e", "" }
	};
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4096);
	struct outbox_arena *arena = outbox_arena_new(1 << 16);
	struct outbox_header *back = NULL;
	size_t n = 9, i;

	(void)state;
	assert_ok(headers_format(NULL, 0, &out, err));
	assert_null(out.data);
	assert_ok(headers_format(headers, 4, &out, err));
	assert_string_equal(buf_str(&out), "{\"zeta\":\"1\",\"Alpha\":\"\\\"quoted\\\"\","
					   "\"m.i_d-\":\"\xe2\x82\xac\",\"e\":\"\"}");
	assert_ok(headers_parse(buf_str(&out), arena, &back, &n, err));
	assert_int_equal(n, 4);
	for (i = 0; i < n; i++) {
		assert_string_equal(back[i].name, headers[i].name);
		assert_string_equal(back[i].value, headers[i].value);
	}
	assert_ok(headers_parse(NULL, arena, &back, &n, err));
	assert_int_equal(n, 0);
	assert_ok(headers_parse("\t null ", arena, &back, &n, err));
	assert_int_equal(n, 0);
	outbox_arena_free(arena);
}

/* Hand-written headers: numbers and booleans as they are written, every way to write a string. */
static void stored_headers_are_read(void **state)
{
	static const char json[] =
		" { \"a\" : true,\"b\":-7 ,\n\"c\":0.10,\"d\":false\t, \"e\":12345678901234567890123,"
		"\"f\":1e400,\"\\u0067\":\"\\u00e9\\u20AC\\uD83D\\ude00\",\"h\":\"\\\"\\\\\\/\\b\\f\\t\","
		"\"i\":\"{\\\"}],\\\\\",\"j\":\"\"} ";
	static const struct outbox_header wanted[] = {
		{ "a", "true" },
		{ "b", "-7" },
		{ "c", "0.10" },
		{ "d", "false" },
		{ "e", "12345678901234567890123" },
		{ "f", "1e400" },
		{ "g", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "h", "\"\\/\b\f\t" },
		{ "i", "{\"}],\\" },
		{ "j", "" },
	};
	struct outbox_arena *arena = outbox_arena_new(1 << 16);
	struct outbox_header *back = NULL;
	size_t n = 99, i;

	(void)state;
	assert_ok(headers_parse(json, arena, &back, &n, err));
	assert_int_equal(n, ARRAY_SIZE(wanted));
	for (i = 0; i < n; i++) {
		assert_string_equal(back[i].name, wanted[i].name);
		assert_string_equal(back[i].value, wanted[i].value);
	}
	assert_ok(headers_parse("{ }", arena, &back, &n, err));
	assert_int_equal(n, 0);
	outbox_arena_free(arena);
}

static void stored_headers_that_make_no_sense(void **state)
{
	static const char *const bad[][2] = {
		{ "", "not JSON" },
		{ "{", "not JSON at line 1" },
		{ "[]", "not a JSON object" },
		{ "\"x\"", "not a JSON object" },
		{ "{\"a\":null}", "the value of \"a\" is not a string" },
		{ "{\"a\":{}}", "the value of \"a\" is not a string" },
		{ "{\"a\":\"x\",\"A\":\"y\"}", "\"A\" is given twice" },
		{ "{\"a\":\"x\",\"a\":\"y\"}", "\"a\" is given twice" },
		{ "{\"a\":\"x\",\"\\u0061\":\"y\"}", "\"a\" is given twice" },
		{ "{\"a\":[\"x\"]}", "the value of \"a\" is not a string" },
		{ "{\"a\":\"\\u0000\"}", "a NUL (\\u0000) in a string" },
		{ "{\"\\u0000\":\"a\"}", "a NUL (\\u0000) in a string" },
		{ "{\"a\":\"\\ud83d\"}", "half of a surrogate pair" },
		{ "{\"a\":\"\\ude00\\ud83d\"}", "half of a surrogate pair" },
		{ "{\"a\":\"\\ud83d\\u0041\"}", "half of a surrogate pair" },
		{ "{\"a\":\"\\ud83d\\\\ude00\"}", "half of a surrogate pair" },
		{ "{\"a\":\"\xff\"}", "not UTF-8" },
		{ "{\"a\":\"x\"} {}", "more text after the value" },
		{ "{\"a\":01}", "not JSON at line 1" },
		{ "nul", "not JSON at line 1" },
		{ "{\"a b\":\"x\"}", "has a character that headers cannot have" },
		{ "{\"a\":\"x\\r\\nEvil: 1\"}", "has a line break" },
		{ "{\"ce-id\":\"x\"}", "is reserved" },
		{ "{\"\":\"x\"}", "a name is empty" },
	};
	struct outbox_arena *arena = outbox_arena_new(1 << 16);
	struct outbox_header *back = (void *)arena;
	size_t n = 9, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_fails(headers_parse(bad[i][0], arena, &back, &n, err), OUTBOX_EPROTO,
			     bad[i][1]);
		assert_ptr_equal(back, arena);
		assert_int_equal(n, 9);
	}
	outbox_arena_free(arena);
}

static void headers_are_checked(void **state)
{
	struct outbox_header headers[OUTBOX_HEADERS_MAX + 1];
	char names[OUTBOX_HEADERS_MAX + 1][8], *large = malloc(OUTBOX_HEADER_BYTES_MAX + 1);
	struct outbox_message message = { .type = "t", .headers = headers, .n_headers = 1 };
	static const char *const reserved[] = { "outbox-id", "OUTBOX-x", "ce-type", "CE_id",
						"Content-Type" };
	size_t i;

	(void)state;
	for (i = 0; i <= OUTBOX_HEADERS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "h%zu", i);
		headers[i] = (struct outbox_header){ names[i], "v" };
	}
	assert_ok(headers_check(headers, OUTBOX_HEADERS_MAX, err));
	assert_fails(headers_check(headers, OUTBOX_HEADERS_MAX + 1, err), OUTBOX_EINVAL,
		     "65 of them, at most 64");
	assert_fails(headers_check(NULL, 1, err), OUTBOX_EINVAL, "NULL with a count of 1");
	assert_non_null(large);
	memset(large, 'x', OUTBOX_HEADER_BYTES_MAX);
	large[OUTBOX_HEADER_BYTES_MAX - 2] = '\0';
	headers[0].value = large;
	assert_ok(headers_check(headers, 1, err));
	large[OUTBOX_HEADER_BYTES_MAX - 2] = 'x';
	large[OUTBOX_HEADER_BYTES_MAX - 1] = '\0';
	assert_fails(headers_check(headers, 1, err), OUTBOX_EINVAL,
		     "32769 bytes in all, at most 32768");
	headers[0].value = NULL;
	assert_fails(headers_check(headers, 1, err), OUTBOX_EINVAL, "\"h0\" has no value");
	headers[0].value = "\xff";
	assert_fails(headers_check(headers, 1, err), OUTBOX_EINVAL, "is not UTF-8");
	headers[0].value = "v";
	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		headers[0].name = reserved[i];
		assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "is reserved");
	}
	headers[0].name = "TraceParent";
	assert_ok(outbox_message_validate(&message, 0, err));
	message.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	assert_fails(outbox_message_validate(&message, 0, err), OUTBOX_EINVAL, "also set as a field");
	free(large);
}

/* What means something in a string is seen at every place of it. */
static void test_every_place(void **state)
{
	static const char odd[] = { '"', '\\', '\0', '\x1f', ' ', '!', '#', '[', ']', '\x7f' };
	char text[32];

	(void)state;
	for (size_t length = 1; length < 26; length++) {
		for (size_t place = 0; place < length; place++) {
			for (size_t i = 0; i < sizeof(odd); i++) {
				int status;

				memset(text, 'x', sizeof(text));
				text[0] = text[length + 1] = '"';
				text[1 + place] = odd[i];
				status = json_text_check(text, length + 2, NULL);
				/* an escaped x is wrong, an escaped quote leaves the string open */
				assert_int_equal(status, i < 4 ? OUTBOX_EINVAL : OUTBOX_OK);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_place),
		cmocka_unit_test(json_is_taken),
		cmocka_unit_test(other_text_is_refused_with_its_place),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(agrees_with_jansson),
		cmocka_unit_test(strings_come_back),
		cmocka_unit_test(headers_come_back_in_order),
		cmocka_unit_test(stored_headers_are_read),
		cmocka_unit_test(stored_headers_that_make_no_sense),
		cmocka_unit_test(headers_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
