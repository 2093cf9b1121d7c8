/* SPDX-License-Identifier: Apache-2.0 */

/* Compiled with failpoint.c itself, whatever the build's option says. */

#include "base/unit_test.h"

#include "base/failpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What becomes of a child that passes other, name, other, name ... rounds times. */
static int run(const char *spec, int rounds)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* A misspelt one says so and aborts: keep that out of the test's output. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(99);
		if (spec)
			setenv("OUTBOX_FAILPOINT", spec, 1);
		else
			unsetenv("OUTBOX_FAILPOINT");
		for (int i = 0; i < rounds; i++) {
			failpoint("other");
			failpoint("name");
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	return status;
}

static void nothing_happens_unasked(void **state)
{
	(void)state;
	assert_int_equal(run(NULL, 3), 0);
	assert_int_equal(run("", 3), 0);
	assert_int_equal(run("nam:kill", 3), 0);
	assert_int_equal(run("names:kill", 3), 0);
}

static void kills_stops_and_leaves(void **state)
{
	int status;

	(void)state;
	status = run("name:kill", 1);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = run("name:stop", 1);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	status = run("name:exit", 1);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 86);
}

static void counts_passes(void **state)
{
	int status;

	(void)state;
	assert_int_equal(run("name:exit:3", 2), 0);
	status = run("name:exit:3", 3);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 86);
}

static void a_misspelt_one_is_loud(void **state)
{
	static const char *const bad[] = { "name",       "name:",       "name:die",
					   "name:kill:", "name:kill:0", "name:kill:x" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int status = run(bad[i], 1);

		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happens_unasked),
		cmocka_unit_test(kills_stops_and_leaves),
		cmocka_unit_test(counts_passes),
		cmocka_unit_test(a_misspelt_one_is_loud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
