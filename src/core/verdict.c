/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include "base/text.h"
#include "core/message.h"
#include "core/secrets.h"

#include <stdio.h>

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
	reason[utf8_cut_chars(reason, ERROR_TEXT_MAX)] = '\0';
	text_clean(reason);
	hide_secrets_in(reason, sizeof(reason));
	item->reason = outbox_arena_text(batch->memory, reason);
	if (!item->reason)
		item->reason = "(out of memory for the reason)";
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
