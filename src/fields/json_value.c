/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/json_value.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static json_t *json_bytes(const char *data, size_t size)
{
	_cleanup_(buf_deinit) struct buf repaired = BUF_INIT(4 * size + 1);

	if (utf8_valid(data, size))
		return json_stringn(data, size);
	while (size > 0) {
		size_t n = size < 4 ? size : 4;

		while (n > 0 && !utf8_valid(data, n))
			n--;
		if (n > 0)
			buf_append(&repaired, data, n);
		else
			buf_text(&repaired, "\xef\xbf\xbd");
		n = n ? n : 1;
		data += n;
		size -= n;
	}
	return repaired.failed ? NULL : json_stringn(buf_str(&repaired), repaired.size);
}

json_t *json_text(const char *text)
{
	return text ? json_bytes(text, strlen(text)) : json_null();
}

json_t *json_seq(int64_t seq)
{
	return json_sprintf("%" PRId64, seq);
}

json_t *json_time(outbox_time time)
{
	char text[TIME_TEXT_MAX];

	return time ? json_string(time_format(time, text)) : json_null();
}

json_t *json_thousandths(int64_t n)
{
	return json_real((double)n / 1000);
}

json_t *json_seconds(outbox_time duration)
{
	return json_thousandths(duration / OUTBOX_MILLISECONDS);
}
