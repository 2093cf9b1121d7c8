/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/table.h"
#include "operate/runbook.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WIDTH ((size_t)80)
#define INDENT ((size_t)4)
#define PARAGRAPH_MAX ((size_t)1 << 16)

/* How much of a command goes on this line: up to the last blank outside of quotes that leaves room for a backslash. */
static size_t command_part(const char *at, size_t size, size_t room)
{
	size_t part = 0;
	char quote = '\0';

	if (size <= room)
		return size;
	for (size_t i = 0; i < size && (i + 2 <= room || !part); i++) {
		if (quote)
			quote = at[i] == quote ? '\0' : quote;
		else if (at[i] == '\'' || at[i] == '"')
			quote = at[i];
		else if (at[i] == ' ')
			part = i;
	}
	return part ? part : size;
}

static void print_command(const char *at, size_t size)
{
	size_t indent = INDENT;

	while (size > 0) {
		size_t part = command_part(at, size, WIDTH - indent);

		printf("%*s%.*s%s\n", (int)indent, "", (int)part, at, part < size ? " \\" : "");
		indent = 2 * INDENT;
		at += part;
		size -= part;
		while (size > 0 && *at == ' ') {
			at++;
			size--;
		}
	}
}

/* [outage](#outage) is the word outage: on a terminal there is nothing to follow. */
static void add_line(struct buf *paragraph, const char *at, size_t size)
{
	const char *end = at + size;

	while (at < end) {
		const char *open = memchr(at, '[', (size_t)(end - at));
		const char *close = open ? memmem(open, (size_t)(end - open), "](", 2) : NULL;
		const char *stop = close ? memchr(close, ')', (size_t)(end - close)) : NULL;

		if (!stop)
			break;
		buf_append(paragraph, at, (size_t)(open - at));
		buf_append(paragraph, open + 1, (size_t)(close - open - 1));
		at = stop + 1;
	}
	buf_append(paragraph, at, (size_t)(end - at));
}

static void end_paragraph(struct buf *paragraph)
{
	if (paragraph->size)
		printable_wrap(stdout, &(struct wrap){ .width = WIDTH }, buf_str(paragraph));
	buf_clear(paragraph);
}

static void page_print(const char *markdown, size_t size)
{
	const char *at = markdown;
	_cleanup_(buf_deinit) struct buf paragraph = BUF_INIT(PARAGRAPH_MAX);
	const char *end = at + size;
	bool commands = false;

	while (at < end) {
		const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - line);

		at = stop ? stop + 1 : end;
		if (length >= 3 && memcmp(line, "```", 3) == 0) {
			end_paragraph(&paragraph);
			commands = !commands;
		} else if (commands) {
			print_command(line, length);
		} else if (length) {
			buf_text(&paragraph, paragraph.size ? " " : "");
			add_line(&paragraph, line, length);
		} else {
			end_paragraph(&paragraph);
			putchar('\n');
		}
	}
	end_paragraph(&paragraph);
}

static const char *const group_titles[] = {
	[GROUP_SETUP] = "setting up", [GROUP_WORK] = "publishing and relaying",
	[GROUP_SEE] = "inspecting",   [GROUP_REPAIR] = "repairing",
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
		printable_wrap(stdout, &(struct wrap){ 19, 19, 80 }, row->meaning);
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

	puts("usage: outbox COMMAND [options]     outbox COMMAND --help explains it");
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);

		if (command->group != (enum command_group)group) {
			group = (int)command->group;
			printf("\n%s%s%s\n", colour_on(cli, BOLD), group_titles[group],
			       colour_off(cli));
		}
		printf("  %-16s ", command->name);
		printable_wrap(stdout, &(struct wrap){ 19, 19, 80 }, command->summary);
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
	TAKES_WORDS("[COMMAND|exits|alert [NAME]]", 0, 2),
	.example = "outbox help\noutbox help requeue\noutbox help exits\noutbox help alert failed",
	.run = run,
};
