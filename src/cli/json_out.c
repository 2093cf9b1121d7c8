/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_out.h"

#include "base/buf.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

json_t *json_bytes(const char *data, size_t size)
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

json_t *json_delivery(const struct outbox_delivery *row)
{
	const char *why = row->state == OUTBOX_PENDING ? outbox_why_name(row->why) : NULL;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o}",
			 "id", json_text(row->id), "seq", json_seq(row->seq), "target",
			 json_text(row->target), "type", json_text(row->type), "key",
			 json_text(row->key), "lane", row->lane, "state",
			 json_text(outbox_state_name(row->state)), "why", json_text(why),
			 "attempts", row->attempts, "owner", json_text(row->owner), "error",
			 json_text(row->error), "reason", json_text(row->reason), "event_time",
			 json_time(row->event_time), "created_at", json_time(row->created_at),
			 "last_status_at", json_time(row->last_status_at), "next_attempt_at",
			 json_time(row->next_attempt_at));
}

json_t *json_audit(const struct outbox_audit *row)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number",
			 json_seq(row->number), "at", json_time(row->at), "actor",
			 json_text(row->actor), "action", json_text(row->action), "target",
			 json_text(row->target), "id", json_text(row->id), "reason",
			 json_text(row->reason), "detail", json_text(row->detail));
}

int json_print(json_t *value, struct outbox_error *err)
{
	int r = -1;

	if (value) {
		/* 15 digits: 0.1 is 0.1, and with three decimals at most there is no exponent */
		r = json_dumpf(value, stdout,
			       JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		fputc('\n', stdout);
		json_decref(value);
	}
	if (r && !ferror(stdout))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory while writing JSON");
	return OUTBOX_OK; /* main() reports what stdout could not take */
}
