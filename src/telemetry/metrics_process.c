/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/metrics_process.h"

#include "base/text.h"
#include "operate/metrics.h"
#include "telemetry/otlp.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The second number of /proc/self/statm: pages in memory. */
static int64_t read_resident(void)
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

static int64_t count_open_files(void)
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

static int64_t read_cpu(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return -1;
	return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * OUTBOX_SECONDS +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int64_t read_file_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY)
		return -1;
	return (int64_t)files.rlim_cur;
}

/* What the process itself uses, where the system says so. */
static void walk_process(const struct metric_sink *sink)
{
	static const struct metric_family resident = { "process_resident_memory_bytes",
						       "Memory of this process", METRIC_GAUGE,
						       "By" },
					  cpu = { "process_cpu_seconds_total",
						  "CPU time of this process", METRIC_COUNTER, "s" },
					  files = { "process_open_fds",
						    "Files and sockets that it has open",
						    METRIC_GAUGE, "{file}" },
					  limit = { "process_max_fds",
						    "Limit of open files and sockets", METRIC_GAUGE,
						    "{file}" };

	metric_alone(sink, &resident, read_resident());
	metric_alone(sink, &cpu, read_cpu());
	metric_alone(sink, &files, count_open_files());
	metric_alone(sink, &limit, read_file_limit());
}

/* Only where something is exported. */
static void walk_otlp(const struct metric_sink *sink)
{
	static const struct metric_family spans = { "outbox_otlp_spans_total",
						    "Spans sent to the collector, or dropped",
						    METRIC_COUNTER, "{span}" },
					  failures = { "outbox_otlp_failures_total",
						       "Requests that the collector did not accept",
						       METRIC_COUNTER, "{request}" };
	struct metric_point p = { 0 };
	struct otlp_counts counts;

	if (!otlp_look(&counts))
		return;
	metric_add_label(&p, "result", "sent");
	p.value = (int64_t)counts.sent;
	metric_say(sink, &spans, &p);
	p.labels[0].value = "dropped";
	p.value = (int64_t)counts.dropped;
	metric_say(sink, &spans, &p);
	metric_alone(sink, &failures, (int64_t)counts.failures);
}

void metrics_walk_all(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family reload = { "outbox_config_last_reload_successful",
						     "0: the last reload was refused, what was "
						     "before still holds",
						     METRIC_GAUGE, "1" };

	metrics_walk(sample, sink);
	metric_alone(sink, &reload, sample->by_file ? !sample->reload_refused : -1);
	walk_otlp(sink);
	walk_process(sink);
}

void metrics_write(const struct sample *sample, struct buf *out)
{
	struct metric_text text = { .out = out };
	struct metric_sink sink = metric_text_sink(&text);

	metrics_walk_all(sample, &sink);
}
