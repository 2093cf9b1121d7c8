/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict order with few keys. A bare loop that is to keep it has one message of each key on the way and waits for the
 * answers; so does our relay, except with brokers whose driver keeps order by itself. For these the bare loop without
 * order is the limit, too.
 */

#include "passes.h"

#include <stdio.h>

#define SECONDS 2 /* the bare loop in rounds should take */

/* With one key, brokers differ by a factor of hundred. */
static int count_messages(const struct bench *bench, const struct broker *broker, int keys)
{
	double rate = publish_pass(broker, 2 * BATCH, (size_t)keys);
	int n = (int)(rate * SECONDS) / BATCH * BATCH, most = bench->sizes.drain_messages;

	return n > most ? most : n < 4 * BATCH ? 4 * BATCH : n;
}

static void measure_keys(const struct bench *bench, const struct broker *broker, int keys, int lanes)
{
	struct series ours = { 0 }, rounds = { 0 }, whole = { 0 }, to_rounds = { 0 },
		      to_whole = { 0 };
	int n = count_messages(bench, broker, keys);
	struct origin origin;
	struct place place;
	char name[60], what[60];

	snprintf(name, sizeof(name), "%s_%d_%d", broker->ops->name, keys, lanes);
	place_make(&place, bench, name, lanes);
	place_fill_keys(&place, n, keys);
	origin = origin_at(&place);
	for (int i = 0; i < bench->sizes.repeats; i++) {
		double mine = relay_pass(&origin, broker, n).rate;
		double theirs = bare_pass(&origin, broker, n, (size_t)keys).rate;
		double all = bare_pass(&origin, broker, n, 0).rate;

		series_add(&ours, mine);
		series_add(&rounds, theirs);
		series_add(&whole, all);
		series_add(&to_rounds, mine / theirs);
		series_add(&to_whole, mine / all);
	}
	place_end(&place);
	snprintf(name, sizeof(name), "few keys to %s", broker->ops->name);
	snprintf(what, sizeof(what), "%d key%s, %d lane%s", keys, keys > 1 ? "s" : "", lanes,
		 lanes > 1 ? "s" : "");
	report(&(struct line){ .bench = name,
			       .what = what,
			       .ours = series_median(&ours),
			       .beside = series_median(&rounds),
			       .beside_what = "bare loop in the same order",
			       .value = series_median(&to_rounds),
			       .unit = "x",
			       .want = AT_LEAST,
			       .wanted = 0.8 });
	report(&(struct line){ .bench = name,
			       .what = what,
			       .ours = series_median(&ours),
			       .beside = series_median(&whole),
			       .beside_what = "bare loop without order",
			       .value = series_median(&to_whole),
			       .unit = "x" });
}

void measure_few(const struct bench *bench, const struct broker *broker)
{
	for (int lanes = 1; lanes <= 4; lanes += 3)
		for (int keys = 1; keys <= 20; keys += 19)
			measure_keys(bench, broker, keys, lanes);
}
