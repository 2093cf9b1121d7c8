/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outages.h"

#include "daemon/journal.h"

#include <string.h>

#define LINES_MAX ((size_t)64 << 10)

void outages_init(struct outages *outages, const char *source)
{
	pthread_mutex_init(&outages->lock, NULL);
	outages->lines = (struct buf)BUF_INIT(LINES_MAX);
	outages->source = source;
}

void outages_deinit(struct outages *outages)
{
	buf_deinit(&outages->lines);
	pthread_mutex_destroy(&outages->lock);
}

void outages_log(void *context, const struct outbox_log_event *event)
{
	struct outages *outages = context;
	const char *promise = strstr(event->text, "; breaker open");

	if (!promise) {
		journal_sink((void *)outages->source, event);
		return;
	}
	pthread_mutex_lock(&outages->lock);
	buf_append(&outages->lines, event->target, strlen(event->target) + 1);
	buf_append(&outages->lines, event->text, (size_t)(promise - event->text));
	buf_char(&outages->lines, '\0');
	pthread_mutex_unlock(&outages->lock);
}

void outages_tell(struct outages *outages, const struct outbox_error *err)
{
	const char *at = outages->lines.data, *end = at ? at + outages->lines.size : NULL;

	while (at && at < end) {
		const char *target = at, *reason = at + strlen(at) + 1;

		at = reason + strlen(reason) + 1;
		if (err && strstr(err->message, reason))
			continue;
		journal(EVENT_TARGET_OUTAGE,
			&(struct about){ .source = outages->source, .target = target }, "%s",
			reason);
	}
}
