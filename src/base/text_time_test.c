/* SPDX-License-Identifier: Apache-2.0 */

#include "base/unit_test.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"

#include <string.h>
#include <time.h>

static void durations_are_parsed(void **state)
{
	static const struct {
		const char *text;
		outbox_time want;
	} good[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "500ms", 500000 },
		{ "5s", 5 * OUTBOX_SECONDS },
		{ "90s", 90 * OUTBOX_SECONDS },
		{ "1m30s", 90 * OUTBOX_SECONDS },
		{ "2h", 2 * OUTBOX_HOURS },
		{ "7d", 7 * OUTBOX_DAYS },
		{ "1d2h3m4s5ms6us", OUTBOX_DAYS + 2 * OUTBOX_HOURS + 3 * OUTBOX_MINUTES + 4005006 },
		{ "9223372036854775807us", INT64_MAX },
	};
	static const char *const bad[] = {
		"",           "5",
		"s",          "-5s",
		"+5s",        "5 s",
		"1.5s",       "5S",
		"5min",       "1s1m",
		"1s2s",       "1m30",
		"5sec",       "9223372036854775808us",
		"106751992d", "5s ",
		"d5",         "99999999999999999999s",
	};
	outbox_time got = 42;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_ok(duration_parse(good[i].text, &got, err));
		assert_true(got == good[i].want);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		got = 42;
		assert_fails(duration_parse(bad[i], &got, err), OUTBOX_EINVAL,
			     "is not a duration; write");
		assert_int_equal(got, 42);
	}
	assert_fails(duration_parse(NULL, &got, err), OUTBOX_EINVAL, "(none)");
}

static void exact_durations_come_back(void **state)
{
	struct random_state random;
	char text[DURATION_TEXT_MAX];
	outbox_time back = 0;
	int i;

	(void)state;
	random_init(&random, 3);
	for (i = 0; i < 20000; i++) {
		outbox_time duration = (int64_t)(random.base.next(&random.base) >> 1) >> (i % 63);

		assert_ok(duration_parse(duration_exact(duration, text), &back, err));
		assert_true(back == duration);
	}
	assert_string_equal(duration_exact(90 * OUTBOX_SECONDS, text), "1m30s");
	assert_string_equal(duration_exact(250000, text), "250ms");
	assert_string_equal(duration_exact(7 * OUTBOX_DAYS, text), "7d");
	assert_string_equal(duration_exact(0, text), "0s");
	assert_string_equal(duration_exact(-5, text), "0s");
	assert_string_equal(duration_exact(INT64_MAX, text), "106751991d4h54s775ms807us");
}

static void human_durations_are_short(void **state)
{
	static const struct {
		outbox_time duration;
		const char *want;
	} cases[] = {
		{ -OUTBOX_HOURS, "0 s" },
		{ 0, "0 s" },
		{ 999, "<1 ms" },
		{ 3000, "3 ms" },
		{ 200000, "0.2 s" },
		{ 1500000, "1.5 s" },
		{ 5 * OUTBOX_SECONDS, "5 s" },
		{ 38 * OUTBOX_SECONDS + 700000, "38 s" },
		{ 60 * OUTBOX_SECONDS, "1 min" },
		{ 90 * OUTBOX_SECONDS, "90 s" },
		{ 125 * OUTBOX_SECONDS, "2 min" },
		{ OUTBOX_HOURS, "1 h" },
		{ 3 * OUTBOX_HOURS + 1, "3 h" },
		{ OUTBOX_DAYS, "1 d" },
		{ 5 * OUTBOX_DAYS + OUTBOX_HOURS, "5 d" },
	};
	char text[DURATION_TEXT_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(duration_human(cases[i].duration, text), cases[i].want);
}

static void times_are_parsed(void **state)
{
	static const struct {
		const char *text;
		outbox_time want;
	} good[] = {
		{ "1970-01-01T00:00:00.000001Z", 1 },
		{ "2026-11-15T18:00:00Z", 1794765600 * OUTBOX_SECONDS },
		{ "2026-11-15T18:00Z", 1794765600 * OUTBOX_SECONDS },
		{ "2026-11-15 18:00:00z", 1794765600 * OUTBOX_SECONDS },
		{ "2026-11-15t20:30:00.25+02:30", 1794765600 * OUTBOX_SECONDS + 250000 },
		{ "2026-11-15T13:00:00-05:00", 1794765600 * OUTBOX_SECONDS },
		{ "2026-11-15T18:00:00.1234567899Z", 1794765600 * OUTBOX_SECONDS + 123456 },
		{ "2024-02-29T00:00:00Z", 1709164800 * OUTBOX_SECONDS },
		{ "2000-02-29T00:00:00Z", 951782400 * OUTBOX_SECONDS },
		{ "+5m", 1000 * OUTBOX_SECONDS + 5 * OUTBOX_MINUTES },
		{ "+0", 1000 * OUTBOX_SECONDS },
	};
	static const char *const bad[] = {
		"",
		"now",
		"5m",
		"+",
		"2026-11-15",
		"2026-11-15T18:00:00",
		"2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z",
		"2026-02-29T00:00:00Z",
		"2100-02-29T00:00:00Z",
		"2026-04-31T00:00:00Z",
		"2026-11-00T00:00:00Z",
		"2026-11-15T24:00:00Z",
		"2026-11-15T18:60:00Z",
		"2026-11-15T18:00:60Z",
		"2026-11-15T18:00:00.Z",
		"2026-11-15T18:00:00+2:00",
		"2026-11-15T18:00:00+24:00",
		"2026-11-15T18:00:00Zz",
		"2026-11-15X18:00:00Z",
		"+106751991d",
		"9999-12-31T23:59:59-00:01",
		"+2932000d",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00Z",
	};
	outbox_time got = 0;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_ok(time_parse(good[i].text, 1000 * OUTBOX_SECONDS, &got, err));
		assert_true(got == good[i].want);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		got = 42;
		assert_fails(time_parse(bad[i], 1000 * OUTBOX_DAYS, &got, err), OUTBOX_EINVAL,
			     "; write");
		assert_int_equal(got, 42);
	}
}

/* The C library's calendar as witness, and the parser as the reverse. */
static void formatted_times_agree_with_the_c_library(void **state)
{
	struct random_state random;
	char text[TIME_TEXT_MAX], want[TIME_TEXT_MAX];
	outbox_time back = 0;
	int i;

	(void)state;
	random_init(&random, 5);
	for (i = 0; i < 20000; i++) {
		int64_t seconds = random_between(&random.base, 1, 253402300799); /* year 9999 */
		outbox_time micro = random_between(&random.base, 0, 999999);
		time_t witness = (time_t)seconds;
		struct tm tm;

		assert_non_null(gmtime_r(&witness, &tm));
		assert_true(strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S", &tm) > 0);
		time_format(seconds * OUTBOX_SECONDS + micro, text);
		assert_memory_equal(text, want, 19);
		assert_ok(time_parse(text, 0, &back, err));
		assert_true(back == seconds * OUTBOX_SECONDS + micro);
	}
}

static void formats_no_more_digits_than_needed(void **state)
{
	char text[TIME_TEXT_MAX];

	(void)state;
	assert_string_equal(time_format(1794733200 * OUTBOX_SECONDS + 250000, text),
			    "2026-11-15T09:00:00.25Z");
	assert_string_equal(time_format(0, text), "1970-01-01T00:00:00Z");
	assert_string_equal(time_format(-1, text), "1969-12-31T23:59:59.999999Z");
	assert_string_equal(time_format(INT64_MAX, text), "294247-01-10T04:00:54.775807Z");
	assert_string_equal(time_format(INT64_MIN, text), "-290308-12-21T19:59:05.224192Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_parsed),
		cmocka_unit_test(exact_durations_come_back),
		cmocka_unit_test(human_durations_are_short),
		cmocka_unit_test(times_are_parsed),
		cmocka_unit_test(formatted_times_agree_with_the_c_library),
		cmocka_unit_test(formats_no_more_digits_than_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
