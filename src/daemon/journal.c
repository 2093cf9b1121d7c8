/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal.h"

#include "core/secrets.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/url.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192
#define WORD_MAX_BYTES 2048

static _Atomic bool as_json;
static _Atomic int least = OUTBOX_LOG_INFO;

void journal_choose(bool json, int level)
{
	atomic_store(&as_json, json);
	atomic_store(&least, level);
}

bool journal_is_json(void)
{
	return atomic_load(&as_json);
}

/*
 * Drivers mask the URLs that they put into their errors, but libraries quote what they were given, too. So every word
 * that may be a URL is masked here once more. A text that is hidden already stays as it is.
 */
static void append_masked(struct buf *out, const char *text)
{
	char word[WORD_MAX_BYTES], masked[WORD_MAX_BYTES];

	while (*text) {
		size_t length = strcspn(text, " ");

		if (length < sizeof(word)) {
			memcpy(word, text, length);
			word[length] = '\0';
			if (strstr(word, "//") || strchr(word, '?'))
				url_mask(word, masked, sizeof(masked));
			else
				memcpy(masked, word, length + 1);
			printable_append(out, masked, strlen(masked), UNCUT);
		} else {
			buf_text(out, "(a word that is too long)");
		}
		text += length;
		for (; *text == ' '; text++)
			buf_char(out, ' ');
	}
}

static void format_time(char *out, size_t size)
{
	outbox_time now = wall_now();
	char whole[TIME_TEXT_MAX];

	/* whole seconds from time_format(), and always three digits behind them */
	time_format(now - now % OUTBOX_SECONDS, whole);
	whole[strcspn(whole, "Z")] = '\0';
	snprintf(out, size, "%s.%03dZ", whole, (int)(now % OUTBOX_SECONDS / OUTBOX_MILLISECONDS));
}

static void append_json(struct buf *out, const char *time, const char *level,
			const struct outbox_log_event *event, const char *text)
{
	json_t *line =
		json_pack("{s:s, s:s, s:s, s:s*, s:s*}", "time", time, "level", level, "event",
			  event->name, "source", event->source, "target", event->target);
	char *dumped;

	if (line && event->lane >= 0)
		json_object_set_new(line, "lane", json_integer(event->lane));
	if (line)
		json_object_set_new(line, "message", json_string(text));
	dumped = line ? json_dumps(line, JSON_COMPACT) : NULL;
	if (dumped)
		buf_text(out, dumped);
	free(dumped);
	json_decref(line);
}

static void append_text(struct buf *out, const char *time, const char *level,
			const struct outbox_log_event *event, const char *text)
{
	buf_printf(out, "%s %-5s %s ", time, level, event->name);
	if (event->source)
		buf_printf(out, "%s: ", event->source);
	if (event->target)
		buf_printf(out, "target %s", event->target);
	if (event->target && event->lane >= 0)
		buf_printf(out, ", lane %d", event->lane);
	buf_printf(out, "%s%s", event->target ? ": " : "", text);
}

/* One write a line: several threads speak, and a line belongs to one of them. */
static void write_line(struct buf *line)
{
	size_t at = 0;

	buf_char(line, '\n');
	while (!line->failed && at < line->size) {
		ssize_t n = write(STDERR_FILENO, line->data + at, line->size - at);

		if (n <= 0)
			return; /* nobody listens */
		at += (size_t)n;
	}
}

void journal_sink(void *context, const struct outbox_log_event *event)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	_cleanup_(buf_deinit) struct buf hidden = BUF_INIT(LINE_MAX_BYTES);
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(LINE_MAX_BYTES);
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4 * LINE_MAX_BYTES);
	struct outbox_log_event told = *event;
	char time[TIME_TEXT_MAX + 8];

	if (event->level < atomic_load(&least) || event->level < OUTBOX_LOG_DEBUG ||
	    event->level > OUTBOX_LOG_ERROR)
		return;
	if (!told.source)
		told.source = context;
	hide_secrets(event->text, &hidden);
	append_masked(&text, buf_str(&hidden));
	format_time(time, sizeof(time));
	if (journal_is_json())
		append_json(&line, time, levels[event->level], &told, buf_str(&text));
	else
		append_text(&line, time, levels[event->level], &told, buf_str(&text));
	write_line(&line);
}

void journal(enum event event, const struct about *about, const char *format, ...)
{
	const struct log log = { journal_sink, NULL };
	char text[LINE_MAX_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_event(&log, event, about, "%s", text);
}
