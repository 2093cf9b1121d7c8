/* SPDX-License-Identifier: Apache-2.0 */
/* The codes in docs/transports/rabbitmq.md are those of the table: each row, and no row is missing. */
#include "page.h"

#include "transport/rabbitmq/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_code_of_the_page(void **state)
{
	const struct rabbit_code *expected = rabbit_codes;
	struct page *page = page_open("rabbitmq", "Codes");
	const struct page_row *row;

	(void)state;
	/* The order counts, where the broker's words decide. */
	for (; (row = page_next(page)); expected++) {
		const char *words = row->cells[2];
		int code = atoi(row->cells[0]);
		const struct rabbit_code *found = rabbit_code_find(code, words);

		if (found != expected || !found->with != !*words)
			fail_msg("%s \"%s\" is not the row of the table", row->cells[0], words);
		if (found->verdict != page_verdict(row->cells[3]) ||
		    found->status != page_status(row->cells[4]))
			fail_msg("%s \"%s\" is not %s, %s", row->cells[0], words, row->cells[3],
				 row->cells[4]);
		if (expected->code == 0)
			break;
	}
	assert_int_equal(expected->code, 0);
	assert_null(page_next(page));
	assert_ptr_equal(rabbit_code_find(999, "whatever"), expected);
	assert_ptr_equal(rabbit_code_find(-999, NULL), expected);
	page_close(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_the_page),
	};

	return cmocka_run_group_tests_name("rabbitmq_codes", tests, NULL, NULL);
}
