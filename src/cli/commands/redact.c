/* SPDX-License-Identifier: Apache-2.0 */
/* redact and cancel: what is done to one message as a whole, for a reason. */
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

static int redact(const struct cli *cli, const char *reason, bool *ret_done, struct outbox_error *err)
{
	const struct outbox_redact how = { .struct_size = sizeof(how),
					   .id = cli->words[0],
					   .actor = cli->actor,
					   .reason = reason };

	return store_redact(cli->store, &how, ret_done, err);
}

static int cancel(const struct cli *cli, const char *reason, bool *ret_done, struct outbox_error *err)
{
	const struct outbox_cancel how = { .struct_size = sizeof(how),
					   .id = cli->words[0],
					   .actor = cli->actor,
					   .reason = reason };

	return store_cancel(cli->store, &how, ret_done, err);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	const bool cancels = cli->command == &cmd_cancel;
	const char *id = cli->words[0], *said;
	bool done = false;
	int r = cli_open(cli, OPEN_READY, err);

	if (r == OUTBOX_OK)
		r = (cancels ? cancel : redact)(cli, given->reason, &done, err);
	if (r)
		return r;
	if (cli->json)
		return json_print((cancels ? json_cancelled : json_redacted)(id, done), err);
	if (cancels)
		said = done ? " was cancelled: no target sends it"
			    : " was cancelled before; nothing was changed";
	else
		said = done ? ": its payload, key, headers, subject and recorded errors were removed"
			    : " was redacted before; nothing was changed";
	printable_printf(stdout, "%s%s", id, said);
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

const struct command cmd_redact = {
	.name = "redact",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "remove the personal data from a finished message, for good",
	TAKES_WORDS("ID", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "Payload, headers, subject and key are replaced; id, type and times stay. Every delivery must be delivered or discarded. This does not reach what targets have received, archives or backups.",
	.example = "outbox redact 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --reason \"erasure 17\"",
	.exits = "0  redacted, now or before\n3  no such message\n4  a delivery is not finished",
	.run = run,
};
