/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
