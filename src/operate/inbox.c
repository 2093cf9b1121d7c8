/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/inbox.h"

#include "base/text.h"
#include "config/config.h"
#include "core/retry.h"
#include "store/store.h"

#include <stdio.h>

#define PRUNE_PAGE 5000
#define DELAYS_MAX 1000 /* of a policy; behind them it has no end */

int inbox_prune_all(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		    const struct bulk *bulk, int64_t *ret_removed, struct outbox_error *err)
{
	struct outbox_inbox_filter page = *filter;
	int64_t removed = PRUNE_PAGE;
	int r = OUTBOX_OK;

	*ret_removed = 0;
	page.limit = PRUNE_PAGE;
	while (removed == PRUNE_PAGE) {
		r = store_inbox_prune(store, &page, &removed, err);
		if (r)
			return r;
		*ret_removed += removed;
		bulk_progress(bulk, *ret_removed);
		if (removed == PRUNE_PAGE && bulk_rest(bulk, *ret_removed, 0))
			return outbox_fail(err, OUTBOX_ECONFLICT, "interrupted; ids removed: %lld",
					   (long long)*ret_removed);
	}
	return OUTBOX_OK;
}

/* ---- how late a duplicate can come --------------------------------------------------------- */

struct latest {
	outbox_time after;
	const char *why;
};

static void consider(struct latest *latest, outbox_time after, const char *why)
{
	if (after > latest->after)
		*latest = (struct latest){ after, why };
}

/* From the first try to the last one; 0: it never gives up. */
static outbox_time retry_span(const struct outbox_policy *policy)
{
	outbox_time delay, total = 0,
			   since = 1; /* any time: a budget counts from the first failure */

	for (int attempts = 1; attempts <= DELAYS_MAX; attempts++) {
		if (!retry_delay(policy, attempts, since, since + total, NULL, &delay))
			return total;
		total += delay;
	}
	return 0;
}

bool inbox_kept_too_short(const struct config *config, outbox_time kept, char *text, size_t size)
{
	struct latest latest = { 0 };
	char of[DURATION_TEXT_MAX], late[DURATION_TEXT_MAX];

	if (kept == OUTBOX_NEVER)
		return false;
	consider(&latest, config ? config->relay.retain_delivered : 7 * OUTBOX_DAYS,
		 "outbox replay --from-log repeats what relay.retain_delivered keeps");
	/* forever is no time that could be kept to: a person decides about each of those */
	if (config && config->relay.retain_failed != OUTBOX_NEVER)
		consider(&latest, config->relay.retain_failed,
			 "outbox requeue repeats what relay.retain_failed keeps");
	for (size_t i = 0; config && i < config->targets.count; i++) {
		const struct config_target *targets = config->targets.items;

		consider(&latest, retry_span(&targets[i].policy),
			 "retries of a target go on so long");
	}
	if (kept >= latest.after)
		return false;
	snprintf(text, size,
		 "the inbox keeps ids for %s, but a duplicate can come %s late (%s): keep ids longer "
		 "(relay.retain_inbox), or consumers process it again",
		 duration_exact(kept, of),
		 latest.after == OUTBOX_NEVER ? "any time" : duration_exact(latest.after, late),
		 latest.why);
	return true;
}
