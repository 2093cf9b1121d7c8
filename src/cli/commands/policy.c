/* SPDX-License-Identifier: Apache-2.0 */
/* policy list, policy show: what the retry presets do, in numbers. */
#include "base/buf.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/policies.h"
#include "cli/table.h"
#include "core/retry.h"

#include <stdio.h>

#define ROWS_MAX 40 /* of a policy that never gives up */

struct delays {
	outbox_time delay[ROWS_MAX];
	size_t count;
	bool endless;
	outbox_time total;
};

static const struct column list_columns[] = {
	{ "POLICY", false, 10 }, { "DELAYS", false, 20 },     { "JITTER", true, 0 },
	{ "TRIES", true, 0 },    { "FAILED AFTER", true, 0 },
};

static const struct column show_columns[] = {
	{ "ATTEMPT", false, 0 },
	{ "DELAY", true, 0 },
	{ "WITH JITTER", false, 0 },
	{ "AFTER THE FIRST", true, 0 },
};

/* Every delay without jitter; a policy without an end is shown until its delays stop growing. */
static void collect(const struct outbox_policy *policy, struct delays *delays)
{
	outbox_time delay, since = 1; /* any time: a budget counts from the first failure */

	*delays = (struct delays){ 0 };
	while (delays->count < ROWS_MAX && retry_delay(policy, (int)delays->count + 1, since,
						       since + delays->total, NULL, &delay)) {
		delays->delay[delays->count++] = delay;
		delays->total += delay;
		delays->endless = policy->max_attempts == 0 && policy->n_schedule == 0 &&
				  policy->budget == 0 && delay == policy->cap;
		if (delays->endless)
			return;
	}
}

static outbox_time spread(const struct outbox_policy *policy, outbox_time delay)
{
	return delay / 100 * policy->jitter_percent;
}

static void summary(const struct outbox_policy *policy, const struct delays *delays, struct buf *out)
{
	char text[DURATION_TEXT_MAX], cap[DURATION_TEXT_MAX];

	if (policy->n_schedule == 0) {
		buf_printf(out, "%s", duration_exact(policy->base, text));
		if (policy->factor == 2)
			buf_text(out, " doubling");
		else
			buf_printf(out, " times %g", policy->factor);
		buf_printf(out, ", at most %s", duration_exact(policy->cap, cap));
		return;
	}
	for (size_t i = 0; i < delays->count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", duration_exact(delays->delay[i], text));
}

static const char *keep_text(outbox_time duration, const char *unset, char out[DURATION_TEXT_MAX])
{
	if (duration == 0)
		return unset;
	return duration == OUTBOX_NEVER ? "forever" : duration_exact(duration, out);
}

static void add_row(struct table *table, const struct outbox_policy *policy)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(2000);
	struct delays delays;
	char total[DURATION_TEXT_MAX];

	collect(policy, &delays);
	summary(policy, &delays, &text);
	table_cell(table, BOLD, policy->name);
	table_cell(table, PLAIN, buf_str(&text));
	table_cellf(table, PLAIN, "%s%d %%", policy->jitter_percent ? "+-" : "",
		    policy->jitter_percent);
	if (delays.endless) {
		table_cell(table, PLAIN, "no limit");
		table_cell(table, PLAIN, "never");
		return;
	}
	table_cellf(table, PLAIN, "%zu", delays.count + 1);
	table_cell(table, PLAIN, duration_exact(delays.total, total));
}

static json_t *keep_json(outbox_time duration)
{
	if (duration == 0)
		return json_null();
	return duration == OUTBOX_NEVER ? json_string("forever") : json_seconds(duration);
}

static json_t *policy_json(const struct outbox_policy *policy)
{
	json_t *list = json_array();
	struct delays delays;

	collect(policy, &delays);
	for (size_t i = 0; i < delays.count; i++) {
		outbox_time delay = delays.delay[i], by = spread(policy, delay);

		json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:o}", "attempt", (int)i + 2,
						      "delay", json_seconds(delay), "min",
						      json_seconds(delay - by), "max",
						      json_seconds(delay + by)));
	}
	return json_pack("{s:o, s:i, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			 json_text(policy->name), "max_attempts", policy->max_attempts, "delays",
			 list, "total", delays.endless ? json_null() : json_seconds(delays.total),
			 "jitter_percent", policy->jitter_percent, "budget",
			 keep_json(policy->budget), "poll", keep_json(policy->poll), "lease",
			 keep_json(policy->lease), "retain_delivered",
			 keep_json(policy->retain_delivered), "retain_failed",
			 keep_json(policy->retain_failed), "purge_interval",
			 keep_json(policy->purge_interval), "batch",
			 policy->batch ? json_integer((json_int_t)policy->batch) : json_null());
}

static int run_list(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(table_deinit) struct table table;
	json_t *list;

	(void)values;
	table_init(&table, cli, list_columns, ARRAY_SIZE(list_columns));
	if (cli->json) {
		list = json_array();
		for (size_t i = 0; outbox_policy_at(i); i++)
			json_array_append_new(list, policy_json(outbox_policy_at(i)));
		return json_print(json_pack("{s:o}", "policies", list), err);
	}
	for (size_t i = 0; outbox_policy_at(i); i++)
		add_row(&table, outbox_policy_at(i));
	table_print(&table, stdout);
	return OUTBOX_OK;
}

static void show_delays(struct cli *cli, const struct outbox_policy *policy,
			const struct delays *delays)
{
	_cleanup_(table_deinit) struct table table;
	char a[DURATION_TEXT_MAX], b[DURATION_TEXT_MAX];
	outbox_time since = 0;

	table_init(&table, cli, show_columns, ARRAY_SIZE(show_columns));
	table_cell(&table, PLAIN, "1");
	table_cell(&table, PLAIN, "at once");
	table_cell(&table, PLAIN, NULL);
	table_cell(&table, PLAIN, "0s");
	for (size_t i = 0; i < delays->count; i++) {
		outbox_time delay = delays->delay[i], by = spread(policy, delay);

		since += delay;
		table_cellf(&table, PLAIN, "%zu", i + 2);
		table_cell(&table, BOLD, duration_exact(delay, a));
		if (by)
			table_cellf(&table, PLAIN, "%s to %s", duration_exact(delay - by, a),
				    duration_exact(delay + by, b));
		else
			table_cell(&table, PLAIN, NULL);
		table_cell(&table, PLAIN, duration_exact(since, a));
	}
	table_print(&table, stdout);
}

static void show_rest(const struct outbox_policy *policy, const struct delays *delays)
{
	char text[DURATION_TEXT_MAX], low[DURATION_TEXT_MAX], high[DURATION_TEXT_MAX];
	outbox_time by = spread(policy, delays->total);

	if (delays->endless)
		printf("and so on every %s: never failed by retries alone\n",
		       duration_exact(policy->cap, text));
	else
		printf("then failed: after %zu attempts and %s", delays->count + 1,
		       duration_exact(delays->total, text));
	if (!delays->endless && by)
		printf(" (%s to %s)", duration_exact(delays->total - by, low),
		       duration_exact(delays->total + by, high));
	if (!delays->endless)
		puts("");
	if (policy->budget)
		printf("budget            %s from the first failure on\n",
		       duration_exact(policy->budget, text));
	printf("poll              %s\n", keep_text(policy->poll, "250ms (default)", text));
	printf("batch             %zu%s\n", policy->batch ? policy->batch : 500,
	       policy->batch ? "" : " (default)");
	printf("lease             %s\n", keep_text(policy->lease, "15s (default)", text));
	printf("delivered kept    %s\n", keep_text(policy->retain_delivered, "7d (default)", text));
	printf("failed kept       %s\n", keep_text(policy->retain_failed, "forever (default)", text));
	printf("purged every      %s\n", keep_text(policy->purge_interval, "1m (default)", text));
}

static int run_show(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(2000);
	const struct outbox_policy *policy;
	struct delays delays;
	int r = policy_find(cli->words[0], &policy, err);

	(void)values;
	if (r)
		return r;
	if (cli->json)
		return json_print(policy_json(policy), err);
	collect(policy, &delays);
	summary(policy, &delays, &text);
	printf("%s%s%s: %s", colour_on(cli, BOLD), policy->name, colour_off(cli), buf_str(&text));
	if (policy->jitter_percent)
		printf(", jitter +-%d %%", policy->jitter_percent);
	puts("\n");
	show_delays(cli, policy, &delays);
	show_rest(policy, &delays);
	return OUTBOX_OK;
}

const struct command cmd_policy_list = {
	.name = "policy list",
	.group = GROUP_WORK,
	.summary = "list the retry policies",
	.about = "A policy says when and how often a refused delivery is tried again, and when it fails for good. outbox relay --policy NAME chooses a policy for all targets, --policy TARGET=NAME for one target; otherwise the policy named default is used.",
	.example = "outbox policy list",
	.run = run_list,
};

const struct command cmd_policy_show = {
	.name = "policy show",
	.group = GROUP_WORK,
	.summary = "print every delay of a retry policy, with and without jitter",
	.about = "Values that the policy does not set are marked (default): they are the relay's own defaults, which options of outbox relay change.",
	TAKES_WORDS("NAME", 1, 1),
	.example = "outbox policy show protean",
	.exits = "0  printed\n3  no such policy",
	.run = run_show,
};
