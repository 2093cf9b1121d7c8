/* SPDX-License-Identifier: Apache-2.0 */
/* The statuses in docs/transports/http.md are those of the driver's table, row by row. */

#include "page.h"

#include "transport/http/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_row_of_the_page(void **state)
{
	struct page *page = page_open("http", "Statuses");
	const struct http_row *expected = http_rows;
	const struct page_row *row;
	char range[40];

	(void)state;
	for (; (row = page_next(page)); expected++) {
		snprintf(range, sizeof(range), "%d to %d", expected->first, expected->last);
		if (expected->first == expected->last)
			range[strcspn(range, " ")] = '\0';
		assert_string_equal(row->cells[0], range);
		if (strcmp(row->cells[1], "-") == 0)
			assert_int_equal(expected->verdict, OUTBOX_VERDICT_UNSET);
		else
			assert_int_equal(expected->verdict, page_verdict(row->cells[1]));
		assert_int_equal(expected->status, page_status(row->cells[2]));
		assert_ptr_equal(http_row_find(expected->last), expected);
		if (expected->last == 999)
			break;
	}
	assert_int_equal(expected->last, 999);
	assert_null(page_next(page));
	page_close(page);
}

/* A message that is no message's own failure must not be ACKED by accident. */
static void only_2xx_acknowledges(void **state)
{
	(void)state;
	for (int status = -1; status < 1001; status++)
		assert_int_equal(http_row_find(status)->verdict == OUTBOX_ACKED,
				 status >= 200 && status < 300);
}

static void retry_after_has_two_forms(void **state)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time delay;

	(void)state;
	assert_int_equal(http_retry_after("120", clock), 120 * OUTBOX_SECONDS);
	assert_int_equal(http_retry_after("0", clock), 0);
	assert_int_equal(http_retry_after(NULL, clock), 0);
	assert_int_equal(http_retry_after("", clock), 0);
	assert_int_equal(http_retry_after("soon", clock), 0);
	assert_int_equal(http_retry_after("-5", clock), 0);
	assert_true(http_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", clock) <= 0);
	delay = http_retry_after("Fri, 31 Dec 2100 23:59:59 GMT", clock);
	assert_true(delay > 365 * OUTBOX_DAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_page),
		cmocka_unit_test(only_2xx_acknowledges),
		cmocka_unit_test(retry_after_has_two_forms),
	};

	return cmocka_run_group_tests_name("http_codes", tests, NULL, NULL);
}
