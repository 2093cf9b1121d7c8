/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/order.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void key_order_deinit(struct key_order *order)
{
	free(order->next);
	free(order->ready);
	free(order->slots);
	free(order->waits);
	*order = (struct key_order){ 0 };
}

static int make_room(struct key_order *order, size_t count, struct outbox_error *err)
{
	size_t n = 64;

	while (n < count)
		n *= 2;
	if (n > order->capacity) {
		key_order_deinit(order);
		order->next = calloc(n, sizeof(*order->next));
		order->ready = calloc(n, sizeof(*order->ready));
		order->slots = calloc(2 * n, sizeof(*order->slots));
		order->waits = calloc(n, sizeof(*order->waits));
		if (!order->next || !order->ready || !order->slots || !order->waits) {
			key_order_deinit(order);
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		}
		order->capacity = n;
	}
	memset(order->slots, 0, 2 * order->capacity * sizeof(*order->slots));
	return OUTBOX_OK;
}

/* Put message i behind the last one of its key. False: it is the first. */
static bool link_key(struct key_order *order, const struct outbox_batch *batch, size_t i)
{
	const char *key = batch->items[i]->message->key;
	size_t mask = 2 * order->capacity - 1, slot = text_hash(key) & mask;
	bool first;

	while (order->slots[slot] &&
	       strcmp(batch->items[order->slots[slot] - 1]->message->key, key) != 0)
		slot = (slot + 1) & mask;
	first = !order->slots[slot];
	if (!first)
		order->next[order->slots[slot] - 1] = (uint32_t)i;
	order->slots[slot] = (uint32_t)i + 1;
	return first;
}

int key_order_begin(struct key_order *order, const struct outbox_batch *batch, bool unordered,
		    struct outbox_error *err)
{
	int r = make_room(order, batch->count, err);

	if (r)
		return r;
	order->n_ready = 0;
	order->left = batch->count;
	for (size_t i = 0; i < batch->count; i++) {
		order->next[i] = KEY_ORDER_NONE;
		order->waits[i] = true;
		if (unordered || !batch->items[i]->message->key || link_key(order, batch, i))
			order->ready[order->n_ready++] = (uint32_t)i;
	}
	return OUTBOX_OK;
}

static void leave(struct key_order *order, size_t i)
{
	order->waits[i] = false;
	order->left--;
}

bool key_order_settle(struct key_order *order, const struct outbox_batch *batch, size_t i)
{
	int verdict = batch->items[i]->verdict;

	leave(order, i);
	if (verdict == OUTBOX_ACKED || verdict == OUTBOX_REJECTED)
		return true;
	for (uint32_t k = order->next[i]; k != KEY_ORDER_NONE; k = order->next[k])
		leave(order, k);
	return false;
}

void key_order_next(struct key_order *order, const struct outbox_batch *batch)
{
	size_t n = order->n_ready;

	order->n_ready = 0;
	for (size_t k = 0; k < n; k++) {
		uint32_t i = order->ready[k];

		if (key_order_settle(order, batch, i) && order->next[i] != KEY_ORDER_NONE)
			order->ready[order->n_ready++] = order->next[i];
	}
}
