/* SPDX-License-Identifier: Apache-2.0 */
/* pause and resume: the same act in two directions. */
#include "cli/cli.h"
#include "cli/format.h"
#include "operate/act.h"

#include <stdio.h>
#include <string.h>

struct values {
	const char *reason, *target;
};

#define TARGET_OPTION OPTION("target", FIELD_TEXT, target, "NAME", "another way to give TARGET")

static const struct field pause_options[] = {
	OPTION_REQUIRED("reason", FIELD_TEXT, reason, "TEXT", "why, for people who look later"),
	TARGET_OPTION,
};

static const struct field resume_options[] = {
	OPTION_REASON,
	TARGET_OPTION,
};

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	bool pause = cli->command == &cmd_pause;
	const char *name = cli->n_words ? cli->words[0] : given->target;
	struct act_pause how = { .target = name, .pause = pause, .reason = given->reason };
	struct outbox_stats stats;
	bool changed;
	int r;

	if (!name)
		return outbox_fail(err, OUTBOX_EINVAL, "TARGET is missing: outbox %s TARGET",
				   cli->command->name);
	if (given->target && strcmp(given->target, name) != 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "TARGET and --target differ; give one of them");
	r = cli_open_target(cli, name, &stats, err);
	how.actor = cli->actor;
	if (r == OUTBOX_OK)
		r = act_pause(cli->store, &stats, &how, &changed, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_paused(name, pause, changed), err);
	if (!changed)
		printf("%s was %s already; nothing changed\n", name, pause ? "paused" : "running");
	else if (pause)
		printf("%s is paused: the batch in flight ends, nothing new is sent\n", name);
	else
		printf("%s is resumed\n", name);
	return OUTBOX_OK;
}

const struct command cmd_pause = {
	.name = "pause",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "stop sending to a target until it is resumed",
	TAKES_WORDS("TARGET", 0, 1),
	TAKES_OPTIONS(pause_options, struct values),
	.about = "Messages wait in the log; nothing is lost and no attempts are charged. Other targets go on.",
	.example = "outbox pause partner --reason \"their maintenance until 18:00\"",
	.exits = "0  paused\n3  no such target",
	.run = run,
};

const struct command cmd_resume = {
	.name = "resume",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "send to a paused target again",
	TAKES_WORDS("TARGET", 0, 1),
	TAKES_OPTIONS(resume_options, struct values),
	.example = "outbox resume partner",
	.exits = "0  running\n3  no such target",
	.run = run,
};
