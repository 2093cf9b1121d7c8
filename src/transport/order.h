/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_ORDER_H
#define TRANSPORT_ORDER_H

/* Which messages of a batch may go, when those of a key follow each other. For drivers with many in flight. */

#include <outbox/transport.h>

#include <stdint.h>

#define KEY_ORDER_NONE UINT32_MAX

struct key_order {
	size_t capacity;
	uint32_t *next;       /* by message: the one behind it in its key */
	uint32_t *ready;      /* may go now */
	size_t n_ready, left; /* of these, and of all that wait */
	uint32_t *slots;      /* by hash: index + 1 of the last message of a key */
	bool *waits;          /* by message: neither settled, nor behind one that was refused */
};

int key_order_begin(struct key_order *order, const struct outbox_batch *batch, bool unordered,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* By its verdict, message i is done, or it stops its key. True: the key goes on. */
bool key_order_settle(struct key_order *order, const struct outbox_batch *batch, size_t i);
/* All that were ready are settled; those behind them are ready now. */
void key_order_next(struct key_order *order, const struct outbox_batch *batch);
void key_order_deinit(struct key_order *order);

#endif
