/* SPDX-License-Identifier: Apache-2.0 */

/* bench WHAT DATABASE OUTBOX [quick]: one benchmark on a database that `outbox init` made. */

#include "bench.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const struct sizes full = { 7, 100000, 1000000, 20 };
	static const struct sizes quick = { 3, 20000, 100000, 3 };
	const struct sizes *sizes = argc > 4 && strcmp(argv[4], "quick") == 0 ? &quick : &full;

	if (argc < 4) {
		fprintf(stderr,
			"usage: bench publish|drain|memory|idle|start DATABASE OUTBOX [quick]\n");
		return 2;
	}
	if (strcmp(argv[1], "publish") == 0)
		bench_publish(argv[2], sizes);
	else if (strcmp(argv[1], "drain") == 0)
		bench_drain(argv[2], sizes);
	else if (strcmp(argv[1], "memory") == 0)
		bench_memory(argv[2], argv[3], sizes);
	else if (strcmp(argv[1], "idle") == 0)
		bench_idle(argv[2], argv[3], sizes);
	else if (strcmp(argv[1], "start") == 0)
		bench_start(argv[2], argv[3]);
	else
		die(argv[1], "there are: publish, drain, memory, idle, start");
	return 0;
}
