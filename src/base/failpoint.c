/* SPDX-License-Identifier: Apache-2.0 */

/* Test builds only. The environment is read at every pass, so a test may set it late. */

#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_FAILPOINT 86

/* A failpoint that is misspelt would make its test pass without testing anything. */
static void misspelt(const char *spec)
{
	fprintf(stderr, "OUTBOX_FAILPOINT: \"%s\" is not NAME:kill|stop|exit[:N]\n", spec);
	abort();
}

static void act(const char *action, size_t length, const char *spec)
{
	if (length == 4 && memcmp(action, "kill", 4) == 0)
		raise(SIGKILL);
	else if (length == 4 && memcmp(action, "stop", 4) == 0)
		raise(SIGSTOP);
	else if (length == 4 && memcmp(action, "exit", 4) == 0)
		_exit(EXIT_FAILPOINT);
	else
		misspelt(spec);
}

void failpoint(const char *name)
{
	static atomic_ulong passes;
	const char *spec = getenv("OUTBOX_FAILPOINT");
	const char *action;
	size_t length;
	unsigned long wanted = 1;

	if (!spec || !*spec)
		return;
	action = strchr(spec, ':');
	if (!action)
		misspelt(spec);
	length = (size_t)(action - spec);
	if (strlen(name) != length || memcmp(name, spec, length) != 0)
		return;
	action++;
	length = strcspn(action, ":");
	if (action[length]) {
		char *end;

		wanted = strtoul(action + length + 1, &end, 10);
		if (*end || wanted == 0)
			misspelt(spec);
	}
	if (atomic_fetch_add(&passes, 1) + 1 == wanted)
		act(action, length, spec);
}
