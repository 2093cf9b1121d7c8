/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include "base/buf.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 26

static const struct {
	unsigned flag; /* only commands with this flag take it; 0: all */
	struct field option;
} common[COMMON_MAX] = {
	{ COMMAND_URL,
	  OPTION_OF(struct cli, "store", FIELD_TEXT, store_url, "URL",
		    "the database, sqlite:app.db or postgres://USER@HOST/DB (default: OUTBOX_STORE)") },
	{ COMMAND_FILE, OPTION_OF(struct cli, "config", FIELD_TEXT, config_file, "FILE",
				  "the database is a source of this file (default: OUTBOX_CONFIG)") },
	{ COMMAND_FILE, OPTION_OF(struct cli, "source", FIELD_TEXT, source, "NAME",
				  "which source of the file, if it has several") },
	{ COMMAND_ACTOR, OPTION_OF(struct cli, "actor", FIELD_TEXT, actor, "NAME",
				   "who acts, for the audit (default: $USER@host)") },
	{ 0, OPTION_OF(struct cli, "json", FIELD_BOOL, json, NULL,
		       "JSON on stdout, messages on stderr") },
};

size_t common_options(unsigned flags, struct field ret_options[COMMON_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < COMMON_MAX; i++)
		if (!common[i].flag || flags & common[i].flag)
			ret_options[n++] = common[i].option;
	return n;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->name, name) == 0 ||
		    (command_at(i)->alias && strcmp(command_at(i)->alias, name) == 0))
			return command_at(i);
	return NULL;
}

int command_unknown(const char *name, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf group = BUF_INIT(200);
	size_t length = strcspn(name, " ");
	struct nearest nearest;
	char shown[80];

	nearest_init(&nearest, name);
	for (size_t i = 0; command_at(i); i++) {
		const char *known = command_at(i)->name;

		if (strncmp(known, name, length) == 0 && known[length] == ' ')
			buf_printf(&group, "%s%s", group.size ? " or " : "outbox ", known);
		if (!(command_at(i)->flags & COMMAND_HARMFUL))
			nearest_offer(&nearest, known);
	}
	text_shown(shown, sizeof(shown), name);
	if (group.size)
		return outbox_fail(err, OUTBOX_EINVAL, "unknown command \"%s\"; use %s", shown,
				   buf_str(&group));
	if (nearest.best)
		return outbox_fail(err, OUTBOX_EINVAL, "unknown command \"%s\"; did you mean %s?",
				   shown, nearest.best);
	return outbox_fail(err, OUTBOX_EINVAL, "unknown command \"%s\"; outbox help lists them",
			   shown);
}

static void usage(const struct command *command)
{
	printf("usage: outbox %s", command->name);
	for (size_t i = 0; i < command->n_options; i++)
		if (command->options[i].flags & FIELD_REQUIRED)
			printf(" --%s %s", command->options[i].name, command->options[i].argument);
	printf("%s%s [options]\n", command->words ? " " : "", command->words ? command->words : "");
}

bool help_family(const struct cli *cli, const char *word)
{
	size_t length = strlen(word), count = 0;

	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);

		if (strncmp(command->name, word, length) != 0 || command->name[length] != ' ')
			continue;
		if (count++)
			puts("");
		printf("%soutbox %s%s: %s\n", colour_on(cli, BOLD), command->name, colour_off(cli),
		       command->summary);
		usage(command);
		if (command->about)
			printable_wrap(stdout, &(struct wrap){ .width = 80 }, command->about);
	}
	if (count)
		printf("\nOptions and examples: outbox %s COMMAND --help\n", word);
	return count > 0;
}

static void print_option(const struct field *option)
{
	char text[400];
	int n;

	if (option->flags & FIELD_HIDDEN)
		return;
	n = printf("  --%s%s%s", option->name, option->argument ? " " : "",
		   option->argument ? option->argument : "");

	if (n >= HELP_COLUMN)
		printf("\n%*s", HELP_COLUMN, "");
	else
		printf("%*s", HELP_COLUMN - n, "");
	snprintf(text, sizeof(text), "%s%s%s", option->help,
		 (option->flags & FIELD_REQUIRED) != 0 ? "; required" : "",
		 option->type == FIELD_REPEATED ? "; repeatable" : "");
	printable_wrap(stdout, &(struct wrap){ HELP_COLUMN, HELP_COLUMN, 80 }, text);
}

static void print_lines(const char *title, const char *lines)
{
	if (!lines)
		return;
	printf("\n%s\n", title);
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		printf("  %.*s\n", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static json_t *option_json(const struct field *option)
{
	return json_pack("{s:s, s:s?, s:s, s:b, s:b}", "name", option->name, "argument",
			 option->argument, "help", option->help, "required",
			 (option->flags & FIELD_REQUIRED) != 0, "repeatable",
			 option->type == FIELD_REPEATED);
}

static json_t *options_json(const struct command *command)
{
	struct field shared[COMMON_MAX];
	size_t n = common_options(command->flags, shared);
	json_t *list = json_array();

	for (size_t i = 0; i < command->n_options; i++)
		if (!(command->options[i].flags & FIELD_HIDDEN))
			json_array_append_new(list, option_json(&command->options[i]));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, option_json(&shared[i]));
	return list;
}

int help_command(const struct cli *cli, const struct command *command, struct outbox_error *err)
{
	struct field shared[COMMON_MAX];
	size_t n = common_options(command->flags, shared);

	if (cli->json)
		return json_print(json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:o}", "command",
					    command->name, "summary", command->summary, "arguments",
					    command->words, "example", command->example, "exits",
					    command->exits, "options", options_json(command)),
				  err);
	printf("%soutbox %s%s: %s\n\n", colour_on(cli, BOLD), command->name, colour_off(cli),
	       command->summary);
	usage(command);
	if (command->about) {
		fputc('\n', stdout);
		printable_wrap(stdout, &(struct wrap){ .width = 80 }, command->about);
	}
	puts("\noptions:");
	for (size_t i = 0; i < command->n_options; i++)
		print_option(&command->options[i]);
	for (size_t i = 0; i < n; i++)
		print_option(&shared[i]);
	print_lines("example:", command->example);
	print_lines("exit status (all of them: outbox help exits):",
		    command->exits ? command->exits : "0  done");
	return OUTBOX_OK;
}
