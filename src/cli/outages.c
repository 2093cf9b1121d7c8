/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outages.h"

#include "base/cleanup.h"
#include "cli/relay_run.h"

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

void outages_pass(void *context, int level, const char *line)
{
	const struct outages *outages = context;
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT(LINES_MAX);

	if (outages->source)
		buf_printf(&whole, "%s: ", outages->source);
	buf_text(&whole, line);
	relay_log(NULL, level, buf_str(&whole));
}

void outages_log(void *context, int level, const char *line)
{
	struct outages *outages = context;
	const char *promise = strstr(line, "; breaker open");

	if (!promise) {
		outages_pass(outages, level, line);
		return;
	}
	pthread_mutex_lock(&outages->lock);
	buf_append(&outages->lines, line, (size_t)(promise - line));
	buf_char(&outages->lines, '\0');
	pthread_mutex_unlock(&outages->lock);
}

void outages_tell(struct outages *outages, const struct outbox_error *err)
{
	const char *line = outages->lines.data, *end = line ? line + outages->lines.size : NULL;

	for (; line && line < end; line += strlen(line) + 1) {
		const char *reason = strstr(line, ": ");

		if (!err || !reason || !strstr(err->message, reason + 2))
			outages_pass(outages, OUTBOX_LOG_WARN, line);
	}
}
