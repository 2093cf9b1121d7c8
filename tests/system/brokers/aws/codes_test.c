/* SPDX-License-Identifier: Apache-2.0 */
/* The codes in docs/transports/aws.md are those of the driver's table, row by row. */

#include "page.h"

#include "transport/aws/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_row_of_the_page(void **state)
{
	struct page *page = page_open("aws", "Codes");
	const struct aws_row *expected = aws_rows;
	const struct page_row *row;

	(void)state;
	for (; (row = page_next(page)); expected++) {
		assert_string_equal(row->cells[0], expected->code);
		if (strcmp(row->cells[1], "-") == 0)
			assert_int_equal(expected->verdict, OUTBOX_VERDICT_UNSET);
		else
			assert_int_equal(expected->verdict, page_verdict(row->cells[1]));
		assert_int_equal(expected->status, page_status(row->cells[2]));
		if (expected->status == OUTBOX_EAUTH)
			assert_string_equal(row->cells[3], expected->remedy);
		if (strcmp(expected->code, "*") == 0)
			break;
	}
	assert_non_null(row);
	assert_null(page_next(page));
	page_close(page);
}

static void assert_row(const char *code, int status, const char *expected)
{
	assert_string_equal(aws_row_find(code, status)->code, expected);
}

static void codes_have_several_forms(void **state)
{
	(void)state;
	assert_row("com.amazonaws.sqs#QueueDoesNotExist", 400, "QueueDoesNotExist");
	assert_row("AWS.SimpleQueueService.NonExistentQueue", 400, "NonExistentQueue");
	assert_row("AccessDeniedException", 403, "AccessDenied");
	assert_row("ThrottlingException", 400, "Throttl*");
	assert_row("Throttled", 400, "Throttl*");
	assert_row("KMSThrottlingException", 400, "KMSThrottling");
	assert_row("KMSAccessDeniedException", 400, "KMS*");
	assert_row("KMS.DisabledException", 400, "KMS*");
	assert_row("Exception", 418, "http 4*");
	assert_row("", 418, "http 4*");
	assert_row("", 301, "http 3*");
	assert_row("NobodyKnows", 403, "http 403");
	assert_row("NobodyKnows", 500, "*");
	assert_row("*", 503, "*");
}

static void nothing_acknowledges(void **state)
{
	(void)state;
	for (const struct aws_row *row = aws_rows; strcmp(row->code, "*") != 0; row++) {
		assert_int_not_equal(row->verdict, OUTBOX_ACKED);
		/* without a verdict it must be the target's */
		assert_true(row->verdict || row->status == OUTBOX_EAUTH ||
			    row->status == OUTBOX_EFULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_page),
		cmocka_unit_test(codes_have_several_forms),
		cmocka_unit_test(nothing_acknowledges),
	};

	return cmocka_run_group_tests_name("aws_codes", tests, NULL, NULL);
}
