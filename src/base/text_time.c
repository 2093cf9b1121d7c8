/* SPDX-License-Identifier: Apache-2.0 */

/* Durations and times as people write them. Calendar arithmetic is proleptic Gregorian, in UTC. */

#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct unit {
	const char *name;
	outbox_time size;
};

/* Largest first: a duration names each unit once, in this order. */
static const struct unit units[] = {
	{ "d", OUTBOX_DAYS },    { "h", OUTBOX_HOURS },         { "m", OUTBOX_MINUTES },
	{ "s", OUTBOX_SECONDS }, { "ms", OUTBOX_MILLISECONDS }, { "us", OUTBOX_MICROSECONDS },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The unit whose name is exactly the letters at text, searched from *first on. */
static const struct unit *find_unit(const char *text, size_t length, size_t *first)
{
	for (size_t i = *first; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0) {
			*first = i + 1;
			return &units[i];
		}
	}
	return NULL;
}

static bool parse_duration(const char *text, outbox_time *ret_duration)
{
	outbox_time total = 0;
	size_t next = 0;

	if (strcmp(text, "0") == 0) {
		*ret_duration = 0;
		return true;
	}
	if (!*text)
		return false;
	while (*text) {
		const struct unit *unit;
		outbox_time value = 0;
		size_t length = 0;

		if (!is_digit(*text))
			return false;
		for (; is_digit(*text); text++) {
			if (__builtin_mul_overflow(value, (outbox_time)10, &value) ||
			    __builtin_add_overflow(value, (outbox_time)(*text - '0'), &value))
				return false;
		}
		while (text[length] >= 'a' && text[length] <= 'z')
			length++;
		unit = find_unit(text, length, &next);
		if (!unit || __builtin_mul_overflow(value, unit->size, &value) ||
		    __builtin_add_overflow(total, value, &total))
			return false;
		text += length;
	}
	*ret_duration = total;
	return true;
}

int duration_parse(const char *text, outbox_time *ret_duration, struct outbox_error *err)
{
	char shown[80];

	if (text && parse_duration(text, ret_duration))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a duration; write 500ms, 5s, 1m30s, 2h or 7d",
			   text_shown(shown, sizeof(shown), text));
}

/* Exactly n digits. */
static bool take_digits(const char **text, int n, int *ret_value)
{
	int value = 0;

	for (; n > 0; n--, (*text)++) {
		if (!is_digit(**text))
			return false;
		value = value * 10 + (**text - '0');
	}
	*ret_value = value;
	return true;
}

static bool take_char(const char **text, const char *one_of)
{
	if (!**text || !strchr(one_of, **text))
		return false;
	(*text)++;
	return true;
}

/* From days since 1970-01-01. Years begin in March here, so that the leap day is the last one. */
static void date_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
	int64_t era, day_of_era, year_of_era, day_of_year, month;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = days - era * 146097;
	year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * day_of_year + 2) / 153;
	*ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
	*ret_month = (int)(month < 10 ? month + 3 : month - 9);
	*ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

/* In days since 1970-01-01. */
static bool parse_date(const char **text, int64_t *ret_days)
{
	int year, month, day;
	struct tm date;

	if (!take_digits(text, 4, &year) || !take_char(text, "-") ||
	    !take_digits(text, 2, &month) || !take_char(text, "-") || !take_digits(text, 2, &day))
		return false;
	date = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
	*ret_days = timegm(&date) / (24 * 60 * 60);
	/* timegm() makes the 1st of March of a 29th of February that does not exist */
	return date.tm_mon == month - 1 && date.tm_mday == day;
}

/* ".25": what is finer than a microsecond is dropped. */
static bool parse_fraction(const char **text, outbox_time *ret_fraction)
{
	outbox_time digit = OUTBOX_SECONDS / 10;

	*ret_fraction = 0;
	if (!take_char(text, "."))
		return true;
	if (!is_digit(**text))
		return false;
	for (; is_digit(**text); (*text)++) {
		*ret_fraction += (**text - '0') * digit;
		digit /= 10;
	}
	return true;
}

static bool parse_clock(const char **text, outbox_time *ret_time)
{
	outbox_time fraction = 0;
	int hour, minute, second = 0;

	if (!take_digits(text, 2, &hour) || !take_char(text, ":") || !take_digits(text, 2, &minute))
		return false;
	if (take_char(text, ":") &&
	    (!take_digits(text, 2, &second) || !parse_fraction(text, &fraction)))
		return false;
	if (hour > 23 || minute > 59 || second > 59)
		return false;
	*ret_time =
		hour * OUTBOX_HOURS + minute * OUTBOX_MINUTES + second * OUTBOX_SECONDS + fraction;
	return true;
}

static bool parse_offset(const char **text, outbox_time *ret_offset)
{
	int hour, minute;
	bool west;

	if (take_char(text, "Zz")) {
		*ret_offset = 0;
		return true;
	}
	west = **text == '-';
	if (!take_char(text, "+-") || !take_digits(text, 2, &hour) || !take_char(text, ":") ||
	    !take_digits(text, 2, &minute) || hour > 23 || minute > 59)
		return false;
	*ret_offset = (hour * OUTBOX_HOURS + minute * OUTBOX_MINUTES) * (west ? -1 : 1);
	return true;
}

/* Four-digit years: nothing here can overflow. */
static bool parse_rfc3339(const char *text, outbox_time *ret_time)
{
	outbox_time clock, offset;
	int64_t days;

	if (!parse_date(&text, &days) || !take_char(&text, "Tt ") || !parse_clock(&text, &clock) ||
	    !parse_offset(&text, &offset) || *text)
		return false;
	*ret_time = days * OUTBOX_DAYS + clock - offset;
	return true;
}

int time_parse(const char *text, outbox_time now, outbox_time *ret_time, struct outbox_error *err)
{
	outbox_time time = 0;
	char shown[80];
	bool ok;

	if (text && text[0] == '+')
		ok = parse_duration(text + 1, &time) && !__builtin_add_overflow(now, time, &time);
	else
		ok = text && parse_rfc3339(text, &time);
	if (!ok)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is not a time; write +5m or 2026-11-15T18:00:00Z",
				   text_shown(shown, sizeof(shown), text));
	/* 0 means "not set" wherever a time is stored. */
	if (time <= 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is not after 1970; write a later time",
				   text_shown(shown, sizeof(shown), text));
	if (time > TIME_LAST)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" is after the year 9999; write an earlier time",
				   text_shown(shown, sizeof(shown), text));
	*ret_time = time;
	return OUTBOX_OK;
}

/* So many digits and what stands behind them; returns where to go on. */
static char *put_digits(char *at, int64_t number, int digits, char behind)
{
	for (int i = digits; i > 0; i--, number /= 10)
		at[i - 1] = (char)('0' + number % 10);
	at[digits] = behind;
	return at + digits + 1;
}

/* Every message has a time or two: by hand, since printf took longer than the rest of its envelope. */
const char *time_format(outbox_time time, char out[TIME_TEXT_MAX])
{
	int64_t days = time / OUTBOX_DAYS, year;
	outbox_time rest = time % OUTBOX_DAYS;
	int month, day;
	char *at = out;

	if (rest < 0) {
		rest += OUTBOX_DAYS;
		days--;
	}
	date_from_days(days, &year, &month, &day);
	if (year >= 0 && year <= 9999)
		at = put_digits(at, year, 4, '-');
	else
		at += snprintf(out, TIME_TEXT_MAX, "%04" PRId64 "-", year);
	at = put_digits(at, month, 2, '-');
	at = put_digits(at, day, 2, 'T');
	at = put_digits(at, rest / OUTBOX_HOURS, 2, ':');
	at = put_digits(at, rest / OUTBOX_MINUTES % 60, 2, ':');
	at = put_digits(at, rest / OUTBOX_SECONDS % 60, 2, '.');
	at = put_digits(at, rest % OUTBOX_SECONDS, 6, 'Z') - 1;
	while (at[-1] == '0')
		at--;
	if (at[-1] == '.')
		at--;
	memcpy(at, "Z", 2);
	return out;
}

const char *duration_human(outbox_time duration, char out[DURATION_TEXT_MAX])
{
	static const struct unit human[] = { { "d", OUTBOX_DAYS },
					     { "h", OUTBOX_HOURS },
					     { "min", OUTBOX_MINUTES } };

	/* The largest unit that loses nothing, or of which there are at least two. */
	for (size_t i = 0; i < ARRAY_SIZE(human); i++) {
		outbox_time size = human[i].size;

		if (duration >= 2 * size || (duration > 0 && duration % size == 0)) {
			snprintf(out, DURATION_TEXT_MAX, "%" PRId64 " %s", duration / size,
				 human[i].name);
			return out;
		}
	}
	if (duration <= 0)
		snprintf(out, DURATION_TEXT_MAX, "0 s");
	else if (duration < OUTBOX_MILLISECONDS)
		snprintf(out, DURATION_TEXT_MAX, "<1 ms");
	else if (duration < OUTBOX_SECONDS / 10)
		snprintf(out, DURATION_TEXT_MAX, "%" PRId64 " ms", duration / OUTBOX_MILLISECONDS);
	else if (duration >= 10 * OUTBOX_SECONDS || duration % OUTBOX_SECONDS == 0)
		snprintf(out, DURATION_TEXT_MAX, "%" PRId64 " s", duration / OUTBOX_SECONDS);
	else
		snprintf(out, DURATION_TEXT_MAX, "%" PRId64 ".%" PRId64 " s",
			 duration / OUTBOX_SECONDS,
			 duration % OUTBOX_SECONDS / (OUTBOX_SECONDS / 10));
	return out;
}

const char *duration_exact(outbox_time duration, char out[DURATION_TEXT_MAX])
{
	size_t used = 0, i;

	for (i = 0; i < ARRAY_SIZE(units) && duration > 0; i++) {
		outbox_time count = duration / units[i].size;

		duration %= units[i].size;
		if (count > 0)
			used += (size_t)snprintf(out + used, DURATION_TEXT_MAX - used,
						 "%" PRId64 "%s", count, units[i].name);
	}
	if (used == 0)
		snprintf(out, DURATION_TEXT_MAX, "0s");
	return out;
}
