/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers and counts: the same as strtoll() says where that is strict, and writing them is exact. */

#include "base/text.h"
#include "fuzz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits only, a minus where it may be negative, within the bounds. */
static bool reference(const char *text, int64_t min, int64_t max, int64_t *ret_number)
{
	const char *digits = text + (min < 0 && text[0] == '-');
	char *end;
	long long number;

	if (!*digits || strspn(digits, "0123456789") != strlen(digits))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || *end || number < min || number > max)
		return false;
	*ret_number = number;
	return true;
}

static void check_number(const char *text, int64_t min, int64_t max)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int64_t number = 42, expected = 42;
	int r = number_parse("field", text, min, max, &number, &err);
	bool ok = reference(text, min, max, &expected);

	check_error(r, &err);
	CHECK((r == OUTBOX_OK) == ok);
	CHECK(number == expected);
	if (!ok)
		CHECK(r == OUTBOX_EINVAL && strncmp(err.message, "field: ", 7) == 0);
}

static void check_count(int64_t count)
{
	char text[COUNT_TEXT_MAX], plain[COUNT_TEXT_MAX], wanted[32];
	size_t n = 0, since = 0;

	count_human(count, text);
	CHECK(strlen(text) < COUNT_TEXT_MAX);
	for (const char *c = text + strlen(text); c > text; c--) {
		if (c[-1] == ',') {
			CHECK(since == 3); /* every third digit from the end */
			since = 0;
		} else if (c[-1] != '-') {
			since++;
		}
	}
	CHECK(since >= 1 && since <= 3);
	for (const char *c = text; *c; c++) {
		if (*c != ',')
			plain[n++] = *c;
	}
	plain[n] = '\0';
	snprintf(wanted, sizeof(wanted), "%" PRId64, count);
	CHECK(strcmp(plain, wanted) == 0);
	check_number(plain, INT64_MIN, INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	int64_t min = input_number(&in), max = input_number(&in);
	const char *text = input_text(&in);

	check_count(min);
	check_count(max >> (min & 63));
	check_number(text, min, max);
	check_number(text, INT64_MIN, INT64_MAX);
	check_number(text, 0, INT64_MAX);
	check_number(text, -10, 1000);
	input_end(&in);
	return 0;
}
