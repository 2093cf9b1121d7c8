/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/message.h>

#include <string.h>

/*
 * UUIDv7 (RFC 9562): 48 bits of milliseconds, then 12 bits with the fraction of that millisecond
 * (method 3), then 62 random bits. Ids of one process sort by time down to a quarter of a
 * microsecond; ids of the same microsecond sort at random, and the log has its own order anyway.
 */
void outbox_uuid(struct outbox_clock *clock, struct outbox_random *random, char ret_text[37])
{
	static const char hex[] = "0123456789abcdef";
	outbox_time now = clock->wall(clock);
	uint64_t wall = now < 0 ? 0 : (uint64_t)now;
	uint64_t high, low;
	size_t i, at = 0;

	high = (wall / 1000) << 16 | UINT64_C(7) << 12 | (wall % 1000) * 4096 / 1000;
	low = (random->next(random) >> 2) | UINT64_C(1) << 63;
	for (i = 0; i < 32; i++) {
		uint64_t half = i < 16 ? high : low;

		if (i == 8 || i == 12 || i == 16 || i == 20)
			ret_text[at++] = '-';
		ret_text[at++] = hex[half >> (60 - 4 * (i % 16)) & 15];
	}
	ret_text[at] = '\0';
}
