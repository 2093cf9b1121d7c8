/* SPDX-License-Identifier: Apache-2.0 */

/* Durations and times: what is parsed can be written and parsed again, and gives the same.
 * The C library's calendar is the witness. */

#include "base/text.h"
#include "fuzz.h"

#include <string.h>
#include <time.h>

static void check_duration_text(const char *text)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	outbox_time duration = -1;
	int r = duration_parse(text, &duration, &err);

	check_error(r, &err);
	if (r == OUTBOX_OK)
		CHECK(duration >= 0);
	else
		CHECK(r == OUTBOX_EINVAL && duration == -1);
}

static void check_duration(outbox_time duration)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char text[DURATION_TEXT_MAX], human[DURATION_TEXT_MAX];
	outbox_time again = -1;

	duration_human(duration, human);
	CHECK(strlen(human) >= 3 && is_printable(human, strlen(human)));
	CHECK((strcmp(human, "0 s") == 0) == (duration <= 0));
	duration_exact(duration, text);
	CHECK(duration_parse(text, &again, &err) == OUTBOX_OK);
	CHECK(again == (duration > 0 ? duration : 0));
}

/* A year of four digits can be written by the standard; later ones nobody could read. */
static void check_time(outbox_time time)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char text[TIME_TEXT_MAX], witness[TIME_TEXT_MAX];
	time_t seconds = (time_t)(time / OUTBOX_SECONDS);
	outbox_time again = -1;
	struct tm fields;

	time_format(time, text);
	if (time >= 0 && gmtime_r(&seconds, &fields)) {
		strftime(witness, sizeof(witness), "%Y-%m-%dT%H:%M:%S", &fields);
		CHECK(strncmp(text, witness, strlen(witness)) == 0);
	}
	CHECK(strlen(text) >= strlen("1970-01-01T00:00:00Z") && strlen(text) < TIME_TEXT_MAX);
	if (time <= 0 || text[4] != '-')
		return;
	CHECK(time_parse(text, 0, &again, &err) == OUTBOX_OK);
	CHECK(again == time);
}

/* "...+02:00" is two hours before the same with a Z. */
static void check_offset(const char *text, outbox_time time)
{
	size_t n = strlen(text);
	const char *offset = n > 6 ? text + n - 6 : text;
	outbox_time utc, shift;
	char copy[64];

	if ((*offset != '+' && *offset != '-') || n >= sizeof(copy) || text[0] == '+')
		return;
	shift = ((offset[1] - '0') * 10 + offset[2] - '0') * OUTBOX_HOURS +
		((offset[4] - '0') * 10 + offset[5] - '0') * OUTBOX_MINUTES;
	memcpy(copy, text, n - 6);
	memcpy(copy + n - 6, "Z", 2);
	if (time_parse(copy, 0, &utc, NULL) == OUTBOX_OK)
		CHECK(time == utc + (*offset == '-' ? shift : -shift));
}

static void check_time_text(const char *text, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char written[TIME_TEXT_MAX];
	outbox_time time = -1;
	int r = time_parse(text, now, &time, &err);

	check_error(r, &err);
	if (r != OUTBOX_OK) {
		CHECK(r == OUTBOX_EINVAL && time == -1);
		return;
	}
	CHECK(time > 0);
	CHECK(text[0] != '+' || time >= now);
	time_format(time, written);
	CHECK(written[4] == '-'); /* RFC 3339 knows years of four digits only */
	check_time(time);
	check_offset(text, time);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	int64_t number = input_number(&in);
	const char *text = input_text(&in);

	check_duration(number);
	check_time(number);
	check_time(number & (((int64_t)1 << 58) - 1));
	check_duration_text(text);
	check_time_text(text, number);
	input_end(&in);
	return 0;
}
