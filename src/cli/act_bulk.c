/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts by filter, on one delivery or on a million. Counted first, then confirmed, then worked off in
 * pages, each a transaction of its own, so that a relay is never kept waiting. A signal ends the work
 * between two pages. What was done is in another state and not selected again, so the same command goes
 * on where this one ended, also after a crash.
 *
 * Only what was there when the count was made is meant: neither what is published later nor what fails
 * again meanwhile. That bound is part of the command that is suggested after an interruption.
 */
#include "cli/act.h"

#include "base/safe.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/signals.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>

#define PAGE 1000

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

	work->act.dry_run = true;
	for (size_t i = 0; r == OUTBOX_OK && i < work->stats->n_targets; i++) {
		const char *name = work->stats->targets[i].name;
		struct outbox_acted one;

		if (only && strcmp(only, name) != 0)
			continue;
		work->filter.target = name;
		r = act_work_page(work, PAGE, &one, err);
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
	safe_shell_word(line, value);
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
	const struct act_values *given = work->given;
	char rate[40];

	buf_printf(line, "outbox %s", work->verb->now);
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
	struct acted_view view = { .action = work->verb->now,
				   .acted = *total,
				   .before = work->filter.created_before };

	work->cli->exit = EXIT_SIGNAL + number;
	view.acted.more = true;
	safe_say(stderr, "interrupted: %s %s of %s deliveries; each of them wholly. To do the rest:",
		 work->verb->past, count_human((int64_t)total->done, done),
		 count_human((int64_t)work->count, all));
	resume_command(work, &line);
	safe_line(stderr, "  ", buf_str(&line));
	return work->cli->json ? json_print(json_acted(&view), err) : OUTBOX_OK;
}

/* ---- working off --------------------------------------------------------------------------- */

/* Waits until `done` at this rate are due, at least `wait`, or for a signal, which it returns. */
static int keep_rate(double rate, outbox_time began, size_t done, outbox_time wait,
		     const sigset_t *signals)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time due;

	if (rate > 0) {
		due = began + (outbox_time)((double)done / rate * (double)OUTBOX_SECONDS) -
		      clock->mono(clock);
		wait = due > wait ? due : wait;
	}
	return stop_wait(signals, wait);
}

static void add_up(struct outbox_acted *total, const struct outbox_acted *one)
{
	total->done += one->done;
	if (!total->oldest || (one->oldest && one->oldest < total->oldest))
		total->oldest = one->oldest;
}

/* *ret_signal: what ended it early; 0: nothing is left. */
static int work_off(struct act_work *work, struct outbox_acted *total, int *ret_signal,
		    struct outbox_error *err)
{
	double rate = work->given->rate;
	size_t page = rate > 0 && rate / 10 < PAGE ? (size_t)(rate / 10) + 1 : PAGE;
	outbox_time began = outbox_clock_system()->mono(outbox_clock_system());
	struct outbox_acted acted = { .more = true };
	char cursor[ACT_CURSOR_MAX];
	struct progress progress;
	sigset_t signals;
	int number = 0, r = OUTBOX_OK;

	stop_block(&signals);
	progress_start(&progress, work->verb->past, (int64_t)work->count);
	while (acted.more && !number) {
		r = act_work_page(work, page, &acted, err);
		if (r)
			break;
		add_up(total, &acted);
		progress_show(&progress, (int64_t)total->done);
		/* behind the page before, so that what was done is not passed over again and again */
		acted.more = act_next(&acted, &work->filter, cursor);
		if (acted.more)
			number = keep_rate(rate, began, total->done, acted.rest, &signals);
	}
	work->filter.cursor = NULL;
	progress_end(&progress);
	*ret_signal = number;
	if (r && total->done)
		return outbox_wrap(err,
				   "after %zu deliver%s, which are done; the same command goes on",
				   total->done, total->done == 1 ? "y" : "ies");
	return r;
}

int act_by_filter(struct act_work *work, struct outbox_error *err)
{
	struct outbox_acted total = { 0 };
	char what[250], question[300];
	int number = 0, r;

	/* what is published or fails after it was counted was not confirmed */
	act_bound(work->act.action, work->stats->store_now, &work->filter);
	r = count(work, err);
	if (r)
		return r;
	total.done = work->count;
	total.oldest = work->oldest;
	if (work->count == 0 || (work->given->dry_run && work->cli->json))
		return act_finish(work, &total, err);
	describe(work, what, sizeof(what));
	if (work->given->dry_run) {
		safe_say(stdout,
			 "would %s %s. Run again without --dry-run; add --rate 100/s to go gently.",
			 work->verb->now, what);
		return OUTBOX_OK;
	}
	snprintf(question, sizeof(question), "%s %s", work->verb->now, what);
	r = confirm_yes(work->cli, work->given->yes, question, err);
	total = (struct outbox_acted){ 0 };
	if (r == OUTBOX_OK)
		r = work_off(work, &total, &number, err);
	if (r == OUTBOX_OK && number)
		return tell_interrupted(work, &total, number, err);
	return r ? r : act_finish(work, &total, err);
}
