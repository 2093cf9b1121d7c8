/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/purge.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/terminal.h"

#include <stdio.h>

struct values {
	struct outbox_purge request;
	const char *archive;
	bool dry_run;
};

static const struct field options[] = {
	OPTION("delivered-before", FIELD_AGO, request.delivered_before, "AGE",
	       "messages delivered to every target longer ago than this: 7d, or a time"),
	OPTION("failed-before", FIELD_AGO, request.failed_before, "AGE",
	       "also messages with a delivery that failed longer ago than this: 30d, or a time"),
	OPTION("archive", FIELD_TEXT, archive, "FILE",
	       "first write them to this new file, as CloudEvents lines (app.jsonl.zst)"),
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL, "count what would be removed, change nothing"),
};

struct purge {
	struct cli *cli;
	struct outbox_purge request;
	int64_t found; /* messages archived, or counted */
	struct outbox_purged removed;
	bool no_target;
};

static void tell_nothing(const struct purge *purge, const struct holds *holds)
{
	puts(purge->no_target
		     ? "nothing is purged while no target is registered: messages wait for one"
	     : holds->count ? "nothing can be purged"
			    : "nothing is old enough to purge");
}

static int print_summary(struct purge *purge, const struct values *given, struct outbox_error *err)
{
	const struct outbox_purged *gone = &purge->removed;
	char count[COUNT_TEXT_MAX], failed[COUNT_TEXT_MAX];
	int64_t n = given->dry_run ? purge->found : gone->messages;
	struct holds holds = { 0 };
	outbox_time now;
	/* why there is something left that is old enough */
	int r = holds_read(purge->cli, &purge->request, &holds, &now, err);

	if (r)
		return r;
	if (purge->cli->json) {
		struct purged_view view = { .dry_run = given->dry_run, .purged = *gone };
		json_t *object;

		view.purged.messages = n;
		view.archived = given->dry_run ? 0 : purge->found;
		view.archive = view.archived ? given->archive : NULL;
		object = fields_json(&view_purged, &view);
		json_object_set_new(object, "held_back", holds_json(&holds));
		return json_print(object, err);
	}
	count_human(n, count);
	if (n == 0)
		tell_nothing(purge, &holds);
	else if (given->dry_run)
		printable_printf(stdout, "would purge %s message%s. Run again without --dry-run.",
				 count, n == 1 ? "" : "s");
	else
		printable_printf(stdout, "purged %s message%s (%s with a failed delivery)%s%s",
				 count, n == 1 ? "" : "s", count_human(gone->failed, failed),
				 given->archive ? ", kept in " : "",
				 given->archive ? given->archive : "");
	holds_print(&holds, now);
	return OUTBOX_OK;
}

/* The end of one part of the work. Signals are obeyed between pages: a draft of an archive must not stay behind. */
static int finish_part(struct purge *purge, struct shown_work *work, int r)
{
	work_end(work);
	if (work->signal)
		purge->cli->exit = EXIT_SIGNAL + work->signal;
	return r;
}

static int count_all(struct purge *purge, struct outbox_error *err)
{
	struct outbox_purged would = { 0 };
	struct shown_work work = { 0 };
	int r;

	work_begin(&work, "counted", 0);
	r = purge_count(purge->cli->store, &purge->request, &work.bulk, &would, err);
	purge->found = would.messages;
	return finish_part(purge, &work, r);
}

static int remove_all(struct purge *purge, const struct purge_list *only, struct outbox_error *err)
{
	struct shown_work work = { 0 };

	work_begin(&work, "purged", purge->found);
	return finish_part(purge, &work,
			   purge_all(purge->cli->store, &purge->request, only, &work.bulk,
				     &purge->removed, err));
}

static int archive_and_remove(struct purge *purge, const char *path, struct outbox_error *err)
{
	_cleanup_(purge_list_deinit) struct purge_list list = { 0 };
	struct shown_work work = { 0 };
	int r;

	work_begin(&work, "archived", 0);
	r = purge_archive(purge->cli->store, &purge->request, path, &work.bulk, &list, err);
	purge->found = (int64_t)list.count;
	r = finish_part(purge, &work, r);
	return r || !list.count ? r : remove_all(purge, &list, err);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct purge purge = { .cli = cli, .request = given->request };
	struct outbox_stats stats;
	int r = purge_check(&purge.request, NAMED_AS_OPTION, err);

	if (r == OUTBOX_OK)
		r = cli_open_target(cli, NULL, &stats, err);
	if (r)
		return r;
	purge.no_target = stats.n_targets == 0;
	purge.request.actor = cli->actor;
	if (given->dry_run)
		r = count_all(&purge, err);
	else if (given->archive)
		r = archive_and_remove(&purge, given->archive, err);
	else
		r = remove_all(&purge, NULL, err);
	return r ? r : print_summary(&purge, given, err);
}

const struct command cmd_purge = {
	.name = "purge",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "remove finished messages, after archiving them if you like",
	TAKES_OPTIONS(options, struct values),
	.about = "A message is removed only when every target that gets it has finished with it, and nothing is removed while no target is registered. Targets that still have to get messages, or keep them because they failed, are named. A relay purges by itself; use this to purge now, or with an archive, which is complete on disk before anything is removed.",
	.example = "outbox purge --delivered-before 7d --dry-run\n"
		   "outbox purge --delivered-before 7d --archive old.jsonl.zst",
	.exits = "0  purged, also when nothing was old enough\n4  the archive's file exists\n"
		 "8  the disk is full: nothing was purged",
	.run = run,
};
