/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse(struct cli *cli, struct outbox_error *err, const char *why)
{
	cli->exit = EXIT_NOT_CONFIRMED;
	return outbox_fail(err, OUTBOX_ECONFLICT, "%s; nothing was changed", why);
}

/* One line from the terminal; false when there is no person to ask. */
static bool ask(const char *prompt, char *answer, int size)
{
	fputs(prompt, stderr);
	fflush(stderr);
	if (!fgets(answer, size, stdin))
		answer[0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] != '\0';
}

static bool person_there(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int confirm_name(struct cli *cli, bool yes, const char *what, const char *name,
		 struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf prompt = BUF_INIT(2000);
	char answer[300];

	if (yes)
		return OUTBOX_OK;
	if (!person_there())
		return refuse(cli, err, "not a terminal: add --yes to confirm");
	printable_wrap(stderr, &(struct wrap){ .width = 80 }, what);
	buf_text(&prompt, "Type its name (");
	printable_append(&prompt, name, strlen(name), UNCUT);
	buf_text(&prompt, ") to continue: ");
	if (!ask(buf_str(&prompt), answer, sizeof(answer)) || strcmp(answer, name) != 0)
		return refuse(cli, err, "the name does not match");
	return OUTBOX_OK;
}

int confirm_yes(struct cli *cli, bool yes, const char *question, struct outbox_error *err)
{
	char answer[16], prompt[400];

	if (yes)
		return OUTBOX_OK;
	if (!person_there())
		return refuse(cli, err,
			      "not a terminal: add --yes to confirm, or preview with --dry-run");
	snprintf(prompt, sizeof(prompt), "%s? [y/N] ", question);
	if (!ask(prompt, answer, sizeof(answer)) ||
	    (strcasecmp(answer, "y") != 0 && strcasecmp(answer, "yes") != 0))
		return refuse(cli, err, "not confirmed");
	return OUTBOX_OK;
}

#define BAR 20
#define EVERY (100 * OUTBOX_MILLISECONDS)

/* " of 100,000  [############--------]" */
static void draw_bar(const struct shown_work *work, int64_t done)
{
	static const char full[] = "####################", rest[] = "--------------------";
	char count[COUNT_TEXT_MAX];
	int n;

	_Static_assert(sizeof(full) == BAR + 1 && sizeof(rest) == BAR + 1, "the bar's length");
	if (work->total <= 0)
		return;
	n = done >= work->total ? BAR : (int)(done * BAR / work->total);
	fprintf(stderr, " of %s  [%.*s%.*s]", count_human(work->total, count), n, full, BAR - n,
		rest);
}

/* "  0:00:02 left", if it goes on like this */
static void show_left(const struct shown_work *work, int64_t done, outbox_time spent)
{
	double left;
	long long seconds;

	if (work->total <= 0 || done <= 0 || done > work->total)
		return;
	left = (double)(work->total - done) * (double)spent / (double)done;
	seconds = (long long)(left / (double)OUTBOX_SECONDS + 0.5);
	fprintf(stderr, "  %lld:%02lld:%02lld left", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void show_work(void *context, int64_t done)
{
	char count[COUNT_TEXT_MAX], rate[COUNT_TEXT_MAX];
	struct shown_work *work = context;
	outbox_time at, spent;

	if (!work->bar)
		return;
	at = mono_now();
	spent = at - work->began;
	if (at - work->shown < EVERY)
		return;
	work->shown = at;
	fprintf(stderr, "\r%s  %s", work->what, count_human(done, count));
	draw_bar(work, done);
	fprintf(stderr, "  %s/s", count_human(spent > 0 ? done * OUTBOX_SECONDS / spent : 0, rate));
	show_left(work, done, spent);
	fputs("\033[K", stderr);
	fflush(stderr);
}

/* Waits until `done` at the rate are due, at least `least`, or for a signal. */
static bool rest_or_end(void *context, int64_t done, outbox_time least)
{
	struct shown_work *work = context;
	outbox_time due;

	if (work->rate > 0) {
		due = work->began +
		      (outbox_time)((double)done / work->rate * (double)OUTBOX_SECONDS) - mono_now();
		least = due > least ? due : least;
	}
	work->signal = signals_wait(&work->signals, least);
	return work->signal != 0;
}

void work_begin(struct shown_work *work, const char *what, int64_t total)
{
	*work = (struct shown_work){ .bulk = { show_work, rest_or_end, work },
				     .what = what,
				     .total = total,
				     .began = mono_now(),
				     .bar = isatty(STDERR_FILENO),
				     .rate = work->rate };
	signals_block(&work->signals);
}

void work_end(struct shown_work *work)
{
	if (work->bar && work->shown)
		fputs("\r\033[K", stderr);
}
