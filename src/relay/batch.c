/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/batch.h"

#include "relay/dead_letter.h"

#include "base/text.h"

#include <string.h>

#define ITEM_OVERHEAD ((size_t)32 << 20)

int batch_init(struct batch *batch, size_t max_bytes, struct outbox_error *err)
{
	/* A claim's first message is taken whatever its size: leave room for the largest. */
	size_t max = max_bytes + 4 * OUTBOX_PAYLOAD_MAX + ITEM_OVERHEAD;

	memset(batch, 0, sizeof(*batch));
	batch->arena = outbox_arena_new(max);
	if (!batch->arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

void batch_deinit(struct batch *batch)
{
	batch->arena = outbox_arena_free(batch->arena);
}

void batch_reset(struct batch *batch)
{
	struct outbox_arena *arena = batch->arena;

	memset(batch, 0, sizeof(*batch));
	batch->arena = arena;
	outbox_arena_reset(arena);
}

static void record_outcome(struct batch *b, size_t i, const struct outbox_settlement *s)
{
	b->outcomes[i] = *s;
	b->outcomes[i].seq = b->claim.items[i].seq;
	b->undecided--;
}

static void set_back(struct batch *b, size_t i, int outcome)
{
	struct decision d = decide_set_back(&b->claim.items[i], outcome);

	record_outcome(b, i, &d.settlement);
}

/*
 * What is not due yet is set aside before anything is sent. Left undecided it could be returned with the
 * rest, and a returned message is due at once.
 */
static void set_aside_deferred(struct batch *b)
{
	struct outbox_settlement s;

	for (size_t i = 0; i < b->claim.count; i++)
		if (decide_defer(b->claim.store_now, &b->claim.items[i], &s))
			record_outcome(b, i, &s);
}

/* Link the messages of each key; the first of each, and those without a key, are ready. */
static int link_keys(struct batch *b, struct outbox_error *err)
{
	size_t n = b->claim.count, slots = 16, slot;
	int32_t *last; /* by hash: index + 1 of the last message seen of a key */

	while (slots < 2 * n)
		slots *= 2;
	last = outbox_arena_alloc(b->arena, slots * sizeof(*last));
	if (!last)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		const char *key = b->claim.items[i].message.key;

		b->next[i] = -1;
		if (b->outcomes[i].outcome)
			continue;
		if (!key) {
			b->ready[b->ready_tail++] = (uint32_t)i;
			continue;
		}
		slot = text_hash(key) & (slots - 1);
		while (last[slot] && strcmp(b->claim.items[last[slot] - 1].message.key, key) != 0)
			slot = (slot + 1) & (slots - 1);
		if (last[slot])
			b->next[last[slot] - 1] = (int32_t)i;
		if (!last[slot] || b->order == WIRE_TOGETHER)
			b->ready[b->ready_tail++] = (uint32_t)i;
		last[slot] = (int32_t)i + 1;
	}
	return OUTBOX_OK;
}

int batch_begin(struct batch *b, enum wire_order order, struct outbox_error *err)
{
	size_t n = b->claim.count;

	b->order = order;
	b->undecided = n;
	b->items = outbox_arena_alloc(b->arena, n * sizeof(*b->items));
	b->outcomes = outbox_arena_alloc(b->arena, n * sizeof(*b->outcomes));
	b->next = outbox_arena_alloc(b->arena, n * sizeof(*b->next));
	b->held = outbox_arena_alloc(b->arena, n * sizeof(*b->held));
	b->ready = outbox_arena_alloc(b->arena, n * sizeof(*b->ready));
	b->in_round = outbox_arena_alloc(b->arena, n * sizeof(*b->in_round));
	b->round.items = outbox_arena_alloc(b->arena, n * sizeof(*b->round.items));
	b->round.memory = b->arena;
	if (!b->items || !b->outcomes || !b->next || !b->held || !b->ready || !b->in_round ||
	    !b->round.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct outbox_claimed *c = &b->claim.items[i];
		int r = c->dead_target ? dead_letter_headers(c, b->arena, err) : OUTBOX_OK;

		if (r)
			return r;
		b->items[i] = (struct outbox_item){ .message = &c->message,
						    .seq = c->seq,
						    .created_at = c->created_at,
						    .attempts = c->attempts };
		b->outcomes[i].seq = c->seq;
	}
	set_aside_deferred(b);
	if (order != WIRE_UNORDERED)
		return link_keys(b, err);
	for (size_t i = 0; i < n; i++) {
		b->next[i] = -1;
		if (b->outcomes[i].outcome)
			continue;
		b->ready[b->ready_tail++] = (uint32_t)i;
	}
	return OUTBOX_OK;
}

/* Record how message i ended, and what that means for its key. */
static void settle_one(struct batch *b, size_t i, const struct decision *d)
{
	int32_t next = b->next[i];

	record_outcome(b, i, &d->settlement);
	if (next < 0)
		return;
	if (b->order == WIRE_TOGETHER) {
		b->held[next] = d->behind;
	} else if (!d->behind) {
		b->ready[b->ready_tail++] = (uint32_t)next;
	} else {
		for (; next >= 0; next = b->next[next])
			set_back(b, (size_t)next, d->behind);
	}
}

size_t batch_next_round(struct batch *b, const struct decide_context *context, int64_t died_seq)
{
	b->died_seq = died_seq;
	b->round.count = 0;
	b->round.back_off = 0;
	b->shared = false;
	while (b->ready_head < b->ready_tail) {
		size_t i = b->ready[b->ready_head++];
		const struct outbox_claimed *c = &b->claim.items[i];
		struct decision d;

		if (b->held[i]) {
			d = decide_set_back(c, b->held[i]);
			settle_one(b, i, &d);
		} else if (decide_send(context, c, died_seq && c->seq == died_seq, &d)) {
			b->in_round[b->round.count] = (uint32_t)i;
			b->round.items[b->round.count++] = &b->items[i];
		} else {
			settle_one(b, i, &d);
		}
	}
	return b->round.count;
}

struct batch_verdicts batch_judge(struct batch *b, const struct decide_context *context, int status,
				  bool others_acked)
{
	struct batch_verdicts verdicts = { 0 };

	for (size_t w = 0; w < b->round.count; w++) {
		size_t i = b->in_round[w];
		const struct outbox_item *item = &b->items[i];
		int verdict = decide_final_verdict(item->verdict, status);
		struct decision d;

		verdicts.acked += verdict == OUTBOX_ACKED;
		verdicts.duplicates += verdict == OUTBOX_ACKED && item->duplicate;
		verdicts.unknown += verdict == OUTBOX_UNKNOWN;
		decide_settle(context, &b->claim.items[i],
			      &(struct decide_verdict){ .verdict = item->verdict,
							.status = status,
							.native = item->native,
							.reason = item->reason,
							.answer = item->answer,
							.retry_after = item->retry_after,
							.alone = b->round.count == 1 && !b->shared,
							.others_acked = others_acked,
							.held = b->held[i] },
			      &d);
		settle_one(b, i, &d);
	}
	b->round.count = 0;
	return verdicts;
}

void batch_return_rest(struct batch *b)
{
	for (size_t i = 0; i < b->claim.count && b->undecided; i++)
		if (!b->outcomes[i].outcome)
			set_back(b, i, OUTBOX_OUT_RETURNED);
	b->round.count = 0;
	b->ready_head = b->ready_tail;
}

struct batch_outcomes batch_count(const struct batch *b)
{
	struct batch_outcomes t = { 0 };

	for (size_t i = 0; i < b->claim.count; i++) {
		int outcome = b->outcomes[i].outcome;

		t.delivered += outcome == OUTBOX_OUT_DELIVERED;
		t.failed += outcome == OUTBOX_OUT_FAILED;
		t.waiting += outcome == OUTBOX_OUT_WAITING;
		t.parked += outcome == OUTBOX_OUT_PARKED;
		t.deferred += outcome == OUTBOX_OUT_DEFERRED;
		t.returned += outcome == OUTBOX_OUT_RETURNED;
	}
	return t;
}
