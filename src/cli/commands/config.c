/* SPDX-License-Identifier: Apache-2.0 */
/* config check, show, schema, reference: the file that outbox relay --config takes. */
#include "base/buf.h"
#include "base/printable.h"
#include "cli/config_file.h"
#include "cli/format.h"
#include "cli/store_url.h"
#include "cli/table.h"
#include "operate/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFERENCE_MAX ((size_t)64 << 10)
#define STDIN_MAX (((size_t)1 << 20) + 1)

struct values {
	const char *config;
	struct list sets;
	bool connect;
};

#define FILE_OPTIONS                                                                     \
	OPTION("config", FIELD_TEXT, config, "FILE", "FILE, as other commands take it"), \
		OPTION("set", FIELD_REPEATED, sets, "KEY=VALUE",                         \
		       "override the file and the environment: --set targets.events.batch=100")

static const struct field options[] = { FILE_OPTIONS };

static const struct field check_options[] = {
	FILE_OPTIONS,
	OPTION("connect", FIELD_BOOL, connect, NULL,
	       "also ask the databases: is there an outbox, does every new target say where it starts"),
};

static const struct column columns[] = {
	{ "KEY", false, 0 },
	{ "VALUE", false, 12 },
	{ "FROM", false, 10 },
};

static const char *file_of(const struct cli *cli, const struct values *given)
{
	const char *named = getenv("OUTBOX_CONFIG");

	if (given->config)
		return given->config;
	if (cli->n_words)
		return cli->words[0];
	return named && *named ? named : CONFIG_FILE;
}

static int check_named_once(const struct cli *cli, const struct values *given,
			    struct outbox_error *err)
{
	if (!given->config || !cli->n_words)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "the file is named twice; outbox %s FILE and --config FILE are the same",
			   cli->command->name);
}

static int check_json(struct cli *cli, const char *file, const struct problems *problems, int r,
		      struct outbox_error *err)
{
	/* without a list, the one thing that is wrong is reported as by every command */
	if (r && !problems->count)
		return r;
	cli->exit = exit_of(r);
	return json_print(json_pack("{s:o, s:b, s:o, s:I}", "file", json_text(file), "ok",
				    r == OUTBOX_OK, "problems", json_problems(problems), "more",
				    (json_int_t)problems->more),
			  err);
}

/* What another command prints is checked without a file in between. */
static int read_stdin(struct config_input *input, struct buf *out, struct outbox_error *err)
{
	char chunk[4096];
	size_t n;

	while (!out->failed && (n = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
		buf_append(out, chunk, n);
	if (ferror(stdin))
		return outbox_fail(err, OUTBOX_ECONFIG, "stdin: cannot be read");
	if (out->failed)
		return outbox_fail(err, OUTBOX_ECONFIG, "stdin: is larger than 1 MiB");
	input->file = "stdin";
	input->text = buf_str(out);
	input->size = out->size;
	return OUTBOX_OK;
}

static int run_check(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(STDIN_MAX);
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	_cleanup_(config_freep) struct config *config = NULL;
	const struct values *given = values;
	struct config_input input = { .file = file_of(cli, given),
				      .sets = given->sets.items,
				      .n_sets = given->sets.count,
				      .environment = environ,
				      .secrets = true,
				      .server = true };
	char warning[400];
	int r = check_named_once(cli, given, err);

	if (r == OUTBOX_OK && strcmp(input.file, "-") == 0)
		r = read_stdin(&input, &text, err);
	if (r)
		return r;
	if (!problems)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	sets_warn(&given->sets);
	r = configure(&input, &config, problems, err);
	if (r == OUTBOX_OK && given->connect)
		r = configure_connect(config, problems, err);
	problems_tell(problems);
	if (cli->json)
		return check_json(cli, input.file, problems, r, err);
	if (r)
		return r;
	if (inbox_kept_too_short(config, config->relay.retain_inbox, warning, sizeof(warning)))
		printable_printf(stderr, "warning: %s", warning);
	printable_printf(stdout, "%s: good: %zu source%s, %zu target%s", input.file,
			 config->sources.count, config->sources.count == 1 ? "" : "s",
			 config->targets.count, config->targets.count == 1 ? "" : "s");
	return OUTBOX_OK;
}

static void show_row(void *context, const char *key, const char *value, const char *from)
{
	struct table *table = context;

	table_cell(table, BOLD, key);
	table_cell(table, PLAIN, *value ? value : NULL);
	table_cell(table, strncmp(from, "default", 7) == 0 ? DIM : PLAIN, from);
}

static void show_json(void *context, const char *key, const char *value, const char *from)
{
	json_array_append_new(context, json_setting(key, value, from));
}

static int run_show(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const struct values *given = values;
	struct table table;
	const char *file = file_of(cli, given);
	json_t *list;
	int r = check_named_once(cli, given, err);

	if (r)
		return r;
	sets_warn(&given->sets);
	r = config_open_told(file, &given->sets, false, &config, err);
	if (r)
		return r;
	if (cli->json) {
		list = json_array();
		r = config_show(config, show_json, list, err);
		if (r == OUTBOX_OK)
			return json_print(json_pack("{s:o, s:o}", "file", json_text(file), "values",
						    list),
					  err);
		json_decref(list);
		return r;
	}
	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	r = config_show(config, show_row, &table, err);
	if (r == OUTBOX_OK)
		table_print(&table, stdout);
	table_deinit(&table);
	return r;
}

static int run_schema(struct cli *cli, void *values, struct outbox_error *err)
{
	json_t *schema = config_json_schema();
	int r;

	(void)values;
	if (cli->json || !schema)
		return json_print(schema, err);
	r = json_dumpf(schema, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	json_decref(schema);
	puts("");
	return r ? outbox_fail(err, OUTBOX_ENOMEM, "cannot write the schema") : OUTBOX_OK;
}

static int run_reference(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(REFERENCE_MAX);

	(void)values;
	config_reference(&text);
	if (text.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (cli->json)
		return json_print(json_pack("{s:o}", "reference", json_text(buf_str(&text))), err);
	fputs(buf_str(&text), stdout);
	return OUTBOX_OK;
}

const struct command cmd_config_check = {
	.name = "config check",
	.group = GROUP_WORK,
	.summary = "find every mistake in a configuration file",
	TAKES_WORDS("[FILE]", 0, 1),
	TAKES_OPTIONS(check_options, struct values),
	.about = "FILE defaults to OUTBOX_CONFIG, else outbox.yaml; - reads stdin. The environment, --set and the files that secrets come from are checked as well. The command writes nothing and, without --connect, connects to nothing. Each mistake is one line on stderr with its line and column; at most 21 are reported.",
	.example =
		"outbox config check outbox.yaml\noutbox config check --connect\noutbox config reference | outbox config check -",
	.exits = "0  good\n2  mistakes, or the file cannot be read\n3  there is no such file",
	.run = run_check,
};

const struct command cmd_config_show = {
	.name = "config show",
	.group = GROUP_WORK,
	.summary = "print every value in effect and where it comes from",
	TAKES_WORDS("[FILE]", 0, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "FILE defaults to OUTBOX_CONFIG, else outbox.yaml. A value comes from --set, else a variable (OUTBOX_RELAY_BATCH is relay.batch, OUTBOX_TARGETS_EVENTS_BATCH is targets.events.batch), else the file, else the default. Secrets are not shown.",
	.example = "outbox config show outbox.yaml\noutbox config show --json",
	.exits = "0  printed\n2  mistakes, or the file cannot be read\n3  there is no such file",
	.run = run_show,
};

const struct command cmd_config_schema = {
	.name = "config schema",
	.group = GROUP_WORK,
	.summary = "print the JSON Schema of configuration files, for editors",
	.example = "outbox config schema > outbox.schema.json",
	.run = run_schema,
};

const struct command cmd_config_reference = {
	.name = "config reference",
	.group = GROUP_WORK,
	.summary = "print a commented file with every key and its default",
	.example = "outbox config reference > outbox.yaml",
	.run = run_reference,
};
