/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/clock.h>

#include <time.h>

static outbox_time read_clock(clockid_t id)
{
	struct timespec now = { 0 };

	clock_gettime(id, &now);
	return (outbox_time)now.tv_sec * OUTBOX_SECONDS + now.tv_nsec / 1000;
}

static outbox_time system_wall(struct outbox_clock *clock)
{
	(void)clock;
	return read_clock(CLOCK_REALTIME);
}

/* BOOTTIME goes on while the machine sleeps: a lease must not outlive a closed lid. */
static outbox_time system_mono(struct outbox_clock *clock)
{
	(void)clock;
	return read_clock(CLOCK_BOOTTIME);
}

struct outbox_clock *outbox_clock_system(void)
{
	static struct outbox_clock clock = { system_wall, system_mono };

	return &clock;
}
