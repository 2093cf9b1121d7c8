/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The harness without libFuzzer: replay FILE-OR-FOLDER... runs every file as it is, then each of its
 * beginnings (up to 256 of them), which reaches most of the paths for input that ends too early.
 * A harness whose corpus is empty proves nothing: that fails.
 */

#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1 << 20)
#define BEGINNINGS_MAX 256

static size_t n_files, n_runs;

/* In memory of just its size, so that a sanitizer sees a byte too far. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	CHECK(copy);
	memcpy(copy, data, size);
	CHECK(LLVMFuzzerTestOneInput(copy, size) == 0);
	free(copy);
	n_runs++;
}

static void replay_file(const char *path)
{
	uint8_t *data = malloc(FILE_MAX);
	FILE *file = fopen(path, "rb");
	size_t size, step, i;

	CHECK(data && file);
	size = fread(data, 1, FILE_MAX, file);
	fclose(file);
	fprintf(stderr, "%s\n", path); /* the last one told is the one that crashed */
	run(data, size);
	step = size / BEGINNINGS_MAX + 1;
	for (i = 0; i < size; i += step)
		run(data, i);
	free(data);
	n_files++;
}

static void replay(const char *path)
{
	struct dirent **entries;
	char inside[4096];
	struct stat st;
	int n;

	if (stat(path, &st) != 0) {
		fprintf(stderr, "%s: is not there\n", path);
		exit(1);
	}
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	n = scandir(path, &entries, NULL, alphasort);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		snprintf(inside, sizeof(inside), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			replay_file(inside);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%zu files, %zu runs\n", n_files, n_runs);
	return n_files ? 0 : 1;
}
