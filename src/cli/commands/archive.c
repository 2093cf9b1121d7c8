/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/archive.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/selection.h"
#include "cli/terminal.h"

#include <stdio.h>

struct values {
	struct replay_filter filter;
	bool dry_run;
};

static const struct field options[] = {
	PAST_OPTIONS,
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL, "count, write nothing"),
};

DEFINE_CLEANUP(struct archive *, archive_free)
DEFINE_CLEANUP(struct replay_source *, replay_source_free)

struct copy {
	struct cli *cli;
	const struct replay_filter *filter;
	outbox_time now; /* the store's, at the beginning */
	struct replay_source *source;
	struct archive *archive; /* NULL: only count */
	int64_t count;
};

static int copy_all(struct copy *copy, struct outbox_error *err)
{
	struct shown_work work = { 0 };
	bool end = false;
	int r = OUTBOX_OK;

	work_begin(&work, copy->archive ? "archived" : "counted", 0);
	while (r == OUTBOX_OK && !end) {
		struct outbox_claimed found = { 0 };

		r = replay_source_next(copy->source, copy->cli->arena, &found, &end, err);
		if (r || end || !replay_wanted(copy->filter, &found.message))
			continue;
		if (copy->archive)
			r = archive_add(copy->archive, &found, err);
		bulk_progress(&work.bulk, ++copy->count);
		if (copy->count % 1000 == 0 && bulk_rest(&work.bulk, copy->count, 0)) {
			copy->cli->exit = EXIT_SIGNAL + work.signal;
			r = outbox_fail(err, OUTBOX_ECONFLICT, "interrupted; no archive was made");
		}
	}
	work_end(&work);
	return r;
}

static int print_summary(const struct copy *copy, const struct values *given,
			 struct outbox_error *err)
{
	const struct outbox_purge all = { .delivered_before = copy->now };
	struct holds holds = { 0 };
	outbox_time now = 0;
	int r = holds_read(copy->cli, &all, &holds, &now, err);
	const char *path = copy->cli->words[0];
	char count[COUNT_TEXT_MAX];
	bool made = copy->count && !given->dry_run;

	if (r)
		return r;
	if (copy->cli->json)
		return json_print(json_pack("{s:b, s:I, s:o, s:o}", "dry_run", given->dry_run,
					    "messages", (json_int_t)copy->count, "archive",
					    json_text(made ? path : NULL), "held_back",
					    holds_json(&holds)),
				  err);
	if (copy->count == 0)
		puts("nothing to archive: no finished message matches");
	else
		printable_printf(stdout, "%s %s message%s%s%s",
				 given->dry_run ? "would archive" : "archived",
				 count_human(copy->count, count), copy->count == 1 ? "" : "s",
				 made ? " in " : "", made ? path : "");
	holds_print(&holds, now);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	_cleanup_(archive_freep) struct archive *archive = NULL;
	_cleanup_(replay_source_freep) struct replay_source *source = NULL;
	struct copy copy = { .cli = cli, .filter = &given->filter };
	struct outbox_stats stats;
	int r = cli_open_target(cli, NULL, &stats, err);

	if (r == OUTBOX_OK && !given->dry_run)
		r = archive_new(cli->words[0], "", &archive, err);
	if (r == OUTBOX_OK)
		r = replay_source_log(cli->store, stats.store_now, &source, err);
	if (r)
		return r;
	copy.now = stats.store_now;
	copy.source = source;
	copy.archive = archive;
	r = copy_all(&copy, err);
	if (r == OUTBOX_OK && archive && copy.count)
		r = archive_commit(archive, err);
	return r ? r : print_summary(&copy, given, err);
}

const struct command cmd_archive = {
	.name = "archive",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE,
	.summary = "copy finished messages into a file, remove none",
	TAKES_WORDS("FILE", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "Copies messages that every target has finished with and that retention has not removed, as CloudEvents lines compressed with zstd, for outbox replay or for your own use. The file appears when it is complete. To remove what was archived: outbox purge --archive.",
	.example = "outbox archive orders.jsonl.zst --type 'order.*' --before 1d\n"
		   "zstd -dc orders.jsonl.zst | head",
	.exits = "0  archived, also when nothing matches (then there is no file)\n4  the file exists\n"
		 "8  the disk is full",
	.run = run,
};
