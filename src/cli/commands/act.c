/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requeue, discard and defer: one act with different words, by ids or by filter.
 *
 * By filter it is counted first, then confirmed, then worked off page by page, so that a relay is never kept
 * waiting. A signal ends the work between two pages. What was done is in another state and not selected again, so
 * the same command goes on where this one ended, also after a crash. Only what was there when the count was made is meant:
 * that bound is part of the command that is suggested after an interruption.
 */
#include "operate/act.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/selection.h"
#include "cli/terminal.h"
#include "core/lifecycle.h"

#include <stdio.h>
#include <string.h>

#define PAGE 1000

struct values {
	struct selection select;
	const char *reason;
	outbox_time until;
	double rate;
	bool dry_run, yes;
};

struct act_work {
	struct cli *cli;
	const struct values *given;
	struct outbox_filter filter;
	struct outbox_act act;
	const struct outbox_stats *stats;
	/* what the filter selects */
	size_t count;
	outbox_time oldest;
	struct buf targets; /* "events, partner" */
};

#define HOW_OPTIONS                                                                             \
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL, "say what would be done, change nothing"), \
		OPTION("rate", FIELD_PER_SECOND, rate, "RATE",                                  \
		       "with a filter: at most this rate, 100/s or 3000/min"),                  \
		OPTION("yes", FIELD_BOOL, yes, NULL,                                            \
		       "with a filter: do not ask for confirmation; required without a terminal")

static const struct field requeue_options[] = {
	SELECTION_OPTIONS("failed (default): nothing else can be requeued"),
	OPTION_REASON,
	HOW_OPTIONS,
};

static const struct field discard_options[] = {
	OPTION_REASON_REQUIRED,
	SELECTION_OPTIONS(
		"failed, pending, or why it is pending: new, retry, deferred, parked, paused"),
	OPTION_WHY,
	HOW_OPTIONS,
};

static const struct field defer_options[] = {
	OPTION_REQUIRED("until", FIELD_TIME, until, "TIME",
			"do not send before: +5m or 2026-11-15T18:00:00Z"),
	SELECTION_OPTIONS("pending (default), or why it is pending"),
	OPTION_WHY,
	OPTION_REASON,
	HOW_OPTIONS,
};

/* What was done, for people or programs. */
static int tell_done(struct act_work *work, const struct outbox_acted *acted,
		     struct outbox_error *err)
{
	struct cli *cli = work->cli;
	char count[COUNT_TEXT_MAX];

	if (acted->refused)
		cli->exit = EXIT_CONFLICT;
	if (cli->json)
		return json_print(fields_json(&view_acted,
					      &(struct acted_view){
						      .action = action_names[work->act.action],
						      .dry_run = work->act.dry_run,
						      .acted = *acted }),
				  err);
	printable_printf(stdout, "%s%s %s deliver%s", work->act.dry_run ? "would " : "",
			 (work->act.dry_run ? action_names : action_past)[work->act.action],
			 count_human((int64_t)acted->done, count), acted->done == 1 ? "y" : "ies");
	if (acted->refused)
		printable_printf(stderr, "%zu refused; the first one: %s", acted->refused,
				 acted->why);
	return OUTBOX_OK;
}

static int act_by_ids(struct act_work *work, struct outbox_error *err)
{
	struct outbox_acted acted = { 0 };
	int r;

	work->filter.limit = work->filter.n_ids;
	r = act_page(work->cli->store, &work->act, &acted, err);
	return r ? r : tell_done(work, &acted, err);
}

/* ---- counting ------------------------------------------------------------------------------ */

static void note_count(struct act_work *work, const char *target, const struct outbox_acted *one)
{
	if (!one->done)
		return;
	buf_printf(&work->targets, "%s%s", work->targets.size ? ", " : "", target);
	work->count += one->done;
	if (!work->oldest || (one->oldest && one->oldest < work->oldest))
		work->oldest = one->oldest;
}

/* One dry run for each target counts all, however many there are. */
static int count(struct act_work *work, struct outbox_error *err)
{
	const char *only = work->filter.target;
	int r = OUTBOX_OK;

	work->filter.limit = PAGE;
	work->act.dry_run = true;
	for (size_t i = 0; r == OUTBOX_OK && i < work->stats->n_targets; i++) {
		const char *name = work->stats->targets[i].name;
		struct outbox_acted one;

		if (only && strcmp(only, name) != 0)
			continue;
		work->filter.target = name;
		r = act_page(work->cli->store, &work->act, &one, err);
		if (r == OUTBOX_OK)
			note_count(work, name, &one);
	}
	work->filter.target = only;
	work->act.dry_run = work->given->dry_run;
	return r;
}

/* "1,204 deliveries to partner (oldest 3 h)" */
static void describe(const struct act_work *work, char *out, size_t size)
{
	char number[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];

	snprintf(out, size, "%s deliver%s to %.100s (oldest %s)",
		 count_human((int64_t)work->count, number), work->count == 1 ? "y" : "ies",
		 buf_str(&work->targets), age_text(work->stats->store_now, work->oldest, age));
}

/* ---- going on later ------------------------------------------------------------------------ */

static void add_option(struct buf *line, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(line, " --%s ", name);
	buf_shell_word(line, value);
}

static void add_time(struct buf *line, const char *name, outbox_time value)
{
	char text[TIME_TEXT_MAX];

	if (value)
		add_option(line, name, time_format(value, text));
}

/* The command that does the rest, and nothing but the rest. */
static void resume_command(const struct act_work *work, struct buf *line)
{
	const struct values *given = work->given;
	char rate[40];

	buf_printf(line, "outbox %s", action_names[work->act.action]);
	add_option(line, "state", given->select.state);
	add_option(line, "why", given->select.why);
	add_option(line, "target", given->select.target);
	add_option(line, "type", given->select.type);
	add_option(line, "key", given->select.key);
	add_time(line, "created-before", work->filter.created_before);
	add_time(line, "changed-before", work->filter.changed_before);
	add_time(line, "until", given->until);
	add_option(line, "reason", given->reason);
	if (given->rate > 0) {
		snprintf(rate, sizeof(rate), "%.0f/min", given->rate * 60);
		add_option(line, "rate", rate);
	}
	if (given->yes)
		buf_text(line, " --yes");
	buf_text(line, work->cli->store_option);
}

static int tell_interrupted(struct act_work *work, const struct outbox_acted *total, int number,
			    struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(8192);
	char done[COUNT_TEXT_MAX], all[COUNT_TEXT_MAX];
	struct acted_view view = { .action = action_names[work->act.action],
				   .acted = *total,
				   .before = work->filter.created_before };

	work->cli->exit = EXIT_SIGNAL + number;
	printable_printf(
		stderr,
		"interrupted: %s %s of %s deliveries, each of them completely. To do the rest, run:",
		action_past[work->act.action], count_human((int64_t)total->done, done),
		count_human((int64_t)work->count, all));
	resume_command(work, &line);
	printable_line(stderr, "  ", buf_str(&line));
	return work->cli->json ? json_print(fields_json(&view_acted, &view), err) : OUTBOX_OK;
}

/* ---- working off --------------------------------------------------------------------------- */

static int work_off(struct act_work *work, struct outbox_error *err)
{
	struct shown_work shown = { .rate = work->given->rate };
	struct outbox_acted total;
	int r;

	work->filter.limit =
		shown.rate > 0 && shown.rate / 10 < PAGE ? (size_t)(shown.rate / 10) + 1 : PAGE;
	work_begin(&shown, action_past[work->act.action], (int64_t)work->count);
	r = act_all(work->cli->store, &work->act, &shown.bulk, &total, err);
	work_end(&shown);
	if (r)
		return r;
	return shown.signal ? tell_interrupted(work, &total, shown.signal, err)
			    : tell_done(work, &total, err);
}

static int act_by_filter(struct act_work *work, struct outbox_error *err)
{
	const char *name = action_names[work->act.action];
	char what[250], question[300];
	int r = count(work, err);

	if (r)
		return r;
	if (work->count == 0 || (work->given->dry_run && work->cli->json))
		return tell_done(work,
				 &(struct outbox_acted){ .done = work->count, .oldest = work->oldest },
				 err);
	describe(work, what, sizeof(what));
	if (work->given->dry_run) {
		printable_printf(
			stdout,
			"would %s %s. Run again without --dry-run; add --rate 100/s to limit the rate.",
			name, what);
		return OUTBOX_OK;
	}
	snprintf(question, sizeof(question), "%s %s", name, what);
	r = confirm_yes(work->cli, work->given->yes, question, err);
	return r ? r : work_off(work, err);
}

/* ---- both ---------------------------------------------------------------------------------- */

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	int action = cli->command == &cmd_requeue   ? OUTBOX_REQUEUE
		     : cli->command == &cmd_discard ? OUTBOX_DISCARD
						    : OUTBOX_DEFER;
	struct act_work work = { .cli = cli,
				 .given = given,
				 .targets = BUF_INIT(1000),
				 .act = { .action = action,
					  .reason = given->reason,
					  .until = given->until,
					  .dry_run = given->dry_run } };
	struct outbox_stats stats;
	int r = selection_filter(&given->select, NAMED_AS_OPTION, &work.filter, err);

	if (r)
		return r;
	work.filter.ids = cli->words;
	work.filter.n_ids = cli->n_words;
	r = act_check(&work.act, NAMED_AS_OPTION, wall_now(), &work.filter, err);
	if (r == OUTBOX_OK)
		r = cli_open_target(cli, given->select.target, &stats, err);
	if (r == OUTBOX_OK)
		r = act_settle(cli->store, &stats, action, NAMED_AS_OPTION, &work.filter, err);
	if (r)
		return r;
	work.act.actor = cli->actor;
	work.act.filter = &work.filter;
	work.stats = &stats;
	r = cli->n_words ? act_by_ids(&work, err) : act_by_filter(&work, err);
	buf_deinit(&work.targets);
	return r;
}

const struct command cmd_requeue = {
	.name = "requeue",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "try failed deliveries again",
	TAKES_WORDS("[ID...]", 0, 1000),
	TAKES_OPTIONS(requeue_options, struct values),
	.about = "Attempts start at 0 and the delivery is due at once. If several people requeue the same delivery, exactly one succeeds. With several targets, ids require --target.",
	.example = "outbox requeue 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --target partner\n"
		   "outbox requeue --state failed --target partner --type 'order.*' --dry-run",
	.exits = "0  requeued (or nothing matches the filter)\n3  no such message, target or delivery\n"
		 "4  an id's delivery is not failed\n10 not confirmed: nothing was changed\n"
		 "130  interrupted: run the command that it printed to do the rest",
	.run = run,
};

const struct command cmd_discard = {
	.name = "discard",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "give up pending or failed deliveries for good",
	TAKES_WORDS("[ID...]", 0, 1000),
	TAKES_OPTIONS(discard_options, struct values),
	.about = "This is final: a discarded delivery cannot be requeued. The message stays until retention removes it; other targets still get it. With several targets, ids require --target.",
	.example = "outbox discard 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --reason \"test data\"\n"
		   "outbox discard --state failed --target partner --reason \"test data\" --dry-run",
	.exits = "0  discarded (or nothing matches the filter)\n3  no such message, target or delivery\n"
		 "4  delivered, discarded or being sent\n10 not confirmed: nothing was changed\n"
		 "130  interrupted: run the command that it printed to do the rest",
	.run = run,
};

const struct command cmd_defer = {
	.name = "defer",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "put a pending delivery off until a later time",
	TAKES_WORDS("[ID...]", 0, 1000),
	TAKES_OPTIONS(defer_options, struct values),
	.about = "Attempts stay as they are. Until that time the delivery is outside its key's order: later messages of its key go first. With several targets, ids require --target.",
	.example = "outbox defer 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --until +2h\n"
		   "outbox defer --target partner --type 'report.*' --until +8h --dry-run",
	.exits =
		"0  deferred\n3  no such message, target or delivery\n4  not pending, or being sent\n"
		"10 not confirmed: nothing was changed\n130  interrupted: run the command that it printed to do the rest",
	.run = run,
};
