/* SPDX-License-Identifier: Apache-2.0 */
#include "http/auth_limit.h"

#include <string.h>

/* This address's place, or the one that was quiet for longest. */
static struct auth_failure *find_address(struct auth_limit *auth_limit,
					 const unsigned char key[ADDRESS_KEY])
{
	struct auth_failure *oldest = &auth_limit->items[0];

	for (size_t i = 0; i < FAILURES_ADDRESSES; i++) {
		struct auth_failure *item = &auth_limit->items[i];

		if (item->since && memcmp(item->key, key, ADDRESS_KEY) == 0)
			return item;
		if (item->since < oldest->since)
			oldest = item;
	}
	auth_limit->untold += oldest->untold;
	*oldest = (struct auth_failure){ .count = 0 };
	memcpy(oldest->key, key, ADDRESS_KEY);
	return oldest;
}

/* One line less for this minute; false: there is none left. */
static bool may_tell(struct auth_limit *auth_limit, outbox_time now)
{
	if (!auth_limit->since || now - auth_limit->since >= OUTBOX_MINUTES) {
		auth_limit->since = now > 0 ? now : 1;
		auth_limit->lines = 0;
	}
	return auth_limit->lines++ < FAILURES_LINES;
}

struct auth_verdict auth_limit_note(struct auth_limit *auth_limit,
				    const unsigned char key[ADDRESS_KEY], outbox_time now)
{
	struct auth_failure *item = find_address(auth_limit, key);
	bool first = !item->since || now - item->since >= OUTBOX_MINUTES; /* of a minute */
	struct auth_verdict verdict = { .tell = first && may_tell(auth_limit, now) };

	if (first) {
		item->since = now > 0 ? now : 1;
		item->count = 0;
	}
	if (verdict.tell) {
		verdict.untold = item->untold;
		verdict.elsewhere = auth_limit->untold;
		item->untold = auth_limit->untold = 0;
	} else {
		item->untold++;
	}
	verdict.too_many = ++item->count > FAILURES_PER_MINUTE;
	return verdict;
}
