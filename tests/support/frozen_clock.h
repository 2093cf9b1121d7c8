/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FROZEN_CLOCK_H
#define FROZEN_CLOCK_H

/* A clock that stands still until it is stepped: tests and the simulator own time with it. */

#include <outbox/clock.h>

struct frozen_clock {
	struct outbox_clock base;
	_Atomic outbox_time wall;
	_Atomic outbox_time mono;
};

void frozen_clock_init(struct frozen_clock *clock, outbox_time wall);
/* Both clocks go on by step. */
void frozen_clock_step(struct frozen_clock *clock, outbox_time step);
/* Only the wall clock jumps, as NTP or an operator would make it. */
void frozen_clock_jump(struct frozen_clock *clock, outbox_time jump);

#endif
