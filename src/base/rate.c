/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rate.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	outbox_time period;
} units[] = {
	{ "s", OUTBOX_SECONDS },
	{ "min", OUTBOX_MINUTES },
	{ "h", OUTBOX_HOURS },
};

static int64_t read_count(const char *text, size_t size)
{
	int64_t count = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || count > RATE_COUNT_MAX)
			return 0;
		count = count * 10 + (text[i] - '0');
	}
	return count <= RATE_COUNT_MAX ? count : 0;
}

int rate_parse(const char *text, struct rate *ret_rate, struct outbox_error *err)
{
	const char *slash = strchr(text, '/');
	int64_t count = slash ? read_count(text, (size_t)(slash - text)) : 0;
	char shown[80];

	if (strcmp(text, "none") == 0) {
		*ret_rate = (struct rate){ 0 };
		return OUTBOX_OK;
	}
	for (size_t i = 0; count > 0 && i < ARRAY_SIZE(units); i++) {
		if (strcmp(slash + 1, units[i].name) != 0)
			continue;
		*ret_rate = (struct rate){ .count = count, .period = units[i].period };
		return OUTBOX_OK;
	}
	return outbox_fail(err, OUTBOX_EINVAL,
			   "\"%s\" is not a rate; write 50/s, 3000/min or \"none\"",
			   text_shown(shown, sizeof(shown), text));
}

const char *rate_format(const struct rate *rate, char out[RATE_TEXT_MAX])
{
	char period[DURATION_TEXT_MAX];

	if (rate->count <= 0) {
		snprintf(out, RATE_TEXT_MAX, "none");
		return out;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (units[i].period != rate->period)
			continue;
		snprintf(out, RATE_TEXT_MAX, "%" PRId64 "/%s", rate->count, units[i].name);
		return out;
	}
	snprintf(out, RATE_TEXT_MAX, "%" PRId64 "/%s", rate->count,
		 duration_exact(rate->period, period));
	return out;
}
