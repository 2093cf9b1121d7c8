/* SPDX-License-Identifier: Apache-2.0 */
#include "http/auth_limit.h"

#include <string.h>

/* This address's place, or the one that was quiet for longest. */
static struct failure *find(struct failures *failures, const unsigned char key[ADDRESS_KEY])
{
	struct failure *oldest = &failures->items[0];

	for (size_t i = 0; i < FAILURES_ADDRESSES; i++) {
		struct failure *item = &failures->items[i];

		if (item->since && memcmp(item->key, key, ADDRESS_KEY) == 0)
			return item;
		if (item->since < oldest->since)
			oldest = item;
	}
	failures->untold += oldest->untold;
	*oldest = (struct failure){ .count = 0 };
	memcpy(oldest->key, key, ADDRESS_KEY);
	return oldest;
}

/* One line less for this minute; false: there is none left. */
static bool may_tell(struct failures *failures, outbox_time now)
{
	if (!failures->since || now - failures->since >= OUTBOX_MINUTES) {
		failures->since = now > 0 ? now : 1;
		failures->lines = 0;
	}
	return failures->lines++ < FAILURES_LINES;
}

struct failure_verdict failures_note(struct failures *failures,
				     const unsigned char key[ADDRESS_KEY], outbox_time now)
{
	struct failure *item = find(failures, key);
	struct failure_verdict verdict = { .tell = false };

	if (!item->since || now - item->since >= OUTBOX_MINUTES) {
		item->since = now > 0 ? now : 1;
		item->count = 0;
		verdict.tell = may_tell(failures, now);
		if (verdict.tell) {
			verdict.untold = item->untold;
			verdict.elsewhere = failures->untold;
			item->untold = failures->untold = 0;
		} else {
			item->untold++;
		}
	} else {
		item->untold++;
	}
	verdict.too_many = ++item->count > FAILURES_PER_MINUTE;
	return verdict;
}
