/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/batch.h"

#include "relay/dead_letter.h"

#include "base/text.h"

#include <string.h>

#define ITEM_OVERHEAD ((size_t)32 << 20)

int flight_init(struct flight *flight, size_t max_bytes, struct outbox_error *err)
{
	/* A claim's first message is taken whatever its size: leave room for the largest. */
	size_t max = max_bytes + 4 * OUTBOX_PAYLOAD_MAX + ITEM_OVERHEAD;

	memset(flight, 0, sizeof(*flight));
	flight->arena = outbox_arena_new(max);
	if (!flight->arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

void flight_deinit(struct flight *flight)
{
	flight->arena = outbox_arena_free(flight->arena);
}

void flight_reset(struct flight *flight)
{
	struct outbox_arena *arena = flight->arena;

	memset(flight, 0, sizeof(*flight));
	flight->arena = arena;
	outbox_arena_reset(arena);
}

static void decided(struct flight *f, size_t i, const struct outbox_settlement *s)
{
	f->outcomes[i] = *s;
	f->outcomes[i].seq = f->claim.items[i].seq;
	f->undecided--;
}

/*
 * What is not due yet is set aside before anything is sent. Left undecided it could be returned with the
 * rest, and a returned message is due at once.
 */
static void set_aside(struct flight *f)
{
	struct outbox_settlement s;

	for (size_t i = 0; i < f->claim.count; i++)
		if (decide_defer(f->claim.store_now, &f->claim.items[i], &s))
			decided(f, i, &s);
}

/* Link the messages of each key; the first of each, and those without a key, are ready. */
static int link_keys(struct flight *f, struct outbox_error *err)
{
	size_t n = f->claim.count, slots = 16, slot;
	int32_t *last; /* by hash: index + 1 of the last message seen of a key */

	while (slots < 2 * n)
		slots *= 2;
	last = outbox_arena_alloc(f->arena, slots * sizeof(*last));
	if (!last)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		const char *key = f->claim.items[i].message.key;

		f->next[i] = -1;
		if (f->outcomes[i].outcome)
			continue;
		if (!key) {
			f->ready[f->ready_tail++] = (uint32_t)i;
			continue;
		}
		slot = text_hash(key) & (slots - 1);
		while (last[slot] && strcmp(f->claim.items[last[slot] - 1].message.key, key) != 0)
			slot = (slot + 1) & (slots - 1);
		if (last[slot])
			f->next[last[slot] - 1] = (int32_t)i;
		if (!last[slot] || f->mode == FLIGHT_TOGETHER)
			f->ready[f->ready_tail++] = (uint32_t)i;
		last[slot] = (int32_t)i + 1;
	}
	return OUTBOX_OK;
}

int flight_begin(struct flight *f, enum flight_mode mode, bool hold, struct outbox_error *err)
{
	size_t n = f->claim.count;

	f->mode = mode;
	f->hold = hold;
	f->undecided = n;
	f->items = outbox_arena_alloc(f->arena, n * sizeof(*f->items));
	f->outcomes = outbox_arena_alloc(f->arena, n * sizeof(*f->outcomes));
	f->next = outbox_arena_alloc(f->arena, n * sizeof(*f->next));
	f->held = outbox_arena_alloc(f->arena, n * sizeof(*f->held));
	f->ready = outbox_arena_alloc(f->arena, n * sizeof(*f->ready));
	f->wire = outbox_arena_alloc(f->arena, n * sizeof(*f->wire));
	f->batch.items = outbox_arena_alloc(f->arena, n * sizeof(*f->batch.items));
	f->batch.memory = f->arena;
	if (!f->items || !f->outcomes || !f->next || !f->held || !f->ready || !f->wire ||
	    !f->batch.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct outbox_claimed *c = &f->claim.items[i];
		int r = c->dead_target ? dead_headers(c, f->arena, err) : OUTBOX_OK;

		if (r)
			return r;
		f->items[i] = (struct outbox_item){ .message = &c->message,
						    .seq = c->seq,
						    .created_at = c->created_at,
						    .attempts = c->attempts };
		f->outcomes[i].seq = c->seq;
	}
	set_aside(f);
	if (mode != FLIGHT_UNORDERED)
		return link_keys(f, err);
	for (size_t i = 0; i < n; i++) {
		f->next[i] = -1;
		if (f->outcomes[i].outcome)
			continue;
		f->ready[f->ready_tail++] = (uint32_t)i;
	}
	return OUTBOX_OK;
}

/*
 * Does the next message of the key go on behind this outcome? A deferred one leaves its order. A failed one
 * is passed when it would fail again (final): rejected, malformed, expired.
 */
static bool passes(const struct flight *f, const struct outbox_settlement *s, bool final)
{
	return s->outcome == OUTBOX_OUT_DELIVERED || s->outcome == OUTBOX_OUT_DEFERRED ||
	       (s->outcome == OUTBOX_OUT_FAILED && final && !f->hold);
}

/*
 * What becomes of the rest of the key in this claim. Behind a message whose attempts are used up the key
 * may go on, but only when that is written down: if we died before, the message would be tried again, and
 * might be accepted behind one that has overtaken it.
 */
static int behind(const struct flight *f, const struct outbox_settlement *s)
{
	if (s->outcome == OUTBOX_OUT_RETURNED || (s->outcome == OUTBOX_OUT_FAILED && !f->hold))
		return OUTBOX_OUT_RETURNED;
	return OUTBOX_OUT_PARKED;
}

static void set_back(struct flight *f, size_t i, int outcome)
{
	struct outbox_settlement s = { .outcome = outcome,
				       .attempts = f->claim.items[i].attempts,
				       .suspect = f->claim.items[i].suspect };

	decided(f, i, &s);
}

/* Record how message i ended, and what that means for its key. */
static void settle(struct flight *f, size_t i, const struct outbox_settlement *s, bool final)
{
	int32_t next = f->next[i];

	decided(f, i, s);
	if (next < 0)
		return;
	if (f->mode == FLIGHT_TOGETHER) {
		if (!passes(f, s, final))
			f->held[next] = behind(f, s);
	} else if (passes(f, s, final)) {
		f->ready[f->ready_tail++] = (uint32_t)next;
	} else {
		for (; next >= 0; next = f->next[next])
			set_back(f, (size_t)next, behind(f, s));
	}
}

size_t flight_round(struct flight *f, const struct decide_context *context, int64_t died_seq)
{
	struct outbox_settlement s;

	f->died_seq = died_seq;
	f->batch.count = 0;
	f->batch.back_off = 0;
	f->shared = false;
	while (f->ready_head < f->ready_tail) {
		size_t i = f->ready[f->ready_head++];
		const struct outbox_claimed *c = &f->claim.items[i];

		memset(&s, 0, sizeof(s));
		if (f->held[i]) {
			s.outcome = f->held[i];
			s.attempts = c->attempts;
			settle(f, i, &s, false);
		} else if (decide_send(context, c, died_seq && c->seq == died_seq, &s)) {
			f->wire[f->batch.count] = (uint32_t)i;
			f->batch.items[f->batch.count++] = &f->items[i];
		} else {
			settle(f, i, &s, c->seq != died_seq);
		}
	}
	return f->batch.count;
}

/* EFULL and EAUTH promise that nothing without a verdict was accepted. */
static bool outcome_unknown(int status)
{
	return status && status != OUTBOX_EFULL && status != OUTBOX_EAUTH;
}

struct flight_verdicts flight_judge(struct flight *f, const struct decide_context *context,
				    int status, bool others_acked)
{
	struct flight_verdicts verdicts = { 0 };

	for (size_t w = 0; w < f->batch.count; w++) {
		size_t i = f->wire[w];
		struct outbox_item *item = &f->items[i];
		struct outbox_settlement s = { 0 };
		struct decide_verdict v = { .verdict = item->verdict,
					    .reason = item->reason,
					    .retry_after = item->retry_after,
					    .connection_lost = outcome_unknown(status),
					    .alone = f->batch.count == 1 && !f->shared,
					    .others_acked = others_acked };

		if (!v.verdict && outcome_unknown(status))
			v.verdict = OUTBOX_UNKNOWN;
		verdicts.acked += v.verdict == OUTBOX_ACKED;
		verdicts.duplicates += v.verdict == OUTBOX_ACKED && item->duplicate;
		verdicts.unknown += v.verdict == OUTBOX_UNKNOWN;
		if (f->held[i] && v.verdict != OUTBOX_ACKED && v.verdict != OUTBOX_REJECTED) {
			/* The one before it in its key did not get through: not this one's fault. */
			s.outcome = f->held[i];
			s.attempts = f->claim.items[i].attempts;
		} else {
			decide_settle(context, &f->claim.items[i], &v, &s);
		}
		settle(f, i, &s, v.verdict == OUTBOX_REJECTED);
	}
	f->batch.count = 0;
	return verdicts;
}

void flight_return_rest(struct flight *f)
{
	for (size_t i = 0; i < f->claim.count && f->undecided; i++)
		if (!f->outcomes[i].outcome)
			set_back(f, i, OUTBOX_OUT_RETURNED);
	f->batch.count = 0;
	f->ready_head = f->ready_tail;
}

struct flight_tally flight_count(const struct flight *f)
{
	struct flight_tally t = { 0 };

	for (size_t i = 0; i < f->claim.count; i++) {
		int outcome = f->outcomes[i].outcome;

		t.delivered += outcome == OUTBOX_OUT_DELIVERED;
		t.failed += outcome == OUTBOX_OUT_FAILED;
		t.waiting += outcome == OUTBOX_OUT_WAITING;
		t.parked += outcome == OUTBOX_OUT_PARKED;
		t.deferred += outcome == OUTBOX_OUT_DEFERRED;
		t.returned += outcome == OUTBOX_OUT_RETURNED;
	}
	return t;
}
