/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

/* What every benchmark needs: a clock, medians, and the payload that every message has. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define REPEATS_MAX 101

struct series {
	size_t count;
	double values[REPEATS_MAX];
};

double now_seconds(void);
void series_add(struct series *series, double value);
double series_median(const struct series *series);
void die(const char *what, const char *why) __attribute__((noreturn));

/* Peak resident set in KiB so far, or 0 when the process is gone. */
long peak_kib(pid_t pid);

/* 300 bytes of JSON. */
const char *payload(void);

#endif
