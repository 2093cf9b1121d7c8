/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench-postgres OUTBOX FOLDER [quick|full|huge] [WHAT...]: on the server that tests/support/with-postgres
 * has started. FOLDER is that of the pgbench scripts.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	void (*run)(const struct bench *bench);
} benches[] = { { "drain", bench_drain },         { "publish", bench_publish },
		{ "publisher", bench_publisher }, { "latency", bench_latency },
		{ "idle", bench_idle },           { "call", bench_call },
		{ "scale", bench_scale },         { "trouble", bench_trouble } };

static const struct sizes full = { .repeats = 5,
				   .drain_messages = 200000,
				   .peer_messages = 100000,
				   .publish_repeats = 7,
				   .publish_seconds = 2,
				   .latency_seconds = 10,
				   .idle_messages = 20,
				   .idle_pause = 2000,
				   .idle_seconds = 15,
				   .calls = 400,
				   .scale = { 10000, 1000000 },
				   .trouble = { 20000, 100000 } };
static const struct sizes quick = { .repeats = 3,
				    .drain_messages = 20000,
				    .peer_messages = 10000,
				    .publish_repeats = 1,
				    .publish_seconds = 1,
				    .latency_seconds = 2,
				    .idle_messages = 6,
				    .idle_pause = 300,
				    .idle_seconds = 3,
				    .calls = 100,
				    .scale = { 10000 },
				    .trouble = { 20000 } };

static bool wanted(int argc, char **argv, const char *name)
{
	for (int i = 4; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc <= 4;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die(name, "is not set; run me by tests/support/with-postgres");
	return value;
}

int main(int argc, char **argv)
{
	struct bench bench = { .sizes = full };
	char server[200];

	if (argc < 3) {
		fprintf(stderr, "usage: bench-postgres OUTBOX FOLDER [quick|full|huge] [WHAT...]\n");
		return 2;
	}
	snprintf(server, sizeof(server), "postgres://%s@%s:%s", environment("PGUSER"),
		 environment("PGHOST"), environment("PGPORT"));
	bench.server = server;
	bench.outbox = argv[1];
	bench.here = argv[2];
	bench.data = environment("PGDATA");
	bench.bin = environment("PG_BIN");
	if (argc > 3 && strcmp(argv[3], "quick") == 0)
		bench.sizes = quick;
	if (argc > 3 && strcmp(argv[3], "huge") == 0)
		bench.sizes.scale[2] = 5000000;
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
		if (wanted(argc, argv, benches[i].name))
			benches[i].run(&bench);
	return 0;
}
