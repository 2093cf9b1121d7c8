/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RETENTION_H
#define CORE_RETENTION_H

/*
 * What a purge may take. A message goes when no delivery of it keeps it: what waits or is being sent
 * keeps it, what was delivered or discarded keeps it until delivered_before, what failed until
 * failed_before. A target that never gets the message, since it is not routed there or older than the
 * target's start, does not hold it back, wherever its lane stands. Where only such targets are left, the
 * message goes by its own age.
 *
 * The cases are in tests/contract/retention_cases.h.
 */

#include <outbox/store.h>

/* One target's delivery of a message. */
struct retention_delivery {
	int state;      /* of its detour; 0: it has none */
	outbox_time at; /* since when it is in that state */
	bool covered;   /* no detour: settled before delivered_before */
	bool wanted; /* no detour, not covered: the target got it or has to get it, retention_is_wanted() */
};

/* What is known of a message after some of its deliveries; starts with zeros. */
struct retention {
	bool kept;   /* it stays: no further delivery need be looked at */
	bool failed; /* it has a failed delivery */
	bool by_age; /* a target that is not covered has no interest in it */
};

void retention_add(struct retention *retention, const struct outbox_purge *purge,
		   const struct retention_delivery *delivery);

/* Every delivery was added: may it go? */
bool retention_is_over(const struct retention *retention, const struct outbox_purge *purge,
		       outbox_time created_at);

/*
 * Has the target anything to do with a message? What its lane has settled (passed) goes by the routing of that
 * time alone. What it has not goes by the routing of today or by that of the claim in flight: either may get it.
 */
bool retention_is_wanted(bool passed, bool routed_then, bool routed_today);

/* Messages of one call. */
size_t retention_limit(const struct outbox_purge *purge);

/* Is it among those that the purge is meant for? */
bool retention_is_listed(const struct outbox_purge *purge, int64_t seq);

/* Where a purge in several calls goes on: what a store remembers between them. */
struct retention_progress {
	struct outbox_purge purge; /* which one */
	int64_t seen_seq;          /* what it has looked at */
};

/* After which message this call looks: another purge than the last one starts again. */
int64_t retention_go_on(struct retention_progress *progress, const struct outbox_purge *purge);

/* ECONFLICT: nothing is removed while lanes are refused, or while this target waits for its start. */
int retention_refused(const char *why, struct outbox_error *err);
int retention_kept_for(const char *target, struct outbox_error *err);

#define RETENTION_DETAIL_MAX 80
/* What the audit says of a purge: one row a call, since what is gone has no history left to look at. */
void retention_describe(const struct outbox_purged *purged, char detail[RETENTION_DETAIL_MAX]);

#endif
