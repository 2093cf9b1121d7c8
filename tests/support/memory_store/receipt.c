/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

struct memory_receipt *memory_receipt_last(const struct memory_lane *lane)
{
	return &lane->receipts[lane->n_receipts - 1];
}

struct memory_receipt *memory_receipt_at(const struct memory_lane *lane, int64_t n)
{
	int64_t i = n - lane->receipts[0].n;

	if (i < 0 || i >= (int64_t)lane->n_receipts)
		return NULL;
	return &lane->receipts[i];
}

struct memory_receipt *memory_receipt_append(struct memory_db *db, struct memory_lane *lane,
					     int64_t token, const char *owner, outbox_time now)
{
	struct memory_receipt receipt = {
		.n = 1, .fence_token = token, .settled_at = now, .owner = memory_intern(db, owner)
	};

	if (lane->n_receipts) {
		const struct memory_receipt *last = memory_receipt_last(lane);

		receipt.n = last->n + 1;
		receipt.delivered_total = last->delivered_total;
		receipt.pos = last->pos;
		receipt.caution = last->caution;
		receipt.caution.suspect_seq = 0;
	}
	lane->receipts =
		memory_grow(lane->receipts, lane->n_receipts, &lane->cap_receipts, sizeof(receipt));
	lane->receipts[lane->n_receipts++] = receipt;
	return memory_receipt_last(lane);
}

static bool is_settled(enum memory_mark mark)
{
	return mark == MARK_DELIVERED || mark == MARK_PASSED;
}

void memory_mark(struct memory_db *db, struct memory_target *target, struct memory_lane *lane,
		 int64_t seq, enum memory_mark mark)
{
	struct memory_delivery *delivery = memory_delivery(db, target, seq);
	struct memory_receipt *last = memory_receipt_last(lane);

	delivery->mark = mark;
	delivery->n = last->n;
	if (is_settled(mark))
		last->refs++;
}

bool memory_lane_is_cautious(const struct memory_lane *lane)
{
	const struct memory_receipt *last = memory_receipt_last(lane);

	return caution_applies(&last->caution, last->pos);
}
