/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* The system's clock, for code that is not handed one. */

#include <outbox/clock.h>

static inline outbox_time mono_now(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
}

static inline outbox_time wall_now(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->wall(clock);
}

#endif
