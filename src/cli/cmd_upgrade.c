/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/sources.h"

#include <stdio.h>

struct values {
	bool check;
};

static const struct option options[] = {
	OPTION("check", OPTION_FLAG, struct values, check, NULL,
	       "only say what would change; exit status 2 when something would"),
};

static void tell(const struct cli *cli, const char *name, int from, bool check)
{
	int to = cli->info.program_version;

	if (from == to)
		printf("%s: schema %d is this program's; nothing to do\n", name, from);
	else if (check)
		printf("%s: would be upgraded from schema %d to %d; nothing was changed. Run:\n"
		       "  outbox upgrade%s\n",
		       name, from, to, cli->store_option);
	else
		printf("%s: upgraded from schema %d to %d\n", name, from, to);
}

static int upgrade(struct cli *cli, const char *source, void *values, json_t **ret_json,
		   struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_init_options how = { .struct_size = sizeof(how), .dry_run = given->check };
	bool due;
	int from, r;

	r = cli_open(cli, OPEN_ANY, err);
	if (r)
		return r;
	r = cli->store->ops->upgrade(cli->store, &how, &from, err);
	if (r)
		return r;
	due = from != cli->info.program_version;
	if (given->check && due && !cli->exit)
		cli->exit = EXIT_DUE;
	if (cli->json)
		*ret_json =
			json_pack("{s:o, s:i, s:i, s:b, s:b}", "store", json_text(cli->info.name),
				  "from", from, "to", cli->info.program_version, "changed",
				  !given->check && due, "due", given->check && due);
	else
		tell(cli, cli->n_sources > 1 ? source : cli->info.name, from, given->check);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	return sources_each(cli, upgrade, values, false, err);
}

const struct command cmd_upgrade = {
	.name = "upgrade",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "bring an older outbox to this program's schema",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct values),
	.about = "With --config and without --source all sources are upgraded, one after the other; one that cannot be is told, and the others are.",
	.example = "outbox upgrade --store sqlite:app.db --check",
	.exits = "0  the schema is this program's\n2  with --check: an upgrade is due\n"
		 "7  there is no outbox, or its schema is newer than this program",
	.run = run,
};
