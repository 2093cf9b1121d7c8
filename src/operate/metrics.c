/* SPDX-License-Identifier: Apache-2.0 */
/* The text that Prometheus reads. A family without points is left out. */
#include "operate/metrics.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Microseconds as seconds, exactly and without zeros at the end. */
static void write_seconds(struct buf *out, int64_t value)
{
	char text[40];
	size_t length;

	snprintf(text, sizeof(text), "%s%" PRIu64 ".%06" PRIu64, value < 0 ? "-" : "",
		 (value < 0 ? 0 - (uint64_t)value : (uint64_t)value) / 1000000,
		 (value < 0 ? 0 - (uint64_t)value : (uint64_t)value) % 1000000);
	length = strlen(text);
	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	buf_append(out, text, length);
}

static void write_number(struct buf *out, int64_t value, bool seconds)
{
	if (seconds)
		write_seconds(out, value);
	else
		buf_printf(out, "%" PRId64, value);
}

void metric_escape(const char *text, struct buf *out)
{
	bool valid = utf8_valid(text, strlen(text));

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			buf_text(out, "\\n");
		else if (c < ' ' || c == 0x7f || (c >= 0x80 && !valid))
			buf_char(out, '?');
		else if (c == '\\' || c == '"')
			buf_append(out, (const char[]){ '\\', *text }, 2);
		else
			buf_char(out, *text);
	}
}

/* {a="x",b="y",le="5"}; le NULL: none. */
static void write_labels(struct buf *out, const struct metric_point *p, const char *le)
{
	const char *between = "{";

	for (size_t i = 0; i < p->n_labels; i++) {
		buf_printf(out, "%s%s=\"", between, p->labels[i].name);
		metric_escape(p->labels[i].value, out);
		buf_char(out, '"');
		between = ",";
	}
	if (le)
		buf_printf(out, "%sle=\"%s\"", between, le);
	if (le || p->n_labels)
		buf_char(out, '}');
}

static void write_histogram(struct buf *out, const struct metric_family *family,
			    const struct metric_point *p)
{
	bool seconds = metric_in_seconds(family);
	uint64_t below = 0;

	for (size_t i = 0; i <= p->bounds->count; i++) {
		struct buf le = BUF_INIT(64);

		if (i == p->bounds->count)
			buf_text(&le, "+Inf");
		else
			write_number(&le, p->bounds->bounds[i], seconds);
		below += p->histogram->buckets[i];
		buf_printf(out, "%s_bucket", family->name);
		write_labels(out, p, buf_str(&le));
		buf_printf(out, " %" PRIu64 "\n", below);
		buf_deinit(&le);
	}
	buf_printf(out, "%s_sum", family->name);
	write_labels(out, p, NULL);
	buf_char(out, ' ');
	write_number(out, p->histogram->sum, seconds);
	buf_printf(out, "\n%s_count", family->name);
	write_labels(out, p, NULL);
	buf_printf(out, " %" PRIu64 "\n", p->histogram->count);
}

static void write_point(void *context, const struct metric_family *family,
			const struct metric_point *p)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
	};
	struct metric_text *text = context;

	if (text->said != family) {
		buf_printf(text->out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help,
			   family->name, types[family->type]);
		text->said = family;
	}
	if (family->type == METRIC_HISTOGRAM) {
		write_histogram(text->out, family, p);
		return;
	}
	buf_text(text->out, family->name);
	write_labels(text->out, p, NULL);
	buf_char(text->out, ' ');
	write_number(text->out, p->value, metric_in_seconds(family));
	buf_char(text->out, '\n');
}

struct metric_sink metric_text_sink(struct metric_text *text)
{
	return (struct metric_sink){ .context = text, .point = write_point };
}
