/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/act.h"

static const struct option options[] = {
	OPTION_REQUIRED("until", OPTION_TIME, struct act_values, until, "TIME",
			"not before: +5m or 2026-11-15T18:00:00Z"),
	OPTION("target", OPTION_TEXT, struct act_values, select.target, "NAME",
	       "which delivery; wanted when there are several targets"),
	OPTION("reason", OPTION_TEXT, struct act_values, reason, "TEXT", "why, for the audit"),
	OPTION("dry-run", OPTION_FLAG, struct act_values, dry_run, NULL,
	       "say what would be done, change nothing"),
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
	.words = "ID...",
	.min_words = 1,
	.max_words = 1000,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct act_values),
	.about = "Attempts stay as they are. Until then it is outside its key's order: later messages of its key go first.",
	.example = "outbox defer 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --until +2h",
	.exits = "0  deferred\n3  no such message or target\n4  not pending, or being sent",
	.run = run,
};
