/* SPDX-License-Identifier: Apache-2.0 */

#include "base/unit_test.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* What RFC 3629 says, written another way than the code under test. */
static size_t encode_utf8(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 63));
	out[2] = (char)(0x80 | (code >> 6 & 63));
	out[3] = (char)(0x80 | (code & 63));
	return 4;
}

static void every_code_point_is_valid_but_surrogates(void **state)
{
	char text[16] = "abcdefgh";
	uint32_t code;

	(void)state;
	for (code = 0; code <= 0x10ffff; code++) {
		size_t n = encode_utf8(code, text + 3);
		bool valid = code < 0xd800 || code > 0xdfff;

		assert_int_equal(utf8_valid(text + 3, n), valid);
		assert_int_equal(utf8_valid(text, 3 + n), valid);
		if (n > 1) {
			assert_false(utf8_valid(text + 3, n - 1));
			assert_false(utf8_valid(text + 4, n - 1));
		}
	}
}

static void overlong_and_too_large_are_not_utf8(void **state)
{
	static const char *const bad[] = {
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x80\x80",
		"\xe0\x9f\xbf",
		"\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\x80",
		"a\xfez",
		"12345678\xe2\x82",
		"\xe2\x28\xa1",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
	assert_true(utf8_valid("a\0b", 3));
	assert_true(utf8_valid("", 0));
}

static void cuts_between_characters(void **state)
{
	const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* a, e acute, euro, a face, z */
	static const size_t want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11 };
	size_t max;

	(void)state;
	assert_int_equal(utf8_length(text), 5);
	for (max = 0; max <= 11; max++) {
		size_t n = utf8_cut(text, 11, max);

		assert_int_equal(n, want[max]);
		assert_true(utf8_valid(text, n));
	}
	assert_int_equal(utf8_cut(text, 11, 100), 11);
	assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80\x80", 7, 5), 5);
	assert_int_equal(utf8_cut_chars(text, 0), 0);
	assert_int_equal(utf8_cut_chars(text, 3), 6);
	assert_int_equal(utf8_cut_chars(text, 99), 11);
}

static void display_escapes_what_could_harm_a_terminal(void **state)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4096);
	char shown[12];

	(void)state;
	text_display(&out, "a\n\t\x1b[31m\x7f\xc2\x85\xff\"\\\xe2\x80\xae\0z", 19);
	assert_string_equal(buf_str(&out), "a\\n\\t\\x1b[31m\\x7f\\u0085\\xff\\\"\\\\\\u202e\\x00z");
	buf_clear(&out);
	text_display(&out, "\xc3\xa9t\xc3\xa9", 5);
	assert_string_equal(buf_str(&out), "\xc3\xa9t\xc3\xa9");
	assert_string_equal(text_shown(shown, sizeof(shown), "abcdefghijk"), "abcdefghijk");
	assert_string_equal(text_shown(shown, sizeof(shown), "abcdefghijkl"), "abcdefgh...");
	assert_string_equal(text_shown(shown, sizeof(shown), "abcdefg\xe2\x82\xac\xe2\x82\xac"),
			    "abcdefg...");
	assert_string_equal(text_shown(shown, sizeof(shown), NULL), "(none)");
}

/* Whatever comes in: never longer than asked, valid UTF-8, no control characters. */
static void display_of_random_bytes_is_safe(void **state)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(4096);
	struct random_state random;
	int round;

	(void)state;
	random_init(&random, 7);
	for (round = 0; round < 20000; round++) {
		char bytes[24], shown[20], clean[24];
		size_t size = (size_t)random_between(&random.base, 0, 23), i;

		for (i = 0; i < size; i++)
			bytes[i] = (char)random_between(&random.base, -128, 127);
		bytes[size] = '\0';
		buf_clear(&out);
		text_display(&out, bytes, size);
		assert_false(text_has_control(buf_str(&out), out.size));
		text_shown(shown, (size_t)random_between(&random.base, 1, 20), bytes);
		assert_false(text_has_control(shown, strlen(shown)));
		memcpy(clean, bytes, size + 1);
		text_clean(clean);
		assert_int_equal(strlen(clean), strlen(bytes));
		assert_false(text_has_control(clean, strlen(clean)));
	}
}

static void control_characters_are_found(void **state)
{
	(void)state;
	assert_true(text_has_control("a\x01", 2));
	assert_true(text_has_control("a\x7f", 2));
	assert_true(text_has_control("\xc2\x80", 2));
	assert_true(text_has_control("\xc2\x9f", 2));
	assert_true(text_has_control("\xff", 1));
	assert_false(text_has_control("\xc2\xa0 ~", 4));
}

static void numbers_are_whole_and_in_range(void **state)
{
	int64_t number = -5;

	(void)state;
	assert_ok(number_parse("lanes", "256", 1, 256, &number, err));
	assert_int_equal(number, 256);
	assert_ok(number_parse("n", "-9223372036854775808", INT64_MIN, INT64_MAX, &number, err));
	assert_true(number == INT64_MIN);
	assert_ok(number_parse("n", "9223372036854775807", 0, INT64_MAX, &number, err));
	assert_true(number == INT64_MAX);
	assert_fails(number_parse("lanes", "257", 1, 256, &number, err), OUTBOX_EINVAL,
		     "lanes: \"257\" is not a whole number from 1 to 256");
	assert_fails(number_parse("n", "-1", 0, 9, &number, err), OUTBOX_EINVAL, "\"-1\"");
	assert_fails(number_parse("n", "", 0, 9, &number, err), OUTBOX_EINVAL, "n:");
	assert_fails(number_parse("n", "4 ", 0, 9, &number, err), OUTBOX_EINVAL, "\"4 \"");
	assert_fails(number_parse("n", "+4", 0, 9, &number, err), OUTBOX_EINVAL, "\"+4\"");
	assert_fails(number_parse("n", "--4", -9, 9, &number, err), OUTBOX_EINVAL, "\"--4\"");
	assert_fails(number_parse("n", NULL, 0, 9, &number, err), OUTBOX_EINVAL, "(none)");
	assert_fails(number_parse("n", "9223372036854775808", 0, INT64_MAX, &number, err),
		     OUTBOX_EINVAL, "9223372036854775808");
	assert_true(number == INT64_MAX); /* untouched by failures */
}

static void counts_have_separators(void **state)
{
	char text[COUNT_TEXT_MAX];

	(void)state;
	assert_string_equal(count_human(0, text), "0");
	assert_string_equal(count_human(999, text), "999");
	assert_string_equal(count_human(1204, text), "1,204");
	assert_string_equal(count_human(-100000, text), "-100,000");
	assert_string_equal(count_human(INT64_MIN, text), "-9,223,372,036,854,775,808");
}

static void globs_match_whole_texts(void **state)
{
	(void)state;
	assert_true(glob_match("order.*", "order.placed"));
	assert_true(glob_match("order.*", "order."));
	assert_false(glob_match("order.*", "orders.placed"));
	assert_false(glob_match("order", "order.placed"));
	assert_true(glob_match("*", ""));
	assert_false(glob_match("", "a"));
	assert_true(glob_match("*.placed", "a.b.placed"));
	assert_true(glob_match("a*b*c", "axxbyyb-c"));
	assert_false(glob_match("a*b*c", "axxbyyb-"));
	assert_true(glob_match("caf?", "caf\xc3\xa9"));
	assert_false(glob_match("caf??", "caf\xc3\xa9"));
	assert_true(glob_match("[a]", "[a]"));
	assert_false(glob_match("[a]", "a"));
	assert_false(glob_match("Order", "order"));
	/* Would take for ever with a matcher that goes back to every star. */
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*b",
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void percent_escapes_are_decoded_whole(void **state)
{
	static const char *const wrong[] = { "%", "a%4", "%4g", "%g4", "%%41", "%00", "a%00b" };
	char out[20];

	(void)state;
	assert_true(percent_decode("a%20b+%c3%A9", 12, false, out));
	assert_string_equal(out, "a b+\xc3\xa9");
	assert_true(percent_decode("a+b%2B\xc3\xa9", 8, true, out));
	assert_string_equal(out, "a b+\xc3\xa9");
	assert_true(percent_decode("", 0, true, out));
	assert_string_equal(out, "");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(percent_decode(wrong[i], strlen(wrong[i]), true, out));
	assert_false(percent_decode("%41", 2, false, out)); /* its last digit is not part of the text */
	assert_false(percent_decode("a\0b", 3, false, out));
}

static void tokens_are_those_of_rfc_9110(void **state)
{
	(void)state;
	assert_false(text_is_token("", 0));
	for (int c = 0; c < 256; c++) {
		char text[] = { 'x', (char)c };
		bool mark = c && strchr("!#$%&'*+-.^_`|~", c);

		assert_int_equal(text_is_token(text, 2), mark || (c < 128 && isalnum(c)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_is_valid_but_surrogates),
		cmocka_unit_test(overlong_and_too_large_are_not_utf8),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(display_escapes_what_could_harm_a_terminal),
		cmocka_unit_test(display_of_random_bytes_is_safe),
		cmocka_unit_test(control_characters_are_found),
		cmocka_unit_test(numbers_are_whole_and_in_range),
		cmocka_unit_test(counts_have_separators),
		cmocka_unit_test(globs_match_whole_texts),
		cmocka_unit_test(percent_escapes_are_decoded_whole),
		cmocka_unit_test(tokens_are_those_of_rfc_9110),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
