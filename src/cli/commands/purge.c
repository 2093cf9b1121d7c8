/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "relay/archive.h"

#include <stdio.h>
#include <stdlib.h>

#define READ_PAGE 500
#define PURGE_PAGE 5000
#define SLICE 50000 /* of what an archive has, in one go */

struct values {
	outbox_time delivered_before, failed_before;
	const char *archive;
	bool dry_run;
};

static const struct field options[] = {
	OPTION("delivered-before", FIELD_AGO, struct values, delivered_before, "AGE",
	       "messages that every target got longer ago: 7d, or a time"),
	OPTION("failed-before", FIELD_AGO, struct values, failed_before, "AGE",
	       "also messages with a delivery that failed longer ago: 30d, or a time"),
	OPTION("archive", FIELD_TEXT, struct values, archive, "FILE",
	       "first write them to this new file: CloudEvents lines, zstd (app.jsonl.zst)"),
	OPTION("dry-run", FIELD_BOOL, struct values, dry_run, NULL,
	       "count what would go, change nothing"),
};

struct purge {
	struct cli *cli;
	struct outbox_purge request;
	struct archive *archive; /* NULL: only count */
	sigset_t signals;        /* blocked: looked at between pages */
	int64_t found;           /* messages read for the archive or the count */
	int64_t *archived; /* their places in the log: these go, and nothing that became old meanwhile */
	size_t capacity;
	struct outbox_purged removed;
	bool no_target;
};

DEFINE_CLEANUP(struct archive *, archive_free)

/* A draft of an archive must not stay behind, so signals are obeyed between pages. */
static int interrupted(struct purge *purge, struct outbox_error *err)
{
	int number = stop_wait(&purge->signals, 0);

	if (!number)
		return OUTBOX_OK;
	purge->cli->exit = EXIT_SIGNAL + number;
	return outbox_fail(err, OUTBOX_ECONFLICT, "interrupted; messages purged: %lld",
			   (long long)purge->removed.messages);
}

static int add_to_archive(struct purge *purge, const struct outbox_claimed *messages, size_t n,
			  struct outbox_error *err)
{
	size_t count = (size_t)purge->found;
	int r = OUTBOX_OK;

	if (count + n > purge->capacity) {
		size_t capacity = 2 * (count + n);
		int64_t *archived = realloc(purge->archived, capacity * sizeof(*archived));

		if (!archived)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory; nothing was purged");
		purge->archived = archived;
		purge->capacity = capacity;
	}
	for (size_t i = 0; !r && i < n; i++) {
		purge->archived[count + i] = messages[i].seq;
		r = archive_add(purge->archive, &messages[i], err);
	}
	return r;
}

/* Read every message that would go, into the archive or just past. */
static int read_all(struct purge *purge, struct outbox_error *err)
{
	struct cli *cli = purge->cli;
	struct outbox_purge request = purge->request;
	struct outbox_claimed *messages;
	struct progress progress;
	int64_t seq = 0;
	size_t n;
	int r;

	request.limit = READ_PAGE;
	progress_start(&progress, purge->archive ? "archived" : "counted", 0);
	for (;;) {
		outbox_arena_reset(cli->arena);
		r = cli->store->ops->purgeable(cli->store, &request, seq, cli->arena, &messages, &n,
					       err);
		if (r == OUTBOX_ENOMEM && request.limit > 1) {
			request.limit /= 2; /* large payloads: a smaller page fits */
			continue;
		}
		if (r || n == 0)
			break;
		r = interrupted(purge, err);
		if (!r && purge->archive)
			r = add_to_archive(purge, messages, n, err);
		if (r)
			break;
		seq = messages[n - 1].seq;
		purge->found += (int64_t)n;
		progress_show(&progress, purge->found);
	}
	progress_end(&progress);
	return r;
}

/* One request in as many calls as it takes. */
static int remove_some(struct purge *purge, struct progress *progress, struct outbox_error *err)
{
	struct cli *cli = purge->cli;
	struct outbox_purged one = { .more = true };
	int r = OUTBOX_OK;

	while (one.more && r == OUTBOX_OK) {
		r = cli->store->ops->purge(cli->store, &purge->request, &one, err);
		if (r)
			break;
		purge->removed.messages += one.messages;
		purge->removed.failed += one.failed;
		purge->removed.receipts += one.receipts;
		purge->removed.detours += one.detours;
		progress_show(progress, purge->removed.messages);
		if (one.more)
			r = interrupted(purge, err);
	}
	return r;
}

static int remove_all(struct purge *purge, struct outbox_error *err)
{
	size_t count = purge->archived ? (size_t)purge->found : 0, at = 0;
	struct progress progress;
	int r = OUTBOX_OK;

	purge->request.limit = PURGE_PAGE;
	progress_start(&progress, "purged", purge->found);
	do {
		if (purge->archived) {
			purge->request.only = purge->archived + at;
			purge->request.n_only = count - at < SLICE ? count - at : SLICE;
			at += purge->request.n_only;
			purge->request.through_seq = purge->archived[at - 1];
		}
		r = remove_some(purge, &progress, err);
	} while (r == OUTBOX_OK && at < count);
	progress_end(&progress);
	purge->request.only = NULL;
	return r;
}

static int archive_all(struct purge *purge, const char *path, struct outbox_error *err)
{
	_cleanup_(archive_freep) struct archive *archive = NULL;
	int r = archive_new(path, "; nothing was purged", &archive, err);

	if (r)
		return r;
	purge->archive = archive;
	r = read_all(purge, err);
	if (r == OUTBOX_OK && purge->found > 0)
		r = archive_commit(archive, err);
	return r;
}

/* Why there is something left that is old enough. */
static int look_for_holds(struct purge *purge, struct holds *holds, outbox_time *ret_now,
			  struct outbox_error *err)
{
	struct cli *cli = purge->cli;
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(cli->arena);
	r = cli_stats(cli, &stats, err);
	*ret_now = stats.store_now;
	return r ? r : holds_find(cli->store, &purge->request, &stats, cli->arena, holds, err);
}

static void tell_nothing(const struct purge *purge, const struct holds *holds)
{
	puts(purge->no_target
		     ? "nothing is purged while no target is registered: messages wait for one"
	     : holds->count ? "nothing can be purged"
			    : "nothing is old enough to purge");
}

static int tell(struct purge *purge, const struct values *given, struct outbox_error *err)
{
	const struct outbox_purged *gone = &purge->removed;
	char count[COUNT_TEXT_MAX], failed[COUNT_TEXT_MAX];
	int64_t n = given->dry_run ? purge->found : gone->messages;
	struct holds holds = { 0 };
	outbox_time now;
	int r = look_for_holds(purge, &holds, &now, err);

	if (r)
		return r;
	if (purge->cli->json) {
		struct purged_view view = { .dry_run = given->dry_run, .purged = *gone };
		json_t *object;

		view.purged.messages = n;
		view.archived = given->dry_run ? 0 : purge->found;
		view.archive = view.archived ? given->archive : NULL;
		object = json_purged(&view);
		json_object_set_new(object, "held_back", holds_json(&holds));
		return json_print(object, err);
	}
	count_human(n, count);
	if (n == 0)
		tell_nothing(purge, &holds);
	else if (given->dry_run)
		safe_say(stdout, "would purge %s message%s. Run again without --dry-run.", count,
			 n == 1 ? "" : "s");
	else
		safe_say(stdout, "purged %s message%s (%s with a failed delivery)%s%s", count,
			 n == 1 ? "" : "s", count_human(gone->failed, failed),
			 given->archive ? ", kept in " : "", given->archive ? given->archive : "");
	holds_print(&holds, now);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct purge purge = { .cli = cli,
			       .request = { .delivered_before = given->delivered_before,
					    .failed_before = given->failed_before } };
	struct outbox_stats stats;
	int r;

	if (!given->delivered_before && !given->failed_before)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "how old? --delivered-before 7d, --failed-before 30d or both");
	r = cli_open_target(cli, NULL, &stats, err);
	if (r)
		return r;
	purge.no_target = stats.n_targets == 0;
	purge.request.actor = cli->actor;
	stop_block(&purge.signals);
	if (given->dry_run)
		r = read_all(&purge, err);
	else if (given->archive)
		r = archive_all(&purge, given->archive, err);
	if (r == OUTBOX_OK && !given->dry_run && (!given->archive || purge.found > 0))
		r = remove_all(&purge, err);
	free(purge.archived);
	return r ? r : tell(&purge, given, err);
}

const struct command cmd_purge = {
	.name = "purge",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "remove finished messages, into an archive if you like",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct values),
	.about = "Nothing goes before every target that gets it is done with it, and nothing at all while no target is registered. What a target still has to get, or keeps because it failed, is told with the target's name. A relay purges by itself; this is for doing it now or with an archive, which is complete on the disk before anything goes.",
	.example = "outbox purge --delivered-before 7d --dry-run\n"
		   "outbox purge --delivered-before 7d --archive old.jsonl.zst",
	.exits = "0  purged, also when nothing was old enough\n4  the archive's file exists\n"
		 "8  the disk is full: nothing was purged",
	.run = run,
};
