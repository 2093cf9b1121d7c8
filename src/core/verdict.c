/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include "base/text.h"
#include "core/message.h"
#include "core/secrets.h"

#include <stdio.h>
#include <string.h>

void outbox_batch_verdict(struct outbox_batch *batch, size_t i, int verdict, int native,
			  const char *format, ...)
{
	char reason[ERROR_TEXT_MAX * 4 + 1];
	struct outbox_item *item;
	va_list args;

	if (i >= batch->count)
		return;
	item = batch->items[i];
	item->verdict = verdict;
	item->native = native;
	item->reason = NULL;
	item->duplicate = false;
	if (!format || !batch->memory)
		return;
	va_start(args, format);
	if (vsnprintf(reason, sizeof(reason), format, args) < 0)
		reason[0] = '\0';
	va_end(args);
	/* Brokers say what they like: what is stored is one clean line of UTF-8, without our passwords. */
	text_clean(reason);
	hide_secrets_in(reason, sizeof(reason));
	reason[utf8_cut_chars(reason, ERROR_TEXT_MAX)] = '\0';
	item->reason = outbox_arena_text(batch->memory, reason);
	if (!item->reason)
		item->reason = "(out of memory for the reason)";
}

void outbox_batch_answer(struct outbox_batch *batch, size_t i, const void *text, size_t size)
{
	char answer[ANSWER_READ_MAX + 1];
	size_t n = size < ANSWER_READ_MAX ? size : ANSWER_READ_MAX, kept;

	if (i >= batch->count)
		return;
	batch->items[i]->answer = NULL;
	if (!text || !n || !batch->memory)
		return;
	memcpy(answer, text, n);
	for (size_t at = 0; at < n; at++)
		if (!answer[at])
			answer[at] = ' ';
	answer[n] = '\0';
	text_clean_lines(answer);
	hide_secrets_in(answer, sizeof(answer));
	kept = strlen(answer);
	if (n < size)
		kept -= kept < ANSWER_MARGIN ? kept : ANSWER_MARGIN;
	answer[utf8_cut(answer, strlen(answer), kept < ANSWER_TEXT_MAX ? kept : ANSWER_TEXT_MAX)] =
		'\0';
	batch->items[i]->answer = outbox_arena_text(batch->memory, answer);
}

/* A broker that asks for more is not believed: somebody's clock or unit is wrong. */
#define RETRY_AFTER_MAX OUTBOX_DAYS
#define BACK_OFF_MAX OUTBOX_HOURS

static outbox_time between(outbox_time delay, outbox_time max)
{
	if (delay <= 0)
		return 0;
	return delay < max ? delay : max;
}

void outbox_batch_retry_after(struct outbox_batch *batch, size_t i, outbox_time delay)
{
	if (i < batch->count)
		batch->items[i]->retry_after = between(delay, RETRY_AFTER_MAX);
}

void outbox_batch_back_off(struct outbox_batch *batch, outbox_time delay)
{
	batch->back_off = between(delay, BACK_OFF_MAX);
}

void outbox_batch_duplicate(struct outbox_batch *batch, size_t i)
{
	outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
	if (i < batch->count)
		batch->items[i]->duplicate = true;
}
