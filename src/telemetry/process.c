/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "telemetry/metrics_process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The second number of /proc/self/statm: pages in memory. */
static int64_t resident(void)
{
	char line[200] = "", *number = NULL, *rest = line;
	FILE *file = fopen("/proc/self/statm", "re");
	int64_t pages;

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file)) {
		strsep(&rest, " ");
		number = strsep(&rest, " ");
	}
	fclose(file);
	if (!number || number_parse("pages", number, 0, INT64_MAX / 65536, &pages, NULL))
		return -1;
	return pages * sysconf(_SC_PAGESIZE);
}

static int64_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	int64_t n = 0;

	if (!folder)
		return -1;
	while ((entry = readdir(folder)))
		n += entry->d_name[0] != '.';
	closedir(folder);
	return n - 1; /* this folder itself */
}

static int64_t microseconds(const struct timeval *time)
{
	return (int64_t)time->tv_sec * OUTBOX_SECONDS + time->tv_usec;
}

void process_look(struct process_use *ret_use)
{
	struct rusage usage;
	struct rlimit files;

	*ret_use = (struct process_use){
		.resident = resident(), .open_files = open_files(), .cpu = -1, .max_files = -1
	};
	if (!getrusage(RUSAGE_SELF, &usage))
		ret_use->cpu = microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime);
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur != RLIM_INFINITY)
		ret_use->max_files = (int64_t)files.rlim_cur;
}
