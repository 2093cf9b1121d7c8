/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRONG_SHOWN 20
#define POINTS_MAX 200000

static struct {
	const char *program, *only;
	long only_at, limit;
	const struct scenario *scenario;
	struct fault_plan plan;
	long points, runs, scenarios; /* in all */
	long failed, unknown;         /* calls, in this scenario and kind */
	int wrong;
	FILE *out;
} state;

void torture_limit(long points)
{
	const char *given = getenv("TORTURE_POINTS");

	state.limit = getenv("TORTURE_ALL") ? POINTS_MAX : given ? strtol(given, NULL, 10) : points;
}

void torture_begin(const char *name, int argc, char **argv)
{
	state.program = name;
	state.only = argc > 1 ? argv[1] : NULL;
	state.only_at = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	state.limit = POINTS_MAX;
	state.out = stderr; /* standard output belongs to a transport */
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
	memory_install_jansson();
}

bool torture_reference(void)
{
	return state.plan.at == 0;
}

bool torture_persistent(void)
{
	return state.plan.persistent;
}

void torture_count_failed(void)
{
	state.failed++;
}

void torture_count_unknown(void)
{
	state.unknown++;
}

static const char *kind_name(const struct fault_plan *plan)
{
	if (plan->kind == FAULT_MEMORY)
		return "memory";
	return plan->flavour == FAULT_FULL ? "full/busy" : "io";
}

void torture_wrong(const char *format, ...)
{
	va_list args;

	if (state.wrong++ >= WRONG_SHOWN)
		return;
	fprintf(state.out, "WRONG  %s, %s %ld, %s: ", state.scenario ? state.scenario->name : "-",
		kind_name(&state.plan), state.plan.at,
		state.plan.persistent ? "from there on" : "once");
	va_start(args, format);
	vfprintf(state.out, format, args);
	va_end(args);
	fputc('\n', state.out);
}

/* Out of memory is said so; a broken disk is nobody's mistake and no matter of data. */
static bool status_fits(int status)
{
	if (state.plan.kind == FAULT_MEMORY)
		return status == OUTBOX_ENOMEM;
	if (state.plan.flavour == FAULT_FULL)
		return status == OUTBOX_EFULL || status == OUTBOX_EBUSY;
	return status == OUTBOX_ECONN;
}

void torture_check_error(int status, const struct outbox_error *err)
{
	state.failed++;
	if (torture_reference()) {
		torture_wrong("failed without a fault: %s", err->message);
		return;
	}
	if (!fault_fired())
		torture_wrong("failed although no fault was met: %s", err->message);
	if (err->status != status)
		torture_wrong("returned %s but err says %s: %s", outbox_status_name(status),
			      outbox_status_name(err->status), err->message);
	if (!status_fits(status))
		torture_wrong("is called \"%s\": %s", outbox_status_name(status), err->message);
	if (strlen(err->message) < strlen("out of memory") || strchr(err->message, '\n') ||
	    strstr(err->message, "(null)") || strstr(err->message, "not an error"))
		torture_wrong("no clear message: \"%s\"", err->message);
}

void torture_check_answer(int status, const struct outbox_error *err, const char *said, char **wanted)
{
	if (status != OUTBOX_OK)
		torture_check_error(status, err);
	else if (err->message[0])
		torture_wrong("wrote an error and succeeded: %s", err->message);
	else if (!*wanted)
		*wanted = strdup(said);
	else if (strcmp(said, *wanted) != 0)
		torture_wrong("a wrong answer: %.100s", said);
}

/* The lowest descriptor that is free: higher after a run than before it, and one was leaked. */
static int lowest_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void run_once(void)
{
	long live = memory_live();
	int fd = lowest_fd();

	fault_plan(&state.plan);
	state.scenario->run(state.scenario->context);
	fault_off();
	state.runs++;
	if (memory_live() != live)
		torture_wrong("%ld blocks leaked", memory_live() - live);
	if (lowest_fd() != fd)
		torture_wrong("a file descriptor leaked");
}

/*
 * N = 1, 2, ... until the scenario passes untouched. The reference has counted the points: where there
 * are too many, the first ones and then every stride-th are taken, and the line printed says so. Faults
 * that go on (or that are met with and got over) may lead to more points than the reference has.
 */
static void run_mode(long total, long minimum)
{
	bool all = state.only_at != 0;
	long stride = all || total <= state.limit ? 1 : (total + state.limit - 1) / state.limit;
	long taken = 0, at;

	state.failed = state.unknown = 0;
	for (at = state.only_at ? state.only_at : 1; at <= POINTS_MAX; at += stride) {
		state.plan.at = at;
		run_once();
		if (!fault_fired())
			break;
		taken++;
		if (state.only_at)
			break;
	}
	if (at > POINTS_MAX)
		torture_wrong("never passes untouched");
	state.points += taken;
	fprintf(state.out, "%-30s %-9s %-10s %5ld points, %4ld taken, %4ld failed, %ld unknown",
		state.scenario->name, kind_name(&state.plan),
		state.plan.persistent ? "persistent" : "once", total, taken, state.failed,
		state.unknown);
	if (stride > 1)
		fprintf(state.out, " (every %ld.)", stride);
	fputc('\n', state.out);
	if ((total < minimum || taken * stride < minimum) && !state.only_at)
		torture_wrong("an empty proof: %ld points, at least %ld expected", total, minimum);
}

static void run_kind(enum fault_kind kind, enum fault_flavour flavour, long minimum)
{
	long total;

	for (int persistent = 0; persistent < 2; persistent++) {
		state.plan = (struct fault_plan){ kind, flavour, persistent != 0, 0 };
		run_once(); /* without a fault: the reference, and how many points there are */
		total = fault_points();
		run_mode(total, minimum);
	}
}

bool torture_wanted(const char *name)
{
	return !state.only || strcmp(state.only, name) == 0;
}

void torture(const struct scenario *scenario)
{
	if (!torture_wanted(scenario->name))
		return;
	state.scenario = scenario;
	state.scenarios++;
	/* Twice: what the world allocates once and keeps is no leak. */
	state.plan = (struct fault_plan){ FAULT_MEMORY, FAULT_BROKEN, false, 0 };
	fault_plan(&state.plan);
	scenario->run(scenario->context);
	if (scenario->memory_min)
		run_kind(FAULT_MEMORY, FAULT_BROKEN, scenario->memory_min);
	if (scenario->io_min) {
		run_kind(FAULT_IO, FAULT_BROKEN, scenario->io_min);
		run_kind(FAULT_IO, FAULT_FULL, 0);
	}
}

int torture_end(void)
{
	fprintf(state.out, "%s: %ld scenarios, %ld points, %ld runs, %d wrong\n", state.program,
		state.scenarios, state.points, state.runs, state.wrong);
	return state.wrong || !state.scenarios ? EXIT_FAILURE : EXIT_SUCCESS;
}
