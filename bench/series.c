/* SPDX-License-Identifier: Apache-2.0 */

#include "series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void series_add(struct series *series, double value)
{
	if (series->count < REPEATS_MAX)
		series->values[series->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double series_median(const struct series *series)
{
	struct series sorted = *series;
	size_t middle = series->count / 2;

	if (series->count == 0)
		return 0;
	qsort(sorted.values, sorted.count, sizeof(sorted.values[0]), compare);
	if (series->count % 2)
		return sorted.values[middle];
	return (sorted.values[middle - 1] + sorted.values[middle]) / 2;
}

void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(1);
}

const char *payload(void)
{
	static char text[301];

	if (!text[0]) {
		memset(text, 'x', 300);
		memcpy(text, "{\"order\":1,\"text\":\"", 19);
		memcpy(text + 298, "\"}", 2);
	}
	return text;
}

long peak_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	fclose(file);
	return kib;
}
