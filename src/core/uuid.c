/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/message.h>

#include <inttypes.h>
#include <stdio.h>

/*
 * UUIDv7 (RFC 9562): 48 bits of milliseconds, then 12 bits with the fraction of that millisecond
 * (method 3), then 62 random bits. Ids of one process sort by time, to the microsecond; ids of the same
 * microsecond sort at random, and the log has its own order anyway.
 */
void outbox_uuid(struct outbox_clock *clock, struct outbox_random *random, char ret_text[37])
{
	outbox_time now = clock->wall(clock);
	uint64_t wall = now < 0 ? 0 : (uint64_t)now;
	uint64_t high, low;

	high = (wall / 1000) << 16 | UINT64_C(7) << 12 | (wall % 1000) * 4096 / 1000;
	low = (random->next(random) >> 2) | UINT64_C(1) << 63;
	snprintf(ret_text, 37,
		 "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
		 high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
}
