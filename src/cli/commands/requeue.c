/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/act.h"

static const struct field options[] = {
	SELECTION_OPTIONS(struct act_values, "failed (default): nothing else can be requeued"),
	OPTION("dry-run", FIELD_BOOL, struct act_values, dry_run, NULL,
	       "say what would be done, change nothing"),
	OPTION("rate", FIELD_PER_SECOND, struct act_values, rate, "RATE",
	       "by filter: not faster than this, 100/s or 3000/min"),
	OPTION("reason", FIELD_TEXT, struct act_values, reason, "TEXT", "why, for the audit"),
	OPTION("yes", FIELD_BOOL, struct act_values, yes, NULL,
	       "by filter: do not ask; needed where there is no terminal"),
};

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	return act_run(cli, OUTBOX_REQUEUE, values, err);
}

const struct command cmd_requeue = {
	.name = "requeue",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "try failed deliveries again",
	.words = "[ID...]",
	.max_words = 1000,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct act_values),
	.about = "Attempts start at 0 and the delivery is due at once. Of several people who requeue the same delivery exactly one succeeds. With several targets, ids want --target.",
	.example = "outbox requeue 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --target partner\n"
		   "outbox requeue --state failed --target partner --type 'order.*' --dry-run",
	.exits = "0  requeued (or nothing matches the filter)\n3  no such message or target\n"
		 "4  an id's delivery is not failed\n10 not confirmed: nothing was changed\n"
		 "130  interrupted: what was said then does the rest",
	.run = run,
};
