/* SPDX-License-Identifier: Apache-2.0 */
/* target list, target drop. */
#include "base/printable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "operate/status.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct values {
	const char *reason;
	bool yes;
};

static const struct field drop_options[] = {
	OPTION_REASON_REQUIRED,
	OPTION_YES,
};

static const struct column columns[] = {
	{ "TARGET", false, 10 },  { "LANES", true, 0 },      { "STATE", false, 0 },
	{ "DELIVERED", true, 0 }, { "UNFINISHED", true, 0 }, { "REASON", false, 12 },
};

static int64_t unfinished(const struct outbox_target_stats *target)
{
	return target->pending + target->sending + target->waiting + target->deferred +
	       target->parked;
}

static int list_json(const struct outbox_stats *stats, struct outbox_error *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < stats->n_targets; i++) {
		const struct outbox_target_stats *t = &stats->targets[i];

		json_array_append_new(list, json_pack("{s:o, s:s, s:I, s:b, s:o, s:o, s:I, s:I}",
						      "name", json_text(t->name), "state",
						      health_names[status_health(stats, t)], "lanes",
						      (json_int_t)t->n_lanes, "paused", t->paused,
						      "paused_by", json_text(t->paused_by),
						      "paused_reason", json_text(t->paused_reason),
						      "delivered", (json_int_t)t->delivered_ever,
						      "unfinished", (json_int_t)unfinished(t)));
	}
	return json_print(json_pack("{s:o}", "targets", list), err);
}

static int run_list(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(table_deinit) struct table table;
	struct outbox_stats stats;
	char count[COUNT_TEXT_MAX];
	int r;

	(void)values;
	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	r = cli_open_target(cli, NULL, &stats, err);
	if (r)
		return r;
	if (cli->json)
		return list_json(&stats, err);
	for (size_t i = 0; i < stats.n_targets; i++) {
		const struct outbox_target_stats *t = &stats.targets[i];

		table_cell(&table, BOLD, t->name);
		table_cellf(&table, PLAIN, "%zu", t->n_lanes);
		table_cell(&table, status_health(&stats, t) == HEALTH_RUNNING ? PLAIN : YELLOW,
			   health_names[status_health(&stats, t)]);
		table_cell(&table, PLAIN, count_human(t->delivered_ever, count));
		table_cell(&table, PLAIN, count_human(unfinished(t), count));
		table_cell(&table, PLAIN, t->paused ? t->paused_reason : NULL);
	}
	table_print(&table, stdout);
	if (stats.n_targets == 0)
		printable_printf(stdout, "no targets yet; outbox relay%s registers one",
				 cli->relay_option);
	return OUTBOX_OK;
}

/* "12 waiting, 3 failed and 2 held deliveries" */
static void describe_lost(const struct outbox_target_stats *t, char *out, size_t size)
{
	char waiting[COUNT_TEXT_MAX], failed[COUNT_TEXT_MAX], held[COUNT_TEXT_MAX];

	snprintf(out, size, "%s waiting, %s failed and %s held deliveries",
		 capped_text(unfinished(t) - t->parked, waiting), capped_text(t->failed, failed),
		 capped_text(t->parked, held));
}

static const struct outbox_target_stats *find_target(const struct outbox_stats *stats,
						     const char *name)
{
	for (size_t i = 0; i < stats->n_targets; i++)
		if (strcmp(stats->targets[i].name, name) == 0)
			return &stats->targets[i];
	return NULL;
}

static int drop_json(const struct outbox_target_stats *t, struct outbox_error *err)
{
	return json_print(json_pack("{s:o, s:b, s:I, s:I, s:I}", "target", json_text(t->name),
				    "dropped", 1, "waiting", (json_int_t)(unfinished(t) - t->parked),
				    "failed", (json_int_t)t->failed, "held", (json_int_t)t->parked),
			  err);
}

static int run_drop(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	const char *name = cli->words[0];
	struct outbox_stats stats;
	const struct outbox_target_stats *target;
	char what[400], lost[160];
	int r = cli_open_target(cli, name, &stats, err);

	if (r)
		return r;
	target = find_target(&stats, name);
	if (!target)
		return outbox_fail(err, OUTBOX_EINTERNAL, "the target is gone");
	describe_lost(target, lost, sizeof(lost));
	snprintf(what, sizeof(what),
		 "This removes target \"%s\" with its lanes and deliveries: %s. Messages stay for other targets; what waits for this one is never sent to it.",
		 name, lost);
	r = confirm_name(cli, given->yes, what, name, err);
	if (r == OUTBOX_OK)
		r = store_target_drop(cli->store, name, cli->actor, given->reason, err);
	if (r)
		return r;
	if (cli->json)
		return drop_json(target, err);
	printf("removed target %s, with %s\n", name, lost);
	return OUTBOX_OK;
}

const struct command cmd_target_list = {
	.name = "target list",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "list the targets that relays have registered",
	.about = "STATE is the one that status shows. UNFINISHED counts every delivery that is neither delivered, failed nor discarded, deferred ones included.",
	.example = "outbox target list --store sqlite:app.db",
	.run = run_list,
};

const struct command cmd_target_drop = {
	.name = "target drop",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "remove a target, so that it no longer holds back retention",
	TAKES_WORDS("TARGET", 1, 1),
	TAKES_OPTIONS(drop_options, struct values),
	.about = "Stop its relays first: a relay that is still configured for it would register it again.",
	.example = "outbox target drop partner --reason \"contract ended\" --yes",
	.exits = "0  removed\n3  no such target\n10 not confirmed: nothing was changed",
	.run = run_drop,
};
