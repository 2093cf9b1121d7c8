/* SPDX-License-Identifier: Apache-2.0 */
#include "core/retention.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT_DEFAULT 5000
#define LIMIT_MAX 100000

static bool is_before(outbox_time at, outbox_time limit)
{
	return limit && at < limit;
}

static bool detour_keeps(const struct outbox_purge *purge, const struct retention_delivery *delivery)
{
	switch (delivery->state) {
	case OUTBOX_FAILED:
		return !is_before(delivery->at, purge->failed_before);
	case OUTBOX_DELIVERED:
	case OUTBOX_DISCARDED:
		return !is_before(delivery->at, purge->delivered_before);
	default:
		return true;
	}
}

void retention_add(struct retention *retention, const struct outbox_purge *purge,
		   const struct retention_delivery *delivery)
{
	if (delivery->state) {
		retention->failed = retention->failed || delivery->state == OUTBOX_FAILED;
		retention->kept = retention->kept || detour_keeps(purge, delivery);
	} else if (!delivery->covered) {
		retention->kept = retention->kept || delivery->wanted;
		retention->by_age = true;
	}
}

bool retention_is_over(const struct retention *retention, const struct outbox_purge *purge,
		       outbox_time created_at)
{
	if (retention->kept)
		return false;
	return retention->failed || !retention->by_age ||
	       is_before(created_at, purge->delivered_before);
}

bool retention_is_wanted(bool passed, bool routed_then, bool routed_today)
{
	return routed_then || (!passed && routed_today);
}

size_t retention_limit(const struct outbox_purge *purge)
{
	if (!purge->limit)
		return LIMIT_DEFAULT;
	return purge->limit < LIMIT_MAX ? purge->limit : LIMIT_MAX;
}

static int compare_seqs(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

bool retention_is_listed(const struct outbox_purge *purge, int64_t seq)
{
	return !purge->only || bsearch(&seq, purge->only, purge->n_only, sizeof(seq), compare_seqs);
}

int64_t retention_go_on(struct retention_progress *progress, const struct outbox_purge *purge)
{
	const struct outbox_purge *before = &progress->purge;

	if (before->delivered_before != purge->delivered_before ||
	    before->failed_before != purge->failed_before ||
	    before->through_seq != purge->through_seq)
		progress->seen_seq = 0;
	progress->purge = (struct outbox_purge){ .delivered_before = purge->delivered_before,
						 .failed_before = purge->failed_before,
						 .through_seq = purge->through_seq };
	return progress->seen_seq;
}

int retention_refused(const char *why, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "nothing is removed while relays refuse a lane: %s", why);
}

int retention_kept_for(const char *target, struct outbox_error *err)
{
	return outbox_fail(
		err, OUTBOX_ECONFLICT,
		"nothing is removed while target \"%s\" waits for its start: a relay is configured for it, without a "
		"start; give it one (start: oldest, now or a time, or --start %s=now), remove it from the "
		"configuration, or stop that relay",
		target, target);
}

void retention_describe(const struct outbox_purged *purged, char detail[RETENTION_DETAIL_MAX])
{
	snprintf(detail, RETENTION_DETAIL_MAX,
		 "%lld message%s, %lld of them with a failed delivery", (long long)purged->messages,
		 purged->messages == 1 ? "" : "s", (long long)purged->failed);
}
