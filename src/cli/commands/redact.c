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
	struct outbox_redact redact = { .struct_size = sizeof(redact),
					.id = cli->words[0],
					.reason = given->reason };
	bool done = false;
	int r = cli_open(cli, OPEN_READY, err);

	if (r)
		return r;
	redact.actor = cli->actor;
	r = store_redact(cli->store, &redact, &done, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_redacted(redact.id, done), err);
	printable_printf(stdout,
			 done ? "%s: its payload, key, headers, subject and recorded errors were removed"
			      : "%s was redacted before; nothing was changed",
			 redact.id);
	return OUTBOX_OK;
}

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
