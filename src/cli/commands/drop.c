/* SPDX-License-Identifier: Apache-2.0 */
/* drop and truncate: the two commands that destroy messages, both only after the store's name was typed. */
#include "base/printable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	bool yes, inbox;
};

static const struct field options[] = {
	OPTION_YES,
};

static const struct field drop_options[] = {
	OPTION("inbox", FIELD_BOOL, inbox, NULL, "remove the inbox and nothing else"),
	OPTION_YES,
};

/* The outbox, if there is one, stays. */
static int drop_inbox(struct cli *cli, const struct values *given, struct outbox_error *err)
{
	struct outbox_inbox_stats stats;
	char what[300], count[COUNT_TEXT_MAX];
	int r = cli_open(cli, OPEN_ANY, err);

	if (r == OUTBOX_OK)
		r = store_inbox_stats(cli->store, &stats, err);
	if (r)
		return r;
	if (!stats.there)
		return outbox_fail(err, OUTBOX_ESCHEMA, "%s: there is no inbox", cli->info.name);
	snprintf(what, sizeof(what),
		 "This removes the inbox from \"%s\", with %s id%s: whatever comes again is processed again. This cannot be undone.",
		 cli->info.name, capped_text(stats.rows, count), stats.rows == 1 ? "" : "s");
	r = confirm_name(cli, given->yes, what, cli->info.name, err);
	if (r == OUTBOX_OK)
		r = store_inbox_drop(cli->store, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:o, s:I}", "store", json_text(cli->info.name), "ids",
					    (json_int_t)stats.rows),
				  err);
	printable_printf(stdout, "%s: removed the inbox (%s id%s in it)", cli->info.name, count,
			 stats.rows == 1 ? " was" : "s were");
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	bool rows_only = cli->command == &cmd_truncate;
	char what[300], count[COUNT_TEXT_MAX];
	struct outbox_stats stats;
	int r;

	if (given->inbox)
		return drop_inbox(cli, given, err);
	r = cli_open_target(cli, NULL, &stats, err);
	if (r)
		return r;
	snprintf(what, sizeof(what),
		 "This removes %s from \"%s\": %s message%s, every receipt, delivery and audit row. This cannot be undone.",
		 rows_only ? "every row of the outbox" : "the whole outbox", cli->info.name,
		 count_human(stats.messages, count), stats.messages == 1 ? "" : "s");
	r = confirm_name(cli, given->yes, what, cli->info.name, err);
	if (r)
		return r;
	r = rows_only ? store_truncate(cli->store, err) : store_drop(cli->store, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:o, s:I}", "store", json_text(cli->info.name),
					    "messages", (json_int_t)stats.messages),
				  err);
	printable_printf(stdout, "%s: %s (%s message%s in it)", cli->info.name,
			 rows_only ? "emptied the outbox" : "removed the outbox", count,
			 stats.messages == 1 ? " was" : "s were");
	return OUTBOX_OK;
}

const struct command cmd_drop = {
	.name = "drop",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE | COMMAND_HARMFUL,
	.summary = "remove the outbox, with every message, from a database",
	TAKES_OPTIONS(drop_options, struct values),
	.about = "Your own tables are not touched, and neither is an inbox, which outbox drop --inbox removes. Asks for the store's name first.",
	.example = "outbox drop --store sqlite:app.db --yes",
	.exits = "0  removed\n10 not confirmed: nothing was changed",
	.run = run,
};

const struct command cmd_truncate = {
	.name = "truncate",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE | COMMAND_HARMFUL,
	.summary = "remove every row of the outbox, keep its tables",
	TAKES_OPTIONS(options, struct values),
	.about = "For test databases; an inbox stays as it is. Asks for the store's name first.",
	.example = "outbox truncate --store sqlite:app.db --yes",
	.exits = "0  emptied\n10 not confirmed: nothing was changed",
	.run = run,
};
