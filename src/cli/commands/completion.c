/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for shells, made of the tables of commands and options, so that it cannot differ from them. The scripts hold
 * all words: a shell that completes one starts no program.
 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#define SHELLS "bash|zsh|fish"

enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_FILE, VALUE_AT_FILE, VALUE_ANY };

static enum value_kind value_kind(const struct field *option)
{
	if (!option->argument)
		return VALUE_NONE;
	if (option->words)
		return VALUE_WORDS;
	if (strncmp(option->argument, "FILE", 4) == 0)
		return VALUE_FILE;
	return strstr(option->argument, "@FILE") ? VALUE_AT_FILE : VALUE_ANY;
}

/* Options of its own and those it shares; returns how many. */
static size_t list_options(const struct command *command, struct field out[LIST_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < command->n_options; i++)
		if (!(command->options[i].flags & FIELD_HIDDEN))
			out[n++] = command->options[i];
	return n + common_options(command->flags, out + n);
}

static void print_words(const struct field *option)
{
	/* 0 has none where it is "not set" */
	for (size_t i = option->words[0] ? 0 : 1; option->words[i]; i++)
		printf("%s%s", i > (option->words[0] ? 0 : 1) ? " " : "", option->words[i]);
}

/* In single quotes of any of the shells; fish takes \' inside, the others do not: none of our texts has one that matters. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		putchar(*text == '\'' ? '"' : *text);
	putchar('\'');
}

static bool is_family(const struct command *command)
{
	return strchr(command->name, ' ') != NULL;
}

static size_t first_length(const struct command *command)
{
	return strcspn(command->name, " ");
}

/* Is it the first command with this first word? */
static bool is_first(size_t i)
{
	const struct command *command = command_at(i);

	for (size_t j = 0; j < i; j++)
		if (first_length(command_at(j)) == first_length(command) &&
		    strncmp(command_at(j)->name, command->name, first_length(command)) == 0)
			return false;
	return true;
}

static void print_first_words(void)
{
	for (size_t i = 0; command_at(i); i++)
		if (is_first(i))
			printf("%s%.*s", i ? " " : "", (int)first_length(command_at(i)),
			       command_at(i)->name);
}

/* The second words behind the first one of command i. */
static void print_second_words(size_t i)
{
	size_t length = first_length(command_at(i));

	for (size_t j = i; command_at(j); j++)
		if (is_family(command_at(j)) && first_length(command_at(j)) == length &&
		    strncmp(command_at(j)->name, command_at(i)->name, length) == 0)
			printf("%s%s", j > i ? " " : "", command_at(j)->name + length + 1);
}

/* What may follow besides options; "": nothing that a shell could know. */
static void print_arguments(const struct command *command)
{
	if (command == &cmd_help) {
		print_first_words();
		return;
	}
	for (const char *c = command->words && strchr(command->words, '|') ? command->words : "";
	     *c; c++)
		putchar(*c == '|' ? ' ' : *c);
}

static bool takes_file(const struct command *command)
{
	return command->words && strstr(command->words, "FILE");
}

/* ---- bash and zsh: the same tables, in the few words that both have --------------------------- */

static void print_option_cases(const struct command *command)
{
	struct field options[LIST_MAX + COMMON_MAX];
	size_t n = list_options(command, options);

	for (size_t i = 0; i < n; i++) {
		enum value_kind kind = value_kind(&options[i]);

		if (kind == VALUE_NONE)
			continue;
		printf("\t'%s --%s') ", command->name, options[i].name);
		if (kind == VALUE_WORDS) {
			printf("_outbox_words '");
			print_words(&options[i]);
			printf("'");
		} else {
			printf("%s", kind == VALUE_FILE      ? "_outbox_files"
				     : kind == VALUE_AT_FILE ? "_outbox_at_files"
							     : ":");
		}
		puts("; return ;;");
	}
}

static void print_command_case(const struct command *command)
{
	struct field options[LIST_MAX + COMMON_MAX];
	size_t n = list_options(command, options);

	printf("\t'%s') options='", command->name);
	for (size_t i = 0; i < n; i++)
		printf("--%s ", options[i].name);
	printf("--help' arguments='");
	print_arguments(command);
	printf("' files=%s ;;\n", takes_file(command) ? "yes" : "no");
}

/* current, previous, place: the word that is completed, the one before it, its number from 0 on; command: the first. */
static void print_body(void)
{
	puts("\tlocal options='' arguments='' files=no\n\tif [ \"$place\" = 1 ]; then");
	printf("\t\t_outbox_words '");
	print_first_words();
	puts("'\n\t\treturn\n\tfi\n\tcase \"$command\" in");
	for (size_t i = 0; command_at(i); i++) {
		if (!is_family(command_at(i)) || !is_first(i))
			continue;
		printf("\t%.*s)\n\t\tif [ \"$place\" = 2 ]; then\n\t\t\t_outbox_words '",
		       (int)first_length(command_at(i)), command_at(i)->name);
		print_second_words(i);
		puts("'\n\t\t\treturn\n\t\tfi\n\t\tcommand=\"$command $second\" ;;");
	}
	puts("\tesac\n\tcase \"$command $previous\" in");
	for (size_t i = 0; command_at(i); i++)
		print_option_cases(command_at(i));
	puts("\tesac\n\tcase \"$command\" in");
	for (size_t i = 0; command_at(i); i++)
		print_command_case(command_at(i));
	puts("\tesac\n"
	     "\tcase \"$current\" in\n"
	     "\t-*) _outbox_words \"$options\" ;;\n"
	     "\t*)\n"
	     "\t\tif [ $files = yes ]; then _outbox_files; else _outbox_words \"$arguments\"; fi ;;\n"
	     "\tesac\n}");
}

static void print_bash(void)
{
	puts("# bash completion for outbox, made by: outbox completion bash\n"
	     "_outbox_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$current\")); }\n"
	     "_outbox_files() {\n"
	     "\tcompopt -o filenames 2>/dev/null\n"
	     "\tlocal IFS=$'\\n'\n"
	     "\tCOMPREPLY=($(compgen -f -- \"$current\"))\n"
	     "}\n"
	     "_outbox_at_files() {\n"
	     "\tlocal IFS=$'\\n'\n"
	     "\t[[ $current != @* ]] || COMPREPLY=($(compgen -P @ -f -- \"${current#@}\"))\n"
	     "}\n"
	     "_outbox() {\n"
	     "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal command=${COMP_WORDS[1]} second=${COMP_WORDS[2]} place=$COMP_CWORD\n"
	     "\tCOMPREPLY=()\n"
	     "\t# --option=value is three words here\n"
	     "\tif [[ $current == = ]]; then\n"
	     "\t\tcurrent=\n"
	     "\telif [[ $previous == = ]]; then\n"
	     "\t\tprevious=${COMP_WORDS[COMP_CWORD - 2]}\n"
	     "\tfi");
	print_body();
	puts("complete -F _outbox outbox");
}

static void print_zsh(void)
{
	puts("#compdef outbox\n"
	     "# zsh completion for outbox, made by: outbox completion zsh\n"
	     "_outbox_words() { compadd -- ${=1}; }\n"
	     "_outbox_files() { _files; }\n"
	     "_outbox_at_files() { compset -P @ && _files; }\n"
	     "_outbox() {\n"
	     "\tlocal current=$words[CURRENT] previous=$words[CURRENT-1]\n"
	     "\tlocal command=$words[2] second=$words[3] place=$((CURRENT - 1))\n"
	     "\tif [[ $current == --*=* ]]; then\n"
	     "\t\tprevious=${current%%=*}\n"
	     "\t\tcompset -P '*='\n"
	     "\t\tcurrent=$PREFIX\n"
	     "\tfi");
	print_body();
	puts("if [ \"$funcstack[1]\" = _outbox ]; then _outbox \"$@\"; else compdef _outbox outbox; fi");
}

/* ---- fish ------------------------------------------------------------------------------------- */

static void print_fish_option(const struct command *command, const struct field *option)
{
	enum value_kind kind = value_kind(option);

	printf("complete -c outbox -n '__outbox_at %s' -l %s", command->name, option->name);
	if (kind == VALUE_WORDS) {
		printf(" -x -a '");
		print_words(option);
		printf("'");
	} else {
		printf("%s", kind == VALUE_FILE || kind == VALUE_AT_FILE ? " -r -F"
			     : kind == VALUE_ANY                         ? " -x"
									 : "");
	}
	printf(" -d ");
	print_quoted(option->help);
	puts("");
}

static void print_fish_command(const struct command *command)
{
	struct field options[LIST_MAX + COMMON_MAX];
	size_t n = list_options(command, options), length = first_length(command);

	if (is_family(command)) {
		printf("complete -c outbox -n '__outbox_first' -a %.*s\n", (int)length,
		       command->name);
		printf("complete -c outbox -n '__outbox_second %.*s' -a %s -d ", (int)length,
		       command->name, command->name + length + 1);
	} else {
		printf("complete -c outbox -n '__outbox_first' -a %s -d ", command->name);
	}
	print_quoted(command->summary);
	puts("");
	for (size_t i = 0; i < n; i++)
		print_fish_option(command, &options[i]);
	printf("complete -c outbox -n '__outbox_at %s' ", command->name);
	if (takes_file(command)) {
		puts("-F");
		return;
	}
	printf("-a '");
	print_arguments(command);
	puts("'");
}

static void print_fish(void)
{
	puts("# fish completion for outbox, made by: outbox completion fish\n"
	     "function __outbox_first\n"
	     "\ttest (count (commandline -opc)) -eq 1\n"
	     "end\n"
	     "function __outbox_second\n"
	     "\tset -l words (commandline -opc)\n"
	     "\ttest (count $words) -eq 2 -a \"$words[2]\" = \"$argv[1]\"\n"
	     "end\n"
	     "function __outbox_at\n"
	     "\tset -l words (commandline -opc)\n"
	     "\tset -l last (math 1 + (count $argv))\n"
	     "\ttest \"$words[2..$last]\" = \"$argv\"\n"
	     "end\n"
	     "complete -c outbox -f");
	for (size_t i = 0; command_at(i); i++)
		print_fish_command(command_at(i));
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	(void)values;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].name, cli->words[0]) != 0)
			continue;
		shells[i].print();
		return OUTBOX_OK;
	}
	return outbox_fail(err, OUTBOX_EINVAL,
			   "no completion for this shell; there are: bash, zsh, fish");
}

const struct command cmd_completion = {
	.name = "completion",
	.group = GROUP_HELP,
	.summary = "print what makes a shell complete commands and options",
	TAKES_WORDS(SHELLS, 1, 1),
	.about = "make install puts it where the shells look for it: a new shell completes then. Otherwise, have the shell read it when it starts.",
	.example = "eval \"$(outbox completion bash)\"\n"
		   "outbox completion fish > ~/.config/fish/completions/outbox.fish",
	.run = run,
};
