/* SPDX-License-Identifier: Apache-2.0 */

#include "frozen_clock.h"

#include "base/cleanup.h"

#include <stdatomic.h>
#include <stddef.h>

/* Not 0, so that code which takes a monotonic time for a wall time or for "unset" is found. */
#define MONO_START OUTBOX_HOURS

static outbox_time frozen_wall(struct outbox_clock *base)
{
	struct frozen_clock *clock = container_of(base, struct frozen_clock, base);

	return atomic_load(&clock->wall);
}

static outbox_time frozen_mono(struct outbox_clock *base)
{
	struct frozen_clock *clock = container_of(base, struct frozen_clock, base);

	return atomic_load(&clock->mono);
}

void frozen_clock_init(struct frozen_clock *clock, outbox_time wall)
{
	clock->base = (struct outbox_clock){ frozen_wall, frozen_mono };
	atomic_init(&clock->wall, wall);
	atomic_init(&clock->mono, MONO_START);
}

void frozen_clock_step(struct frozen_clock *clock, outbox_time step)
{
	atomic_fetch_add(&clock->wall, step);
	atomic_fetch_add(&clock->mono, step);
}

void frozen_clock_jump(struct frozen_clock *clock, outbox_time jump)
{
	atomic_fetch_add(&clock->wall, jump);
}
