/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/throttle.h"

#define PORTION (100 * OUTBOX_MILLISECONDS)
#define BURST_MAX 1000000000 /* times an hour in microseconds fits into 63 bits */
/* Whoever was refused asks again at least this often, and is waited for this long. */
#define PATIENCE (250 * OUTBOX_MILLISECONDS)

/*
 * Whole numbers only, so that a slow rate loses nothing by rounding: the level is counted in parts of a permit,
 * `period` (in microseconds) of them each. A microsecond brings `count` parts.
 */

static int64_t full(const struct bucket *b)
{
	return b->burst * b->period;
}

/* A second's worth. */
static int64_t usual_burst(int64_t count, outbox_time period)
{
	int64_t burst = count / (period / OUTBOX_SECONDS ? period / OUTBOX_SECONDS : 1);

	return burst > 0 ? burst : 1;
}

void bucket_init(struct bucket *b, int64_t count, outbox_time period, int64_t burst, outbox_time now)
{
	b->count = count;
	b->period = period;
	b->burst = burst > 0 ? burst : usual_burst(count, period);
	if (b->burst > BURST_MAX)
		b->burst = BURST_MAX;
	b->level = full(b);
	b->at = now;
}

static void fill(struct bucket *b, outbox_time now)
{
	int64_t missing = full(b) - b->level;
	outbox_time passed = now - b->at;

	if (passed <= 0)
		return;
	b->at = now;
	/* a long pause brings no more than fits; compared so that nothing overflows */
	if (passed > missing / b->count)
		b->level = full(b);
	else
		b->level += passed * b->count;
}

size_t bucket_take(struct bucket *b, size_t want, outbox_time now)
{
	int64_t permits;

	fill(b, now);
	permits = b->level > 0 ? b->level / b->period : 0;
	if ((uint64_t)permits > want)
		permits = (int64_t)want;
	b->level -= permits * b->period;
	return (size_t)permits;
}

void bucket_give(struct bucket *b, size_t permits)
{
	int64_t room = full(b) - b->level;

	if (permits > (uint64_t)(room / b->period))
		b->level = full(b);
	else
		b->level += (int64_t)permits * b->period;
}

void bucket_owe(struct bucket *b, size_t permits)
{
	/* Bounded, so that no arithmetic overflows: a claim has 100,000 messages at the most. */
	for (; permits && b->level > -full(b); permits--)
		b->level -= b->period;
}

outbox_time bucket_next(struct bucket *b, size_t permits, outbox_time now)
{
	int64_t wanted = permits < (uint64_t)b->burst ? (int64_t)permits * b->period : full(b);

	fill(b, now);
	if (b->level >= wanted)
		return now;
	return b->at + (wanted - b->level + b->count - 1) / b->count;
}

size_t bucket_portion(const struct bucket *b)
{
	int64_t portion = b->count * PORTION / b->period;

	if (portion > b->burst)
		portion = b->burst;
	return portion > 0 ? (size_t)portion : 1;
}

void throttle_init(struct throttle *t, int64_t count, outbox_time period, int64_t burst,
		   outbox_time now)
{
	*t = (struct throttle){ .limited = count > 0 };
	pthread_mutex_init(&t->mutex, NULL);
	if (t->limited)
		bucket_init(&t->bucket, count, period, burst, now);
}

/* Until when does a higher rank go first? */
static outbox_time held_by_higher(const struct throttle *t, enum throttle_rank rank)
{
	outbox_time until = 0;

	for (int higher = RANK_HIGH; higher < (int)rank; higher++)
		if (t->wanted[higher] > until)
			until = t->wanted[higher];
	return until;
}

size_t throttle_take(struct throttle *t, enum throttle_rank rank, size_t want, outbox_time now,
		     outbox_time *ret_again)
{
	size_t taken = want, portion;
	outbox_time again;

	pthread_mutex_lock(&t->mutex);
	if (t->limited) {
		/* A claim for every single permit would cost the database more than the messages. */
		portion = bucket_portion(&t->bucket);
		again = bucket_next(&t->bucket, want < portion ? want : portion, now);
		taken = again > now || held_by_higher(t, rank) > now
				? 0
				: bucket_take(&t->bucket, want, now);
		if (!taken && want) {
			if (again <= now || again > now + PATIENCE)
				again = now + PATIENCE;
			t->wanted[rank] = again + PATIENCE;
			atomic_store(&t->holds_until, again + PATIENCE);
			*ret_again = again;
		}
	}
	pthread_mutex_unlock(&t->mutex);
	return taken;
}

void throttle_used(struct throttle *t, enum throttle_rank rank, size_t taken, size_t used,
		   outbox_time now)
{
	pthread_mutex_lock(&t->mutex);
	if (t->limited) {
		if (used < taken)
			bucket_give(&t->bucket, taken - used);
		else
			bucket_owe(&t->bucket, used - taken);
		/* All of it: there may be more where that came from. */
		t->wanted[rank] = taken && used >= taken ? now + PATIENCE : 0;
	}
	pthread_mutex_unlock(&t->mutex);
}

bool throttle_holds(struct throttle *t, outbox_time now)
{
	return atomic_load(&t->holds_until) > now;
}
