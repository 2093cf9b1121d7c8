/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/act.h"

static const struct field options[] = {
	OPTION_REQUIRED("until", FIELD_TIME, struct act_values, until, "TIME",
			"not before: +5m or 2026-11-15T18:00:00Z"),
	SELECTION_OPTIONS(struct act_values, "pending (default), or why it is pending"),
	OPTION("reason", FIELD_TEXT, struct act_values, reason, "TEXT", "why, for the audit"),
	OPTION("dry-run", FIELD_BOOL, struct act_values, dry_run, NULL,
	       "say what would be done, change nothing"),
	OPTION("rate", FIELD_PER_SECOND, struct act_values, rate, "RATE",
	       "by filter: not faster than this, 100/s or 3000/min"),
	OPTION("yes", FIELD_BOOL, struct act_values, yes, NULL,
	       "by filter: do not ask; needed where there is no terminal"),
};

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct act_values *given = values;
	struct outbox_clock *clock = outbox_clock_system();

	if (given->until <= clock->wall(clock))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--until: lies in the past; write a time to come, like +5m");
	return act_run(cli, OUTBOX_DEFER, values, err);
}

const struct command cmd_defer = {
	.name = "defer",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "put a pending delivery off until a later time",
	.words = "[ID...]",
	.max_words = 1000,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct act_values),
	.about = "Attempts stay as they are. Until then it is outside its key's order: later messages of its key go first. With several targets, ids want --target.",
	.example = "outbox defer 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --until +2h\n"
		   "outbox defer --target partner --type 'report.*' --until +8h --dry-run",
	.exits = "0  deferred\n3  no such message or target\n4  not pending, or being sent\n"
		 "10 not confirmed: nothing was changed\n130  interrupted: what was said then does the rest",
	.run = run,
};
