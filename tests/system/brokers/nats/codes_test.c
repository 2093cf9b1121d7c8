/* SPDX-License-Identifier: Apache-2.0 */
/* The codes in docs/transports/nats.md are those of the table: each row, and no row is missing. */
#include "page.h"

#include "transport/nats/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* JetStream's codes. */
#define CODE_MIN 10000
#define CODE_MAX 10999

static enum verdict_class class_of(const char *text)
{
	static const char *const words[] = {
		[CLASS_RETRY] = "RETRY",     [CLASS_PLACE] = "RETRY, EAUTH",
		[CLASS_REJECT] = "REJECTED", [CLASS_FULL] = "EFULL",
		[CLASS_AWAY] = "ECONN",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], text) == 0)
			return (enum verdict_class)i;
	fail_msg("\"%s\" is none of them", text);
	return CLASS_AWAY;
}

static void every_code_of_the_page(void **state)
{
	static bool told[CODE_MAX - CODE_MIN + 1];
	struct page *page = page_open("nats", "Codes");
	const struct page_row *row;
	size_t rows = 0;

	(void)state;
	while ((row = page_next(page))) {
		int code = atoi(row->cells[0]);

		assert_in_range(code, CODE_MIN, CODE_MAX);
		told[code - CODE_MIN] = true;
		if (verdict_of(code) != class_of(row->cells[2]))
			fail_msg("%d is not %s", code, row->cells[2]);
		rows++;
	}
	assert_true(rows > 20);
	/* What is not on the page is refused for now, as it says. */
	for (int code = CODE_MIN; code <= CODE_MAX; code++)
		if (!told[code - CODE_MIN] && verdict_of(code) != CLASS_RETRY)
			fail_msg("%d is not on the page", code);
	page_close(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_the_page),
	};

	return cmocka_run_group_tests_name("nats_codes", tests, NULL, NULL);
}
