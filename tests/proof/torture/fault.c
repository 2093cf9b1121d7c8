/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <errno.h>

static struct {
	struct fault_plan plan;
	bool on, fired;
	long points;
} fault;

void fault_plan(const struct fault_plan *plan)
{
	fault.plan = *plan;
	fault.on = fault.fired = false;
	fault.points = 0;
}

void fault_on(void)
{
	fault.on = true;
}

void fault_off(void)
{
	fault.on = false;
}

bool fault_pause(void)
{
	bool was_on = fault.on;

	fault.on = false;
	return was_on;
}

void fault_resume(bool was_on)
{
	fault.on = was_on;
}

long fault_points(void)
{
	return fault.points;
}

bool fault_fired(void)
{
	return fault.fired;
}

enum fault_flavour fault_flavour(void)
{
	return fault.plan.flavour;
}

static bool point(enum fault_kind kind)
{
	bool fails;

	if (!fault.on || fault.plan.kind != kind)
		return false;
	fault.points++;
	fails = fault.plan.at > 0 && (fault.plan.persistent ? fault.points >= fault.plan.at
							    : fault.points == fault.plan.at);
	fault.fired |= fails;
	return fails;
}

bool fault_memory(void)
{
	return point(FAULT_MEMORY);
}

bool fault_io(bool writes)
{
	return (writes || fault.plan.flavour == FAULT_BROKEN) && point(FAULT_IO);
}

bool fault_errno(bool writes)
{
	if (!fault_io(writes))
		return false;
	errno = fault.plan.flavour == FAULT_FULL ? ENOSPC : EIO;
	return true;
}
