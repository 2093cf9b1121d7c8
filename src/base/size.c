/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int size_parse(const char *text, int64_t *ret_size, struct outbox_error *err)
{
	static const struct {
		const char *suffix;
		int64_t factor;
	} units[] = { { "", 1 },           { "B", 1 },           { "K", 1024 },
		      { "KiB", 1024 },     { "M", 1024 * 1024 }, { "MiB", 1024 * 1024 },
		      { "G", 1024 << 20 }, { "GiB", 1024 << 20 } };
	size_t digits = strspn(text, "0123456789");
	int64_t size;
	char shown[80];

	for (size_t i = 0; digits && digits < 10 && i < ARRAY_SIZE(units); i++) {
		if (strcmp(text + digits, units[i].suffix) != 0)
			continue;
		size = strtol(text, NULL, 10) * units[i].factor;
		if (size <= 0)
			break;
		*ret_size = size;
		return OUTBOX_OK;
	}
	return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" is not a size; write 65536, 64KiB or 8MiB",
			   text_shown(shown, sizeof(shown), text));
}

const char *size_exact(int64_t size, char out[SIZE_TEXT_MAX])
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB" };
	size_t unit = 0;

	while (unit + 1 < ARRAY_SIZE(units) && size >= 1024 && size % 1024 == 0) {
		size /= 1024;
		unit++;
	}
	snprintf(out, SIZE_TEXT_MAX, "%lld%s", (long long)size, units[unit]);
	return out;
}
