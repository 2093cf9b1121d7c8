/* SPDX-License-Identifier: Apache-2.0 */
#include "core/secrets.h"

#include "base/buf.h"
#include "core/message.h"

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_hidden(const char *text, const char *expected)
{
	struct buf out = BUF_INIT(1000);

	hide_secrets(text, &out);
	assert_string_equal(buf_str(&out), expected);
	buf_deinit(&out);
}

static void test_what_was_named_is_hidden(void **state)
{
	char said[20] = "say hunter2 hunter2";

	(void)state;
	secrets_hide("hunter2");
	secrets_hide("hunter2-longer");
	secrets_hide("abc");
	secrets_hide(NULL);
	assert_hidden("abc hunter2,hunter2-longer", "abc ***,***");
	hide_secrets_in(said, sizeof(said));
	assert_string_equal(said, "say *** ***");
}

/* What a broker says of a message is kept in the store, where anybody may read it. */
static void test_a_reason_has_none(void **state)
{
	struct outbox_arena *arena = outbox_arena_new(4096);
	struct outbox_item item = { 0 }, *items[] = { &item };
	struct outbox_batch batch = { .items = items, .count = 1, .memory = arena };

	(void)state;
	secrets_hide("hunter2");
	outbox_batch_verdict(&batch, 0, OUTBOX_REJECTED, 0, "wrong: AUTH relay %s", "hunter2");
	assert_string_equal(item.reason, "wrong: AUTH relay ***");
	outbox_arena_free(arena);
}

/* An answer of a broker is stored too: lines of text, 4 KiB of them at the most, no secret and no half of one. */
static void test_an_answer_is_clean(void **state)
{
	static char large[20000];
	struct outbox_arena *arena = outbox_arena_new(1 << 20);
	struct outbox_item item = { 0 }, *items[] = { &item };
	struct outbox_batch batch = { .items = items, .count = 1, .memory = arena };

	(void)state;
	secrets_hide("hunter2");
	outbox_batch_answer(&batch, 0, "one\r\ntwo\0\x1b[31m\xff hunter2 and more", 26);
	assert_string_equal(item.answer, "one \ntwo  [31m? *** an");
	outbox_batch_verdict(&batch, 0, OUTBOX_RETRY, 500, "no");
	assert_non_null(item.answer);
	outbox_batch_answer(&batch, 1, "not mine", 8);
	outbox_batch_answer(&batch, 0, "x", 0);
	assert_null(item.answer);

	memset(large, 'x', sizeof(large));
	memcpy(large + ANSWER_TEXT_MAX - 1, "\xc3\xa4", 2);
	outbox_batch_answer(&batch, 0, large, sizeof(large));
	assert_int_equal(strlen(item.answer), ANSWER_TEXT_MAX - 1);
	memcpy(large + ANSWER_TEXT_MAX - 3, "hunter2", 7);
	outbox_batch_answer(&batch, 0, large, 6000);
	assert_int_equal(strlen(item.answer), ANSWER_TEXT_MAX);
	assert_string_equal(item.answer + ANSWER_TEXT_MAX - 4, "x***");
	for (size_t at = 0; at + 7 < sizeof(large); at += 7)
		memcpy(large + at, "hunter2", 7);
	outbox_batch_answer(&batch, 0, large, sizeof(large));
	assert_null(strstr(item.answer, "hu"));
	outbox_arena_free(arena);
}

/* A process of years whose passwords change every hour. */
static void test_the_newest_are_always_hidden(void **state)
{
	char secret[40];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(secret, sizeof(secret), "changing-%d.", i);
		secrets_hide("constant-one");
		secrets_hide(secret);
		assert_hidden(secret, "***");
		assert_hidden("constant-one", "***");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_named_is_hidden),
		cmocka_unit_test(test_a_reason_has_none),
		cmocka_unit_test(test_an_answer_is_clean),
		cmocka_unit_test(test_the_newest_are_always_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
