/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/metrics_process.h"

#include "operate/metrics_parts.h"
#include "telemetry/otlp.h"

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
					  limit = { "process_max_fds", "How many it may have open",
						    METRIC_GAUGE, "{file}" };
	struct process_use use;

	process_look(&use);
	metric_alone(sink, &resident, use.resident);
	metric_alone(sink, &cpu, use.cpu);
	metric_alone(sink, &files, use.open_files);
	metric_alone(sink, &limit, use.max_files);
}

/* Only where something is exported. */
static void walk_otlp(const struct metric_sink *sink)
{
	static const struct metric_family spans = { "outbox_otlp_spans_total",
						    "Spans sent to the collector, or dropped",
						    METRIC_COUNTER, "{span}" },
					  failures = { "outbox_otlp_failures_total",
						       "Requests that the collector did not take",
						       METRIC_COUNTER, "{request}" };
	struct metric_point p = { 0 };
	struct otlp_counts counts;

	if (!otlp_look(&counts))
		return;
	sink->family(sink->context, &spans);
	metric_add_label(&p, "result", "sent");
	p.value = (int64_t)counts.sent;
	metric_say(sink, &spans, &p);
	p.labels[0].value = "dropped";
	p.value = (int64_t)counts.dropped;
	metric_say(sink, &spans, &p);
	metric_alone(sink, &failures, (int64_t)counts.failures);
}

void metrics_walk_all(const struct watch_sample *sample, const struct metric_sink *sink)
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

void metrics_write(const struct watch_sample *sample, struct buf *out)
{
	struct metric_text text = { .out = out };
	struct metric_sink sink = metric_text_sink(&text);

	metrics_walk_all(sample, &sink);
}
