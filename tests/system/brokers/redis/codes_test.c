/* SPDX-License-Identifier: Apache-2.0 */
/* The codes in docs/transports/redis.md, each said by a fake server: the driver does what the page tells. */

#include "fake_case.h"
#include "page.h"

#include "transport/redis/driver.h"

#include <stdio.h>
#include <string.h>

/* "RETRY", "EFULL" or "REJECTED ECONN": what becomes of the message, of the target, or of both. */
struct fate {
	int verdict, status;
};

static struct fate fate_of(const char *text)
{
	struct fate fate = { 0 };
	char word[20];
	int n;

	for (; sscanf(text, "%19s%n", word, &n) == 1; text += n) {
		if (word[0] == 'R')
			fate.verdict = page_verdict(word);
		else
			fate.status = page_status(word);
	}
	return fate;
}

/* The second of three is refused in these words. */
static void refuse_one(const char *words, const char *options, const char *becomes)
{
	struct fate fate = fate_of(becomes);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char line[200];
	struct fake_script script = { .adds = { ID, line, ID } };
	struct transport_case c;

	snprintf(line, sizeof(line), "-%s\r\n", words);
	begin(&c, 3);
	if (talk(&c, &script, options, CONTRACT_DEADLINE, &err) != fate.status)
		fail_msg("%s with %s: %s", words, options, outbox_status_name(err.status));
	if (c.batch.items[1]->verdict != fate.verdict)
		fail_msg("%s with %s: verdict %d", words, options, c.batch.items[1]->verdict);
	outbox_arena_free(c.arena);
}

/* The same in the middle of a script: what is behind it in its key is not sent. */
static void refuse_in_script(const char *words, const char *options, const char *becomes)
{
	struct fate fate = fate_of(becomes);
	char line[200];
	struct fake_script script = { .eval = ":1\r\n", .adds = { line, ID } };
	struct transport_case c;

	snprintf(line, sizeof(line), "-%s\r\n", words);
	begin(&c, 3);
	use_one_key(&c);
	assert_int_equal(talk(&c, &script, options, CONTRACT_DEADLINE, NULL), fate.status);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_ACKED);
	assert_int_equal(c.batch.items[1]->verdict, fate.verdict);
	assert_int_equal(c.batch.items[2]->verdict, OUTBOX_VERDICT_UNSET);
	outbox_arena_free(c.arena);
}

static void refuse_connection(const char *words, const char *becomes)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	static struct redis_wire wire;

	if (redis_refused(&wire, words, &err) != page_status(becomes))
		fail_msg("%s at connect: %s", words, outbox_status_name(err.status));
}

static void every_code_of_the_page(void **state)
{
	struct page *page = page_open("redis", "Codes");
	const struct redis_row *expected = redis_rows;
	const struct page_row *row;

	(void)state;
	/* The order counts: the first that fits holds. */
	for (; (row = page_next(page)); expected++) {
		const char *contains = row->cells[1];
		char words[150];

		if (expected->word) {
			assert_string_equal(row->cells[0], expected->word);
			assert_string_equal(contains, expected->contains ? expected->contains : "");
			snprintf(words, sizeof(words), "%s so %s it is", expected->word, contains);
		} else {
			snprintf(words, sizeof(words), "ERR nobody knows");
		}
		refuse_one(words, "stream={type}", row->cells[2]);
		refuse_one(words, "stream=s", row->cells[3]);
		refuse_in_script(words, "stream={type}", row->cells[2]);
		refuse_in_script(words, "stream=s", row->cells[3]);
		refuse_connection(words, row->cells[4]);
		if (!expected->word)
			break;
	}
	assert_null(expected->word);
	assert_null(page_next(page));
	page_close(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_the_page),
	};

	return cmocka_run_group_tests_name("redis_codes", tests, NULL, NULL);
}
