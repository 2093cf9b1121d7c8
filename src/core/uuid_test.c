/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unit_test.h"

#include "base/random.h"
#include "frozen_clock.h"

#include <outbox/message.h>

#include <string.h>

static void ids_are_uuid_v7_and_sort_by_time(void **state)
{
	struct frozen_clock clock;
	struct random_state random;
	char last[37] = "", id[37];
	int i;

	(void)state;
	random_init(&random, 1);
	frozen_clock_init(&clock, 0x0123456789abLL * 1000);
	outbox_uuid(&clock.base, &random.base, id);
	assert_memory_equal(id, "01234567-89ab-7000-", 19);
	for (i = 0; i < 5000; i++) {
		outbox_uuid(&clock.base, &random.base, id);
		assert_int_equal(strlen(id), 36);
		assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
		assert_true(id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-');
		assert_int_equal(id[14], '7');
		assert_non_null(strchr("89ab", id[19]));
		assert_true(strcmp(last, id) < 0);
		memcpy(last, id, sizeof(last));
		frozen_clock_step(&clock, 1);
	}
	/* The clock stands still: still no id twice. */
	outbox_uuid(&clock.base, &random.base, last);
	outbox_uuid(&clock.base, &random.base, id);
	assert_string_not_equal(last, id);
	assert_memory_equal(last, id, 18);
	frozen_clock_jump(&clock, -4000000000000000000);
	outbox_uuid(&clock.base, &random.base, id);
	assert_memory_equal(id, "00000000-0000-7000-", 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_uuid_v7_and_sort_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
