/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/format.h"

#include <outbox/store.h>

#include <stdio.h>

const char *age_text(outbox_time now, outbox_time then, char out[DURATION_TEXT_MAX])
{
	char text[DURATION_TEXT_MAX];

	if (then == 0) {
		snprintf(out, DURATION_TEXT_MAX, "-");
		return out;
	}
	if (then <= now)
		return duration_human(now - then, out);
	duration_human(then - now, text);
	snprintf(out, DURATION_TEXT_MAX, "in %.30s", text);
	return out;
}

const char *capped_text(int64_t count, char out[COUNT_TEXT_MAX])
{
	char text[COUNT_TEXT_MAX];

	if (count <= OUTBOX_COUNT_CAP)
		return count_human(count, out);
	count_human(OUTBOX_COUNT_CAP, text);
	snprintf(out, COUNT_TEXT_MAX, "> %.30s", text);
	return out;
}
