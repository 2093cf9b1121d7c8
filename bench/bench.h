/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/*
 * Each benchmark measures ours and the raw limit in turn (A B B A ...), because the machine is noisy,
 * and reports the medians. One JSON object a line on standard output.
 */

#include "sqlite.h"

struct sizes {
	int repeats;
	int drain_messages;  /* in the log that is drained again and again */
	int memory_messages; /* in the log of the memory measurement */
	int idle_seconds;
};

/* ---- common.c ------------------------------------------------------------------------------ */

void report(const char *bench, const char *what, int batch, const struct series *ours,
	    const struct series *raw);

/* ---- the benchmarks ------------------------------------------------------------------------ */

void bench_publish(const char *path, const struct sizes *sizes);
void bench_drain(const char *path, const struct sizes *sizes);
void bench_memory(const char *path, const char *outbox, const struct sizes *sizes);
void bench_idle(const char *path, const char *outbox, const struct sizes *sizes);
void bench_start(const char *path, const char *outbox);

#endif
