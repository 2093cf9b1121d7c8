/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/sources.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	bool check, sql;
};

static const struct field options[] = {
	OPTION("check", FIELD_BOOL, check, NULL,
	       "only print what would change and what would run; exit status 2 if an upgrade is due"),
	OPTION("sql", FIELD_BOOL, sql, NULL,
	       "with --check: print the whole script that would run, and nothing else"),
};

/* The script that leads from there to here, or what changes tables in it. */
static int read_script(const struct cli *cli, int from, bool brief, char **ret_sql,
		       struct outbox_error *err)
{
	const struct outbox_init_options how = { .struct_size = sizeof(how),
						 .from = from,
						 .brief = brief };
	const char *schema = cli->info.schema;

	return store_script(cli->store->ops, &how, *schema ? schema : NULL, ret_sql, err);
}

static int tell_changes(const struct cli *cli, const char *name, int from, struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *sql = NULL;
	int r = read_script(cli, from, true, &sql, err);

	if (r)
		return r;
	printf("%s: would be upgraded from schema %d to %d; nothing was changed. It would\n"
	       "replace all functions, views and triggers, and run in one transaction:\n"
	       "%s\n"
	       "Run:\n"
	       "  outbox upgrade%s\n"
	       "or run with your own migrations what this prints:\n"
	       "  outbox upgrade --check --sql%s\n",
	       name, from, cli->info.program_version, sql, cli->store_option, cli->store_option);
	return OUTBOX_OK;
}

static int print_upgrade(const struct cli *cli, const char *name, int from, bool check,
			 struct outbox_error *err)
{
	int to = cli->info.program_version;

	if (from == to)
		printf("%s: schema %d is up to date; nothing to do\n", name, from);
	else if (check)
		return tell_changes(cli, name, from, err);
	else
		printf("%s: upgraded from schema %d to %d\n", name, from, to);
	return OUTBOX_OK;
}

static json_t *as_json(const struct cli *cli, int from, bool check, const char *sql)
{
	bool due = from != cli->info.program_version;

	return json_pack("{s:o, s:i, s:i, s:b, s:b, s:o*}", "store", json_text(cli->info.name),
			 "from", from, "to", cli->info.program_version, "changed", !check && due,
			 "due", check && due, "sql", sql ? json_text(sql) : NULL);
}

static int upgrade(struct cli *cli, const char *source, void *values, json_t **ret_json,
		   struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_init_options how = { .struct_size = sizeof(how), .dry_run = given->check };
	_cleanup_(cleanup_free) char *sql = NULL;
	bool due;
	int from, r;

	r = cli_open(cli, OPEN_ANY, err);
	if (r == OUTBOX_OK)
		r = store_upgrade(cli->store, &how, &from, err);
	if (r)
		return r;
	due = given->check && from != cli->info.program_version;
	if (due && !cli->exit)
		cli->exit = EXIT_DUE;
	if (due && (given->sql || cli->json))
		r = read_script(cli, from, false, &sql, err);
	if (r)
		return r;
	if (cli->json)
		*ret_json = as_json(cli, from, given->check, sql);
	else if (given->sql)
		fputs(sql ? sql : "", stdout);
	else
		r = print_upgrade(cli, cli->n_sources > 1 ? source : cli->info.name, from,
				  given->check, err);
	return r;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;

	if (given->sql && !given->check)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--sql works only with --check, which changes nothing");
	return sources_each(cli, upgrade, values, false, err);
}

const struct command cmd_upgrade = {
	.name = "upgrade",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "upgrade an older outbox to this program's schema",
	TAKES_OPTIONS(options, struct values),
	.about = "With --config and without --source all sources are upgraded, one after the other; if one cannot be upgraded, the command says so and goes on with the others.",
	.example = "outbox upgrade --store sqlite:app.db --check\n"
		   "outbox upgrade --store postgres://app@db/shop --check --sql > outbox.sql",
	.exits = "0  the schema is up to date\n2  with --check: an upgrade is due\n"
		 "7  there is no outbox, or its schema is newer than this program",
	.run = run,
};
