/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_DRIVE_H
#define TORTURE_DRIVE_H

/* Runs a scenario with a fault at every point, and counts what was hit. */

#include "fault.h"

#include <outbox/error.h>

struct scenario {
	const char *name;
	/* One run: make a world, fault_on() around what is tortured, fault_off(), check. */
	void (*run)(void *context);
	void *context;
	/* Fewer points than these are an empty proof. 0: this kind is not run */
	long memory_min, io_min;
};

/* --wrap'ed names and their like are set up here. argv: [scenario [point]]. */
void torture_begin(const char *name, int argc, char **argv);

/* Of more points than these, take only every second, third ...: runs that cost much must not take
 * minutes. TORTURE_ALL=1 in the environment takes them all. */
void torture_limit(long points);

/* Was this scenario asked for? */
bool torture_wanted(const char *name);

/* Every kind, flavour and mode of a scenario that was asked for. */
void torture(const struct scenario *scenario);

/* Say what is wrong in this run. The run goes on; the program fails in the end. */
void torture_wrong(const char *format, ...) OUTBOX_PRINTF(1, 2);

/* A failure is one: a status that fits a fault, the same in err, a message for people. */
void torture_check_error(int status, const struct outbox_error *err);

/* The answer is a failure as above, or what was said with memory enough: kept in *wanted, which is freed by you. */
void torture_check_answer(int status, const struct outbox_error *err, const char *said,
			  char **wanted);

/* Did this run's plan have a fault at all? The first run of a scenario has none: the reference. */
bool torture_reference(void);
bool torture_persistent(void);
void torture_count_failed(void);
void torture_count_unknown(void);

/* Write the sum; the exit status. */
int torture_end(void);

#endif
