/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. main() finds the command, fills its options from its table, runs it, and turns the
 * status into an exit code in one place. Results go to stdout, everything that is said about the work
 * to stderr; with --json stdout is JSON and nothing else, an error included.
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/help.h"
#include "cli/store_url.h"
#include "core/secrets.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define WIDTH_MAX 1000

/* In the order in which `outbox help` shows them. */
static const struct command *const commands[] = {
	&cmd_init,         &cmd_sql,         &cmd_upgrade,       &cmd_doctor,
	&cmd_truncate,     &cmd_drop,        &cmd_publish,       &cmd_relay,
	&cmd_config_check, &cmd_config_show, &cmd_config_schema, &cmd_config_reference,
	&cmd_policy_list,  &cmd_policy_show, &cmd_status,        &cmd_alerts,
	&cmd_inbox_list,   &cmd_inbox_count, &cmd_inbox_prune,   &cmd_keys,
	&cmd_list,         &cmd_show,        &cmd_tail,          &cmd_audit,
	&cmd_target_list,  &cmd_requeue,     &cmd_discard,       &cmd_defer,
	&cmd_cancel,       &cmd_pause,       &cmd_resume,        &cmd_purge,
	&cmd_archive,      &cmd_replay,      &cmd_target_drop,   &cmd_redact,
	&cmd_amend,        &cmd_realign,     &cmd_help,          &cmd_completion,
	&cmd_version,
};

const struct command *command_at(size_t i)
{
	return i < ARRAY_SIZE(commands) ? commands[i] : NULL;
}

/* COLUMNS says it for everybody; else a terminal does. Nothing is cut for a program that reads it. */
static size_t screen_width(bool terminal)
{
	const char *columns = getenv("COLUMNS");
	int64_t width = 0;
	struct winsize size;

	if (columns && number_parse("COLUMNS", columns, 1, INT32_MAX, &width, NULL))
		width = 0;
	if (!width && !terminal)
		return UNCUT;
	if (!width)
		width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
										    : WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : (size_t)width;
}

static void look_at_terminal(struct cli *cli)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(STDOUT_FILENO);

	cli->width = screen_width(terminal);
	cli->colour = terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

/* Names are one word or two: "target drop". */
static int find_command(struct cli *cli, int argc, char **argv, int *ret_first,
			struct outbox_error *err)
{
	char two[64], shown[80];
	const char *word = argc > 1 ? argv[1] : "help";

	*ret_first = argc > 1 ? 2 : 1;
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		word = "version";
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		word = "help";
	cli->command = command_find(word);
	if (cli->command)
		return OUTBOX_OK;
	if (argc > 2) {
		snprintf(two, sizeof(two), "%s %s", word, argv[2]);
		cli->command = command_find(two);
		*ret_first = 3;
	}
	if (cli->command)
		return OUTBOX_OK;
	/* `outbox policy --help` is `outbox help policy` */
	if (word[0] != '-' && argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		cli->command = &cmd_help;
		*ret_first = 1;
		return OUTBOX_OK;
	}
	if (word[0] == '-')
		return outbox_fail(err, OUTBOX_EINVAL,
				   "options go after the command: outbox COMMAND %s; outbox help lists "
				   "the commands",
				   text_shown(shown, sizeof(shown), word));
	return command_unknown(word, err);
}

static int check_words(const struct cli *cli, struct outbox_error *err)
{
	const struct command *command = cli->command;
	char shown[80];

	if (cli->n_words < command->min_words)
		return outbox_fail(err, OUTBOX_EINVAL, "%s is missing: outbox %s %s",
				   command->words, command->name, command->words);
	if (cli->n_words > command->max_words)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "unexpected argument \"%s\"; outbox %s takes %s%s",
				   text_shown(shown, sizeof(shown), cli->words[command->max_words]),
				   command->name, command->max_words ? "only " : "options only",
				   command->max_words ? command->words : "");
	return OUTBOX_OK;
}

static int run_command(struct cli *cli, int argc, char **argv, int first, struct outbox_error *err)
{
	_cleanup_(cleanup_free) void *values = calloc(1, cli->command->values_size + 1);
	_cleanup_(cleanup_free) struct parsed *parsed = calloc(1, sizeof(*parsed));
	struct field shared[COMMON_MAX];
	struct option_set sets[2] = {
		{ cli->command->options, cli->command->n_options, values },
		{ shared, common_options(cli->command->flags, shared), cli },
	};
	int r;

	if (!values || !parsed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = options_parse(argc, argv, first, sets, wall_now(), parsed, err);
	if (r) {
		cli->exit = EXIT_USAGE;
		return r;
	}
	cli->words = parsed->words;
	cli->n_words = parsed->n_words;
	if (parsed->help && !(cli->command == &cmd_help && cli->n_words))
		return help_command(cli, cli->command, err);
	r = check_words(cli, err);
	if (r)
		return r;
	r = store_choose(cli, err);
	if (r == OUTBOX_OK)
		r = cli->command->run(cli, values, err);
	cli_done(cli);
	return r;
}

static int report(const struct cli *cli, int status, const struct outbox_error *error)
{
	int code = cli->exit ? cli->exit : exit_of(status);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char prefix[64];

	if (status == OUTBOX_OK)
		return code;
	if (cli->json &&
	    json_print(json_pack("{s:{s:s, s:o, s:i}}", "error", "status", exit_name(code),
				 "message", json_text(error->message), "exit", code),
		       &err))
		code = EXIT_MEMORY;
	snprintf(prefix, sizeof(prefix), "outbox%s%s: ", cli->command ? " " : "",
		 cli->command ? cli->command->name : "");
	printable_line(stderr, prefix, error->message);
	if (code == EXIT_USAGE && cli->command && status == OUTBOX_EINVAL)
		fprintf(stderr, "try: outbox %s --help\n", cli->command->name);
	return code;
}

/* A result that did not reach its reader is a failure, too. */
static int finish_stdout(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "outbox: cannot write the output: %s\n", strerror(errno));
	return errno == ENOSPC ? EXIT_FULL : EXIT_UNREACHABLE;
}

int main(int argc, char **argv)
{
	struct cli cli = { 0 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int first = 1, r;

	/* columns are measured in UTF-8 whatever the environment says; numbers stay in C's form */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "");
	look_at_terminal(&cli);
	/* looked for ahead of the parser, so that its own errors come as JSON too */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		cli.json |= strcmp(argv[i], "--json") == 0;
	r = find_command(&cli, argc, argv, &first, &err);
	if (r == OUTBOX_OK)
		r = run_command(&cli, argc, argv, first, &err);
	hide_secrets_in(err.message, sizeof(err.message));
	return finish_stdout(report(&cli, r, &err));
}
