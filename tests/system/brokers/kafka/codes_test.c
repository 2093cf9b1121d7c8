/* SPDX-License-Identifier: Apache-2.0 */
/* The codes in docs/transports/kafka.md are those of the table: each row, and no row is missing. */
#include "page.h"

#include "transport/kafka/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The library's codes are negative, the broker's positive. */
#define CODE_MIN (-250)
#define CODE_MAX 250

static enum kafka_class class_of(const char *text)
{
	static const char *const words[] = {
		[KAFKA_REFUSED] = "REJECTED", [KAFKA_FOR_NOW] = "RETRY",
		[KAFKA_OUTAGE] = "ECONN",     [KAFKA_NO_ANSWER] = "ETIMEDOUT",
		[KAFKA_FORBIDDEN] = "EAUTH",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], text) == 0)
			return (enum kafka_class)i;
	fail_msg("\"%s\" is none of them", text);
	return KAFKA_OUTAGE;
}

static void every_code_of_the_page(void **state)
{
	static bool told[CODE_MAX - CODE_MIN + 1];
	struct page *page = page_open("kafka", "Codes");
	const struct page_row *row;
	size_t rows = 0;

	(void)state;
	while ((row = page_next(page))) {
		int code = atoi(row->cells[0]);
		enum kafka_class class = class_of(row->cells[2]);

		assert_in_range(code - CODE_MIN, 0, CODE_MAX - CODE_MIN);
		told[code - CODE_MIN] = true;
		assert_string_equal(rd_kafka_err2name((rd_kafka_resp_err_t)code), row->cells[1]);
		if (kafka_classify((rd_kafka_resp_err_t)code) != class)
			fail_msg("%s is not %s", row->cells[1], row->cells[2]);
		if (class > KAFKA_FOR_NOW)
			assert_int_equal(kafka_status((rd_kafka_resp_err_t)code),
					 page_status(row->cells[2]));
		rows++;
	}
	assert_true(rows > 30);
	/* What is not on the page is refused for now, as it says. */
	for (int code = CODE_MIN; code <= CODE_MAX; code++)
		if (!told[code - CODE_MIN] &&
		    kafka_classify((rd_kafka_resp_err_t)code) != KAFKA_FOR_NOW)
			fail_msg("%d (%s) is not on the page", code,
				 rd_kafka_err2name((rd_kafka_resp_err_t)code));
	page_close(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_the_page),
	};

	return cmocka_run_group_tests_name("kafka_codes", tests, NULL, NULL);
}
