/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/throttle.h"

/* Who was refused asks again at least this often, and is waited for this long. */
#define PATIENCE (250 * OUTBOX_MILLISECONDS)

void throttle_init(struct throttle *t, int64_t count, outbox_time period, int64_t burst,
		   outbox_time now)
{
	*t = (struct throttle){ .limited = count > 0 };
	pthread_mutex_init(&t->mutex, NULL);
	if (t->limited)
		bucket_init(&t->bucket, count, period, burst, now);
}

void throttle_deinit(struct throttle *t)
{
	pthread_mutex_destroy(&t->mutex);
}

void throttle_change(struct throttle *t, int64_t count, outbox_time period, int64_t burst,
		     outbox_time now)
{
	pthread_mutex_lock(&t->mutex);
	if (count > 0 && t->limited)
		bucket_change(&t->bucket, count, period, burst, now);
	else if (count > 0)
		bucket_init(&t->bucket, count, period, burst, now);
	t->limited = count > 0;
	pthread_mutex_unlock(&t->mutex);
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
