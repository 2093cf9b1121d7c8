/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions in docs/transports/amqp1.md are those of the table: each row, and no row is missing. */
#include "page.h"

#include "transport/amqp1/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_condition_of_the_page(void **state)
{
	const struct amqp1_condition *expected = amqp1_conditions;
	struct page *page = page_open("amqp1", "Conditions");
	const struct page_row *row;

	(void)state;
	for (; (row = page_next(page)); expected++) {
		const char *name = row->cells[0];

		if (strcmp(name, expected->name ? expected->name : "any other") != 0)
			fail_msg("%s is not the row of the table", name);
		assert_ptr_equal(amqp1_condition_find(name), expected);
		if (expected->verdict != page_verdict(row->cells[2]) ||
		    expected->only != page_status(row->cells[3]) ||
		    expected->closed != page_status(row->cells[4]))
			fail_msg("%s is not %s, %s, %s", name, row->cells[2], row->cells[3],
				 row->cells[4]);
		/* EAUTH and EFULL promise that nothing was accepted; a rejection that passes is no such outage. */
		assert_true(expected->only == 0 || expected->only == OUTBOX_EAUTH ||
			    expected->only == OUTBOX_EFULL);
		if (!expected->name)
			break;
	}
	assert_null(expected->name);
	assert_null(page_next(page));
	assert_ptr_equal(amqp1_condition_find(NULL), expected);
	page_close(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_condition_of_the_page),
	};

	return cmocka_run_group_tests_name("amqp1_codes", tests, NULL, NULL);
}
