/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"
#include "base/text.h"
#include "cli/json_out.h"
#include "cli/page.h"
#include "cli/safe.h"
#include "cli/table.h"
#include "operate/runbook.h"

#include <stdio.h>
#include <string.h>

static const char *const group_titles[] = {
	[GROUP_SETUP] = "setting up", [GROUP_WORK] = "publishing and relaying",
	[GROUP_SEE] = "seeing",       [GROUP_REPAIR] = "repairing",
	[GROUP_HELP] = "help",
};

static int exits(const struct cli *cli, struct outbox_error *err)
{
	json_t *list = cli->json ? json_array() : NULL;

	for (size_t i = 0; exit_at(i); i++) {
		const struct exit_row *row = exit_at(i);

		if (!row->meaning)
			continue;
		if (cli->json) {
			json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "code", row->code,
							      "name", row->name, "meaning",
							      row->meaning));
			continue;
		}
		printf("%4d  %-13s", row->code, row->name);
		safe_wrap(stdout, &(struct wrap){ 19, 19, 80 }, row->meaning);
	}
	return cli->json ? json_print(json_pack("{s:o}", "exits", list), err) : OUTBOX_OK;
}

/* The names that help alert takes: those of the rules, and of the two that only monitoring can see. */
static int alerts_list(const struct cli *cli, struct outbox_error *err)
{
	json_t *list = cli->json ? json_array() : NULL;
	const char *name;
	size_t length;

	if (!cli->json)
		puts("outbox help alert NAME says what to do about one:\n");
	for (const char *at = NULL; (at = runbook_next(at, &name, &length));)
		if (cli->json)
			json_array_append_new(list, json_stringn(name, length));
		else
			printf("  %.*s\n", (int)length, name);
	return cli->json ? json_print(json_pack("{s:o}", "alerts", list), err) : OUTBOX_OK;
}

/* What the runbook says about an alert. */
static int alert(const struct cli *cli, const char *rule, struct outbox_error *err)
{
	const char *text;
	char shown[80];
	size_t size;

	if (!runbook_section(rule, &text, &size))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "no alert is called \"%s\"; outbox help alert lists them",
				   text_shown(shown, sizeof(shown), rule));
	if (cli->json)
		return json_print(json_pack("{s:s, s:s%}", "rule", rule, "section", text, size), err);
	puts("# set SOURCE=... TARGET=... and OUTBOX_CONFIG=FILE first\n");
	page_print(text, size);
	return OUTBOX_OK;
}

static int overview_json(struct outbox_error *err)
{
	json_t *list = json_array();

	for (size_t i = 0; command_at(i); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", command_at(i)->name,
						      "group", group_titles[command_at(i)->group],
						      "summary", command_at(i)->summary));
	return json_print(json_pack("{s:s, s:o}", "version", OUTBOX_VERSION, "commands", list), err);
}

static void overview(const struct cli *cli)
{
	int group = 0;

	puts("usage: outbox COMMAND [options]     outbox COMMAND --help tells more");
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);

		if (command->group != (enum command_group)group) {
			group = (int)command->group;
			printf("\n%s%s%s\n", colour_on(cli, BOLD), group_titles[group],
			       colour_off(cli));
		}
		printf("  %-16s ", command->name);
		safe_wrap(stdout, &(struct wrap){ 19, 19, 80 }, command->summary);
	}
	puts("\nThe store is --store URL or OUTBOX_STORE: sqlite:app.db, postgres://app@db/shop,\nor a source of --config FILE or OUTBOX_CONFIG");
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	char name[64];
	const struct command *command;

	(void)values;
	if (cli->n_words == 0) {
		if (cli->json)
			return overview_json(err);
		overview(cli);
		return OUTBOX_OK;
	}
	if (strcmp(cli->words[0], "alert") == 0)
		return cli->n_words > 1 ? alert(cli, cli->words[1], err) : alerts_list(cli, err);
	snprintf(name, sizeof(name), "%s%s%s", cli->words[0], cli->n_words > 1 ? " " : "",
		 cli->n_words > 1 ? cli->words[1] : "");
	if (strcmp(name, "exits") == 0)
		return exits(cli, err);
	command = command_find(name);
	if (command)
		return help_command(cli, command, err);
	if (!cli->json && help_family(cli, name))
		return OUTBOX_OK;
	return command_unknown(name, err);
}

const struct command cmd_help = {
	.name = "help",
	.group = GROUP_HELP,
	.summary = "list the commands, explain one or an alert, or list the exit codes",
	.words = "[COMMAND|exits|alert [NAME]]",
	.max_words = 2,
	.example = "outbox help\noutbox help requeue\noutbox help exits\noutbox help alert failed",
	.run = run,
};
