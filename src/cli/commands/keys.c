/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "cli/format.h"
#include "cli/table.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	struct outbox_keys_filter filter;
	bool blocked;
};

static const struct field options[] = {
	{ .name = "blocked",
	  .type = FIELD_BOOL,
	  .offset = offsetof(struct values, blocked),
	  .help = "what it shows anyway",
	  .flags = FIELD_HIDDEN },
	OPTION("target", FIELD_TEXT, filter.target, "NAME", "only keys of this target"),
	OPTION_RANGE("limit", FIELD_COUNT, filter.limit, 1, 1000, "keys per page (default: 100)"),
	OPTION("after", FIELD_TEXT, filter.cursor, "CURSOR",
	       "the page after this cursor, which the previous page prints"),
};

static void add_row(struct table *table, const struct outbox_blocked_key *row, outbox_time now)
{
	char since[DURATION_TEXT_MAX], next[DURATION_TEXT_MAX], parked[COUNT_TEXT_MAX];
	const struct outbox_delivery *d = &row->front;

	table_cell(table, PLAIN, d->key);
	table_cell(table, PLAIN, d->target);
	table_cell(table, delivery_colour(d), delivery_word(d));
	table_cellf(table, PLAIN, "%d", d->attempts);
	table_cell(table, PLAIN, capped_text(row->parked, parked));
	table_cell(table, PLAIN, age_text(now, row->since, since));
	table_cell(table, PLAIN, age_text(now, d->next_attempt_at, next));
	table_cell(table, PLAIN, d->id);
	if (d->error)
		table_note(table, d->error);
}

static void print(struct cli *cli, const struct outbox_keys_page *page)
{
	static const struct column columns[] = {
		{ "KEY", false, 8 },  { "TARGET", false, 6 }, { "FRONT", false, 0 },
		{ "TRIES", true, 0 }, { "PARKED", true, 0 },  { "SINCE", true, 0 },
		{ "NEXT", false, 0 }, { "ID", false, 12 },
	};
	struct table table;

	if (!page->count) {
		puts("no key is blocked");
		return;
	}
	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < page->count; i++)
		add_row(&table, &page->rows[i], cli->clock->wall(cli->clock));
	table_print(&table, stdout);
	table_deinit(&table);
	if (page->cursor)
		printable_printf(stdout, "there are more: repeat the command with --after %s",
				 page->cursor);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct outbox_keys_filter *filter = &((struct values *)values)->filter;
	struct outbox_keys_page page;
	struct outbox_stats stats;
	int r;

	filter->struct_size = sizeof(*filter);
	r = cli_open_target(cli, filter->target, &stats, err);
	if (r == OUTBOX_OK)
		r = store_keys(cli->store, filter, cli->arena, &page, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_blocked_keys(&page), err);
	print(cli, &page);
	return OUTBOX_OK;
}

const struct command cmd_keys = {
	.name = "keys",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "list keys whose messages wait, and what blocks them",
	TAKES_OPTIONS(options, struct values),
	.about = "FRONT is the state of the key's first unfinished delivery: it waits for a retry, is being sent, or failed at a target with hold. PARKED is how many wait behind it. The oldest key comes first.",
	.example = "outbox keys\noutbox keys --target partner --json",
	.exits = "0  printed, also when there is none\n3  no such target",
	.run = run,
};
