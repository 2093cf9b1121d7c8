/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two mistakes are possible here. Taking a message as confirmed that was not loses it; taking one as open that
 * was confirmed sends it twice. So the first answer to a tag counts and later ones do not, an answer beyond
 * what was sent is no answer to anything, and what is left at the end is UNKNOWN.
 *
 * Tags count on while a channel lives, so an answer that comes after its batch's deadline is below the window
 * of the next batch and touches nothing there. This is why the window has a first tag of its own and why a
 * new channel, which counts from 1 again, must be told (confirms_reset).
 */
#include "transport/confirms.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void confirms_deinit(struct confirms *c)
{
	free(c->window);
	*c = (struct confirms)CONFIRMS_INIT;
}

void confirms_reset(struct confirms *c)
{
	c->batch = NULL;
	c->sent = c->low = c->open = 0;
	c->first = 1;
	c->unclean = false;
}

int confirms_begin(struct confirms *c, struct outbox_batch *batch, struct outbox_error *err)
{
	struct confirm *window;

	if (batch->count > c->capacity) {
		window = reallocarray(c->window, batch->count, sizeof(*window));
		if (!window)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		c->window = window;
		c->capacity = batch->count;
	}
	c->unclean = c->unclean || c->open > 0;
	c->batch = batch;
	c->first += c->sent;
	c->sent = c->low = c->open = 0;
	return OUTBOX_OK;
}

uint64_t confirms_send(struct confirms *c, size_t i)
{
	c->window[c->sent] = (struct confirm){ .item = i, .state = CONFIRM_OPEN };
	c->open++;
	return c->first + c->sent++;
}

/* One entry is answered. If it was answered or returned before, its verdict stands. */
static void answer(struct confirms *c, size_t slot, int verdict)
{
	struct confirm *entry = &c->window[slot];

	if (entry->state == CONFIRM_ANSWERED)
		return;
	if (entry->state == CONFIRM_OPEN)
		outbox_batch_verdict(c->batch, entry->item, verdict, 0,
				     verdict == OUTBOX_ACKED ? NULL : "refused by the broker (nack)");
	entry->state = CONFIRM_ANSWERED;
	c->open--;
}

/* Was this tag ever sent on the channel? */
static int check_tag(const struct confirms *c, uint64_t tag, struct outbox_error *err)
{
	if (tag == 0 || tag >= c->first + c->sent)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "broker answered message %" PRIu64
				   " of a channel that sent %" PRIu64,
				   tag, c->first + c->sent - 1);
	return OUTBOX_OK;
}

static int answer_up_to(struct confirms *c, uint64_t tag, bool multiple, int verdict,
			struct outbox_error *err)
{
	size_t slot;

	if (multiple && tag == 0)
		tag = c->first + c->sent - 1;
	else if (check_tag(c, tag, err))
		return OUTBOX_EPROTO;
	if (!c->batch || tag < c->first)
		return OUTBOX_OK; /* late: its batch was given up */
	slot = (size_t)(tag - c->first);
	for (size_t i = multiple ? c->low : slot; i <= slot; i++)
		answer(c, i, verdict);
	while (c->low < c->sent && c->window[c->low].state == CONFIRM_ANSWERED)
		c->low++;
	return OUTBOX_OK;
}

int confirms_ack(struct confirms *c, uint64_t tag, bool multiple, struct outbox_error *err)
{
	return answer_up_to(c, tag, multiple, OUTBOX_ACKED, err);
}

int confirms_nack(struct confirms *c, uint64_t tag, bool multiple, struct outbox_error *err)
{
	return answer_up_to(c, tag, multiple, OUTBOX_RETRY, err);
}

int confirms_return(struct confirms *c, uint64_t tag, int native, const char *text,
		    struct outbox_error *err)
{
	struct confirm *entry;

	if (check_tag(c, tag, err))
		return OUTBOX_EPROTO;
	if (!c->batch || tag < c->first)
		return OUTBOX_OK;
	entry = &c->window[tag - c->first];
	if (entry->state != CONFIRM_OPEN)
		return OUTBOX_OK;
	entry->state = CONFIRM_RETURNED;
	outbox_batch_verdict(c->batch, entry->item, OUTBOX_RETRY, native, "unroutable: %s", text);
	return OUTBOX_OK;
}

int confirms_find(const struct confirms *c, const char *id, uint64_t *ret_tag,
		  struct outbox_error *err)
{
	char shown[80];

	if (c->unclean)
		return outbox_fail(
			err, OUTBOX_EPROTO,
			"message %s was returned, but the broker does not say which copy of it",
			text_shown(shown, sizeof(shown), id));
	for (size_t slot = c->low; c->batch && slot < c->sent; slot++) {
		const struct confirm *entry = &c->window[slot];

		if (entry->state != CONFIRM_OPEN ||
		    strcmp(c->batch->items[entry->item]->message->id, id) != 0)
			continue;
		*ret_tag = c->first + slot;
		return OUTBOX_OK;
	}
	return outbox_fail(err, OUTBOX_EPROTO, "message %s was returned, which is not on its way",
			   text_shown(shown, sizeof(shown), id));
}

size_t confirms_finish(struct confirms *c)
{
	size_t unknown = 0;

	for (size_t slot = c->low; c->batch && slot < c->sent; slot++) {
		if (c->window[slot].state != CONFIRM_OPEN)
			continue;
		outbox_batch_verdict(c->batch, c->window[slot].item, OUTBOX_UNKNOWN, 0,
				     "not confirmed by the broker");
		unknown++;
	}
	c->unclean = c->unclean || c->open > 0;
	c->open = 0;
	c->batch = NULL;
	return unknown;
}
