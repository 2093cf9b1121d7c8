/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay's rules, from one look at the stores. One look has no memory: a rule that must hold for a while counts at
 * once, and what only a relay or a second look can know (relay_down, cleanup, latency, sending) is not judged.
 */
#include "base/clock.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/sources.h"
#include "cli/table.h"
#include "http/views.h"
#include "operate/sample.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MAX ((size_t)64 << 20)
#define FILE_LINK "file://"

struct values {
	bool rules;
};

static const struct field options[] = {
	OPTION("rules", FIELD_BOOL, rules, NULL, "list the rules and what they mean instead"),
};

static const struct column columns[] = {
	{ "LEVEL", false, 0 },  { "ALERT", false, 0 }, { "SOURCE", false, 8 },
	{ "TARGET", false, 8 }, { "SINCE", true, 0 },
};

static const struct column rule_columns[] = {
	{ "ALERT", false, 0 },
	{ "LEVEL", false, 0 },
	{ "WHEN", false, 30 },
};

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static int level_colour(enum health_level level)
{
	return level == LEVEL_UNHEALTHY ? RED : level == LEVEL_DEGRADED ? YELLOW : DIM;
}

static const char *level_name(enum health_level level)
{
	return level == LEVEL_HEALTHY ? "info" : health_level_name(level);
}

static int print_rules(struct cli *cli, struct outbox_error *err)
{
	_cleanup_(table_deinit) struct table table;
	json_t *list = cli->json ? json_array() : NULL;

	table_init(&table, cli, rule_columns, ARRAY_SIZE(rule_columns));
	for (int i = 0; i < RULE_COUNT; i++) {
		const struct rule *rule = &rules[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "rule", rule_names[i],
						      "level", health_level_name(rule->level),
						      "about", rule->about));
		table_cell(&table, BOLD, rule_names[i]);
		table_cell(&table, level_colour(rule->level), level_name(rule->level));
		table_cell(&table, PLAIN, rule->about);
	}
	if (cli->json)
		return json_print(json_pack("{s:o}", "rules", list), err);
	table_print(&table, stdout);
	return OUTBOX_OK;
}

/* What the caller did wrong is an error; that a store does not answer is a finding. */
static int read_source(struct cli *cli, struct outbox_arena *arena, const char *name,
		       struct health_source *ret_source, struct outbox_error *err)
{
	struct outbox_error own = OUTBOX_ERROR_INIT;
	int r = cli_open(cli, OPEN_READY, &own);

	*ret_source = (struct health_source){ 0 };
	if (r == OUTBOX_OK)
		r = once_read(cli->store, arena, ret_source, &own);
	if (r == OUTBOX_EINVAL || r == OUTBOX_ECONFIG)
		return outbox_fail(err, r, "%s", own.message);
	ret_source->name = outbox_arena_text(arena, name                ? name
						    : cli->info.name[0] ? cli->info.name
									: "store");
	ret_source->trouble = r ? outbox_arena_text(arena, own.message) : NULL;
	if (r == OUTBOX_ENOMEM || !ret_source->name)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

static int read_sample(struct cli *cli, struct outbox_arena *arena, struct sample *ret_sample,
		       struct outbox_error *err)
{
	size_t count = cli->n_sources ? cli->n_sources : 1;
	struct health_source *sources = outbox_arena_alloc(arena, count * sizeof(*sources));
	struct config_health limits;
	struct health_input input = { .limits = cli->config ? &cli->config->health : &limits,
				      .sources = sources,
				      .n_sources = count };
	int r = OUTBOX_OK;

	if (!sources)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!cli->config)
		r = config_health_defaults(arena, &limits, err);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		if (cli->n_sources)
			sources_use(cli, i);
		r = read_source(cli, arena, cli->n_sources ? cli->sources[i].name : NULL,
				&sources[i], err);
		cli_close(cli);
	}
	input.wall = wall_now();
	return r ? r : once_judge(&input, arena, ret_sample, err);
}

/* The page is in the program, too: who has not installed it gets the command in place of a link to nothing. */
static void print_runbook(const struct health_finding *finding)
{
	char path[RUNBOOK_LINK_MAX];
	bool local = strncmp(finding->runbook, FILE_LINK, strlen(FILE_LINK)) == 0;

	if (local) {
		snprintf(path, sizeof(path), "%s", finding->runbook + strlen(FILE_LINK));
		path[strcspn(path, "#")] = '\0';
	}
	if (local && access(path, R_OK) != 0)
		printable_printf(stdout, "  outbox help alert %s", finding->rule);
	else
		printable_printf(stdout, "  %s", finding->runbook);
}

static void print(struct cli *cli, const struct sample *sample)
{
	_cleanup_(table_deinit) struct table table;

	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < sample->n_findings; i++) {
		const struct health_finding *finding = &sample->findings[i];
		char age[DURATION_TEXT_MAX];

		table_cell(&table, level_colour(finding->level), level_name(finding->level));
		table_cell(&table, BOLD, finding->rule);
		table_cell(&table, PLAIN, finding->source);
		table_cell(&table, PLAIN, finding->target);
		table_cell(&table, PLAIN, age_text(sample->at, finding->since, age));
	}
	if (sample->n_findings == 0)
		puts("all is well");
	else
		table_print(&table, stdout);
	/* not cut: at night nobody should have to look for the rest of a line */
	for (size_t i = 0; i < sample->n_findings; i++) {
		const struct health_finding *finding = &sample->findings[i];

		printable_printf(stdout, "%s%s%s %s: %s", finding->source,
				 finding->target ? "/" : "", finding->target ? finding->target : "",
				 finding->rule, finding->text);
		print_runbook(finding);
	}
	if (sample->level > LEVEL_HEALTHY)
		printable_printf(stdout, "what to do: outbox help alert %s",
				 sample->findings[0].rule);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = NULL;
	struct sample sample = { 0 };
	int r;

	if (given->rules)
		return print_rules(cli, err);
	arena = outbox_arena_new(LOOK_MAX);
	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = read_sample(cli, arena, &sample, err);
	if (r)
		return r;
	cli->exit = sample.level > LEVEL_HEALTHY ? EXIT_REPORTED : EXIT_OK;
	if (cli->json)
		return json_print(fields_json(&view_alerts, &sample), err);
	print(cli, &sample);
	return OUTBOX_OK;
}

const struct command cmd_alerts = {
	.name = "alerts",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "show what is wrong according to the health rules",
	TAKES_OPTIONS(options, struct values),
	.about = "Takes one sample of the stores and applies the relay's rules to it, with the limits of the file's health group or the defaults. One sample has no memory: a rule that must hold for a while counts at once, and latency and sending, which need two samples, and relay_down and cleanup, which only the process itself knows, are left to the relay. Each alert has a section in the runbook: its link is printed, and outbox help alert NAME prints the section.",
	.example =
		"outbox alerts --store sqlite:app.db\noutbox alerts --config outbox.yaml --json\noutbox alerts --rules",
	.exits = "0  all is well, or there is only information\n1  something is degraded or unhealthy",
	.run = run,
};
