/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/act.h"

static const struct field options[] = {
	OPTION_REQUIRED("reason", FIELD_TEXT, struct act_values, reason, "TEXT",
			"why, for the audit"),
	SELECTION_OPTIONS(
		struct act_values,
		"failed, pending, or why it is pending: new, retry, deferred, parked, paused"),
	OPTION("dry-run", FIELD_BOOL, struct act_values, dry_run, NULL,
	       "say what would be done, change nothing"),
	OPTION("rate", FIELD_PER_SECOND, struct act_values, rate, "RATE",
	       "by filter: not faster than this, 100/s or 3000/min"),
	OPTION("yes", FIELD_BOOL, struct act_values, yes, NULL,
	       "by filter: do not ask; needed where there is no terminal"),
};

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	return act_run(cli, OUTBOX_DISCARD, values, err);
}

const struct command cmd_discard = {
	.name = "discard",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "never deliver pending or failed deliveries",
	.words = "[ID...]",
	.max_words = 1000,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct act_values),
	.about = "For good: a discarded delivery cannot be requeued. The message stays until retention; other targets still get it. With several targets, ids want --target.",
	.example = "outbox discard 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --reason \"test data\"\n"
		   "outbox discard --state failed --target partner --reason \"test data\" --dry-run",
	.exits = "0  discarded (or nothing matches the filter)\n3  no such message or target\n"
		 "4  delivered, discarded or being sent\n10 not confirmed: nothing was changed\n"
		 "130  interrupted: what was said then does the rest",
	.run = run,
};
