/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "cli/format.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	const char *reason;
};

static const struct field options[] = {
	OPTION_REASON_REQUIRED,
};

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_cancel cancel = { .struct_size = sizeof(cancel),
					.id = cli->words[0],
					.reason = given->reason };
	bool done = false;
	int r = cli_open(cli, OPEN_READY, err);

	if (r)
		return r;
	cancel.actor = cli->actor;
	r = store_cancel(cli->store, &cancel, &done, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_cancelled(cancel.id, done), err);
	printable_printf(stdout,
			 done ? "%s was cancelled: no target sends it"
			      : "%s was cancelled before; nothing was changed",
			 cancel.id);
	return OUTBOX_OK;
}

const struct command cmd_cancel = {
	.name = "cancel",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "cancel a scheduled message before it is due",
	TAKES_WORDS("ID", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "Only a message that is due later (due_at) and was sent nowhere can be cancelled. Its deliveries are discarded, and targets that are registered later do not send it either. Applications cancel in their own transaction: outbox_cancel() on PostgreSQL, outbox_cancel_pg() and outbox_cancel_sqlite() in C.",
	.example = "outbox cancel reminder-42 --reason \"the order was paid\"",
	.exits = "0  cancelled, now or before\n3  no such message\n4  it is not scheduled, is due, being sent, or was sent",
	.run = run,
};
