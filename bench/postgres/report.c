/* SPDX-License-Identifier: Apache-2.0 */

#include "bench.h"

#include <stdio.h>

static const char *judge(const struct line *line)
{
	if (line->want == AT_LEAST)
		return line->value >= line->wanted ? "ok" : "BELOW";
	if (line->want == AT_MOST)
		return line->value <= line->wanted ? "ok" : "BELOW";
	return "";
}

void report(const struct line *line)
{
	static const char *const signs[] = { "", ">=", "<=" };

	printf("{\"bench\":\"%s\",\"what\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", line->bench,
	       line->what, line->value, line->unit);
	if (line->ours > 0)
		printf(",\"ours\":%.6g", line->ours);
	if (line->beside_what)
		printf(",\"beside\":%.6g,\"beside_what\":\"%s\"", line->beside, line->beside_what);
	if (line->want != WANT_NOTHING)
		printf(",\"wanted\":\"%s %.3g\",\"verdict\":\"%s\"", signs[line->want],
		       line->wanted, judge(line));
	printf("}\n");
	fflush(stdout);
}

void report_ratio(const char *bench, const char *what, const struct series *ours,
		  const char *beside_what, const struct series *beside, double wanted)
{
	double mine = series_median(ours), other = series_median(beside);

	report(&(struct line){ .bench = bench,
			       .what = what,
			       .ours = mine,
			       .beside = other,
			       .beside_what = beside_what,
			       .value = other > 0 ? mine / other : 0,
			       .unit = "x",
			       .want = wanted > 0 ? AT_LEAST : WANT_NOTHING,
			       .wanted = wanted });
}
