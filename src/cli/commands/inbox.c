/* SPDX-License-Identifier: Apache-2.0 */
/* inbox list, inbox count, inbox prune: what the consumers of a database have accepted. None of them needs an outbox there. */
#include "operate/inbox.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	struct outbox_inbox_filter filter;
	bool dry_run;
};

#define OPTION_CONSUMER \
	OPTION("consumer", FIELD_TEXT, filter.consumer, "NAME", "only ids of this consumer")
#define OPTION_OLDER                                          \
	OPTION("older-than", FIELD_AGO, filter.before, "AGE", \
	       "only ids received longer ago than this: 30d, or a time")

static const struct field list_options[] = {
	OPTION_CONSUMER,
	OPTION_OLDER,
	OPTION_RANGE("limit", FIELD_COUNT, filter.limit, 1, 1000, "ids per page (default: 100)"),
	OPTION("after", FIELD_TEXT, filter.cursor, "CURSOR",
	       "the page after this cursor, which the previous page prints"),
};

static const struct field count_options[] = {
	OPTION_CONSUMER,
	OPTION_OLDER,
};

static const struct field prune_options[] = {
	OPTION_CONSUMER,
	OPTION_REQUIRED("older-than", FIELD_AGO, filter.before, "AGE",
			"remove ids received longer ago than this: 30d, or a time"),
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL, "count what would be removed, change nothing"),
};

static int open_inbox(struct cli *cli, struct outbox_inbox_stats *ret_stats, struct outbox_error *err)
{
	int r = cli_open(cli, OPEN_ANY, err);

	if (r == OUTBOX_OK)
		r = store_inbox_stats(cli->store, ret_stats, err);
	if (r == OUTBOX_OK && !ret_stats->there)
		r = outbox_fail(err, OUTBOX_ESCHEMA,
				"%s: there is no inbox; run: outbox init --inbox%s", cli->info.name,
				cli->store_option);
	return r;
}

/* ---- list ---------------------------------------------------------------------------------- */

static json_t *page_json(const struct outbox_inbox_page *page)
{
	json_t *list = json_array();

	for (size_t i = 0; i < page->count; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "consumer",
						      json_text(page->rows[i].consumer), "id",
						      json_text(page->rows[i].id), "received_at",
						      json_time(page->rows[i].received_at)));
	return json_pack("{s:o, s:o}", "ids", list, "cursor",
			 page->cursor ? json_text(page->cursor) : json_null());
}

static void print_page(struct cli *cli, const struct outbox_inbox_page *page, outbox_time now)
{
	static const struct column columns[] = {
		{ "CONSUMER", false, 8 },
		{ "ID", false, 12 },
		{ "RECEIVED", true, 0 },
	};
	_cleanup_(table_deinit) struct table table;
	char age[DURATION_TEXT_MAX];

	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	if (!page->count)
		puts("no id");
	for (size_t i = 0; i < page->count; i++) {
		table_cell(&table, PLAIN, page->rows[i].consumer);
		table_cell(&table, PLAIN, page->rows[i].id);
		table_cell(&table, PLAIN, age_text(now, page->rows[i].received_at, age));
	}
	if (page->count)
		table_print(&table, stdout);
	if (page->cursor)
		printf("there are more: repeat the command with\n  --after %s\n", page->cursor);
}

static int run_list(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_inbox_stats stats;
	struct outbox_inbox_page page;
	int r = open_inbox(cli, &stats, err);

	if (r == OUTBOX_OK)
		r = store_inbox_list(cli->store, &given->filter, cli->arena, &page, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(page_json(&page), err);
	print_page(cli, &page, stats.store_now);
	return OUTBOX_OK;
}

const struct command cmd_inbox_list = {
	.name = "inbox list",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "list the ids that consumers have accepted, the oldest first",
	TAKES_OPTIONS(list_options, struct values),
	.about = "The inbox is in the consumers' own database (outbox init --inbox), which need not have an outbox.",
	.example = "outbox inbox list --store sqlite:billing.db --consumer billing\n"
		   "outbox inbox list --older-than 30d --json",
	.exits = "0  printed, also when there is none\n7  there is no inbox",
	.run = run_list,
};

/* ---- count --------------------------------------------------------------------------------- */

static json_t *count_json(const struct outbox_inbox_stats *stats)
{
	return json_pack("{s:I, s:b, s:b, s:o}", "ids", (json_int_t)stats->rows, "estimated",
			 stats->estimated, "more",
			 stats->rows == OUTBOX_INBOX_COUNT_MAX && !stats->estimated, "oldest",
			 stats->oldest ? json_time(stats->oldest) : json_null());
}

static int run_count(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	bool all = !given->filter.consumer && !given->filter.before;
	struct outbox_inbox_stats stats;
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];
	int r = open_inbox(cli, &stats, err);

	if (r == OUTBOX_OK && !all) {
		/* the oldest is known of all ids alone */
		stats.estimated = false;
		stats.oldest = 0;
		r = store_inbox_count(cli->store, &given->filter, &stats.rows, err);
	}
	if (r)
		return r;
	if (cli->json)
		return json_print(count_json(&stats), err);
	if (stats.estimated)
		printf("about %s ids", count_human(stats.rows, count));
	else
		printf("%s id%s", capped_text(stats.rows, count), stats.rows == 1 ? "" : "s");
	if (all && stats.oldest)
		printf(", the oldest received %s ago", age_text(stats.store_now, stats.oldest, age));
	puts("");
	return OUTBOX_OK;
}

const struct command cmd_inbox_count = {
	.name = "inbox count",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "count the ids that consumers have accepted",
	TAKES_OPTIONS(count_options, struct values),
	.about = "Counting ends at 100,001. Without options PostgreSQL's own estimate is told where there are more.",
	.example = "outbox inbox count\noutbox inbox count --consumer billing --older-than 30d",
	.exits = "0  printed\n7  there is no inbox",
	.run = run_count,
};

/* ---- prune --------------------------------------------------------------------------------- */

/* On stderr, so that what programs read stays what it is. */
static void warn_if_short(const struct cli *cli, const struct values *given, outbox_time now)
{
	char text[400];

	if (now > given->filter.before &&
	    inbox_kept_too_short(cli->config, now - given->filter.before, text, sizeof(text)))
		printable_printf(stderr, "warning: %s", text);
}

static int prune_all(struct cli *cli, const struct values *given, int64_t *ret_removed,
		     struct outbox_error *err)
{
	struct shown_work work = { 0 };
	int r;

	work_begin(&work, "removed", 0);
	r = inbox_prune_all(cli->store, &given->filter, &work.bulk, ret_removed, err);
	work_end(&work);
	if (work.signal)
		cli->exit = EXIT_SIGNAL + work.signal;
	return r;
}

static int run_prune(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_inbox_stats stats;
	char count[COUNT_TEXT_MAX];
	int64_t ids = 0;
	int r = open_inbox(cli, &stats, err);

	if (r)
		return r;
	warn_if_short(cli, given, stats.store_now);
	r = given->dry_run ? store_inbox_count(cli->store, &given->filter, &ids, err)
			   : prune_all(cli, given, &ids, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:b, s:I, s:b}", "dry_run", given->dry_run, "ids",
					    (json_int_t)ids, "more",
					    given->dry_run && ids == OUTBOX_INBOX_COUNT_MAX),
				  err);
	if (ids == 0)
		puts("no id is old enough to be removed");
	else if (given->dry_run)
		printf("would remove %s id%s. Run again without --dry-run.\n",
		       capped_text(ids, count), ids == 1 ? "" : "s");
	else
		printf("removed %s id%s\n", count_human(ids, count), ids == 1 ? "" : "s");
	return OUTBOX_OK;
}

const struct command cmd_inbox_prune = {
	.name = "inbox prune",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_HARMFUL,
	.summary = "remove old ids from an inbox",
	TAKES_OPTIONS(prune_options, struct values),
	.about = "What comes again after its id was removed is processed again: the command warns when ids are kept for a shorter time than that in which a duplicate can come, by the retention and the retries of --config, or by the defaults. A relay prunes the inbox beside its outbox by itself (relay.retain_inbox); elsewhere run this now and then.",
	.example = "outbox inbox prune --store sqlite:billing.db --older-than 30d --dry-run\n"
		   "outbox inbox prune --older-than 30d --consumer billing",
	.exits = "0  removed, also when nothing was old enough\n7  there is no inbox",
	.run = run_prune,
};
