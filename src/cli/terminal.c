/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "base/buf.h"
#include "base/safe.h"
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
	safe_wrap(stderr, &(struct wrap){ .width = 80 }, what);
	buf_text(&prompt, "Type its name, ");
	safe_append(&prompt, name, strlen(name), UNCUT);
	buf_text(&prompt, ", to go on: ");
	if (!ask(buf_str(&prompt), answer, sizeof(answer)) || strcmp(answer, name) != 0)
		return refuse(cli, err, "that is not its name");
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

#define BAR 30
#define EVERY (100 * OUTBOX_MILLISECONDS)

static outbox_time now(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock);
}

void progress_start(struct progress *progress, const char *what, int64_t total)
{
	*progress = (struct progress){
		.what = what, .total = total, .began = now(), .on = isatty(STDERR_FILENO)
	};
}

static void bar(const struct progress *progress, int64_t done)
{
	static const char full[] = "##############################";
	static const char rest[] = "..............................";
	int n;

	_Static_assert(sizeof(full) == BAR + 1 && sizeof(rest) == BAR + 1, "the bar's length");
	if (progress->total <= 0)
		return;
	n = done >= progress->total ? BAR : (int)(done * BAR / progress->total);
	fprintf(stderr, "[%.*s%.*s] ", n, full, BAR - n, rest);
}

void progress_show(struct progress *progress, int64_t done)
{
	char count[COUNT_TEXT_MAX], rate[COUNT_TEXT_MAX];
	outbox_time at = now(), spent = at - progress->began;

	if (!progress->on || at - progress->shown < EVERY)
		return;
	progress->shown = at;
	fputs("\r", stderr);
	bar(progress, done);
	fprintf(stderr, "%s %s, %s/s\033[K", progress->what, count_human(done, count),
		count_human(spent > 0 ? done * OUTBOX_SECONDS / spent : 0, rate));
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->on && progress->shown)
		fputs("\r\033[K", stderr);
}

/* ---- work in bulk -------------------------------------------------------------------------- */

static void show_work(void *context, int64_t done)
{
	progress_show(&((struct shown_work *)context)->progress, done);
}

/* Waits until `done` at the rate are due, at least `least`, or for a signal. */
static bool rest_or_end(void *context, int64_t done, outbox_time least)
{
	struct shown_work *work = context;
	outbox_time due;

	if (work->rate > 0) {
		due = work->began +
		      (outbox_time)((double)done / work->rate * (double)OUTBOX_SECONDS) - now();
		least = due > least ? due : least;
	}
	work->signal = stop_wait(&work->signals, least);
	return work->signal != 0;
}

void work_begin(struct shown_work *work, const char *what, int64_t total)
{
	work->bulk = (struct bulk){ show_work, rest_or_end, work };
	work->began = now();
	work->signal = 0;
	stop_block(&work->signals);
	progress_start(&work->progress, what, total);
}

void work_end(struct shown_work *work)
{
	progress_end(&work->progress);
}
