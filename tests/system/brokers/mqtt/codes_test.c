/* SPDX-License-Identifier: Apache-2.0 */
/* The reason codes in docs/transports/mqtt.md are those of the table: each row, and no row is missing. */
#include "page.h"

#include "transport/mqtt/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_code_of_the_page(void **state)
{
	struct page *page = page_open("mqtt", "Reason codes");
	const struct mqtt_code *code = mqtt_codes;
	const struct page_row *row;

	(void)state;
	for (; (row = page_next(page)); code++) {
		assert_int_equal(strtol(row->cells[0], NULL, 16), code->code);
		assert_string_equal(row->cells[1], code->name);
		assert_int_equal(page_verdict(row->cells[2]), code->verdict);
		assert_int_equal(page_status(row->cells[3]), code->place);
		assert_int_equal(page_status(row->cells[4]), code->status);
	}
	assert_int_equal(code->code, -1);
	page_close(page);
}

/* The page's words for the rest. */
static void all_others(void **state)
{
	(void)state;
	for (int code = 0x80; code <= 0xff; code++) {
		const struct mqtt_code *row = mqtt_code_find(code);

		if (row->code == code)
			continue;
		assert_int_equal(row->code, -1);
		assert_int_equal(row->verdict, OUTBOX_RETRY);
		assert_int_equal(row->status, OUTBOX_ECONN);
		assert_int_equal(row->place, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_the_page),
		cmocka_unit_test(all_others),
	};

	return cmocka_run_group_tests_name("mqtt_codes", tests, NULL, NULL);
}
