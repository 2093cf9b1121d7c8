/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct values {
	struct outbox_rebase how;
	bool yes;
};

static const struct field options[] = {
	OPTION("same-history", FIELD_BOOL, how.same_history, NULL,
	       "the data kept its transaction numbers but moved to another server: after pg_upgrade"),
	OPTION("dry-run", FIELD_BOOL, how.dry_run, NULL,
	       "say what would be done for each lane, change nothing"),
	OPTION_YES,
};

struct telling {
	const struct cli *cli;
	json_t *lanes; /* NULL for people */
	json_t *reason;
	size_t count;
};

/* What the store says: why, then what becomes of each lane. */
static void report_lane(void *context, int level, const char *subject, const char *text)
{
	struct telling *telling = context;

	(void)level;
	telling->count++;
	if (telling->lanes && strcmp(subject, OUTBOX_REBASE_REASON) == 0)
		telling->reason = json_text(text);
	else if (telling->lanes)
		json_array_append_new(telling->lanes,
				      json_pack("{s:o, s:o}", "subject", json_text(subject), "text",
						json_text(text)));
	else
		printable_printf(stdout, "%s: %s", subject, text);
}

static int realign(struct cli *cli, struct values *given, struct telling *telling,
		   struct outbox_error *err)
{
	int r = OUTBOX_OK;

	given->how.struct_size = sizeof(given->how);
	given->how.actor = cli->actor;
	if (!given->how.dry_run)
		r = confirm_name(
			cli, given->yes,
			"This gives the lanes of every target a new position in the log as it is "
			"now. Stop every relay first, and every other database that is a copy of "
			"this one: both would deliver.",
			cli->info.name, err);
	return r ? r : store_rebase(cli->store, &given->how, report_lane, telling, err);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct values *given = values;
	struct telling telling = { .cli = cli };
	int r = cli_open(cli, OPEN_READY, err);

	if (r)
		return r;
	if (cli->json)
		telling.lanes = json_array();
	r = realign(cli, given, &telling, err);
	if (r) {
		json_decref(telling.lanes);
		json_decref(telling.reason);
		return r;
	}
	if (cli->json)
		return json_print(json_pack("{s:o, s:b, s:b, s:o, s:o}", "store",
					    json_text(cli->info.name), "dry_run", given->how.dry_run,
					    "same_history", given->how.same_history, "reason",
					    telling.reason ? telling.reason : json_null(), "lanes",
					    telling.lanes),
				  err);
	if (telling.count == 0)
		puts("Every position is correct; nothing was changed.");
	else if (given->how.dry_run)
		puts("Nothing was changed. Run again with --yes instead of --dry-run.");
	else
		puts("Done. Start the relays again.");
	return OUTBOX_OK;
}

const struct command cmd_realign = {
	.name = "realign",
	.alias = "rebase",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "let relays go on after a database was restored or copied",
	TAKES_OPTIONS(options, struct values),
	.about = "A lane's position refers to places in one log and, on PostgreSQL, to transactions of one server. When a database was restored from a dump, its log was truncated or its sequence was reset, relays refuse its lanes and say so until this command is run. It gives every lane a position that is valid here: nothing is lost, messages are not touched, and what was settled stays settled. Stop the relays first. A copy of a database delivers again what the original delivers. The command was called rebase before; that name still works.",
	.example = "outbox realign --store postgres://app@db/shop --dry-run\n"
		   "outbox realign --store postgres://app@db/shop --yes",
	.exits = "0  done, also when no lane needed it\n10 not confirmed: nothing was changed\n"
		 "13 the lanes of this store cannot be realigned",
	.run = run,
};
