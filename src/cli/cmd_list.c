/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/text.h"
#include "cli/age.h"
#include "cli/json_out.h"
#include "cli/safe.h"
#include "cli/selection.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

struct values {
	struct selection select;
	int64_t limit;
	const char *after;
	bool all;
};

static const struct option options[] = {
	SELECTION_OPTIONS(struct values,
			  "pending, sending, delivered, failed, discarded, or a word of --why"),
	OPTION_RANGE("limit", struct values, limit, 1, 1000, "deliveries on a page (default: 100)"),
	OPTION("after", OPTION_TEXT, struct values, after, "CURSOR",
	       "the next page; the cursor is printed under the page before"),
	OPTION("all", OPTION_FLAG, struct values, all, NULL, "every page, one after the other"),
};

struct listing {
	struct cli *cli;
	const struct values *given;
	struct table table;
	size_t printed;
	size_t n_targets;
	int64_t messages;
	bool begun; /* the JSON's head is out: it must be closed */
};

static void print_row(struct listing *listing, const struct outbox_delivery *row, outbox_time now)
{
	_cleanup_(buf_deinit) struct buf note = BUF_INIT(10000);
	struct table *table = &listing->table;
	char age[DURATION_TEXT_MAX];

	table_cell(table, PLAIN, row->id);
	table_cell(table, PLAIN, row->target);
	table_cell(table, PLAIN, row->type);
	table_cell(table, PLAIN, row->key);
	table_cell(table, delivery_colour(row), delivery_word(row));
	table_cell(table, PLAIN,
		   age_text(now, row->last_status_at ? row->last_status_at : row->created_at, age));
	if (row->error && row->attempts)
		buf_printf(&note, "%d attempt%s: %s", row->attempts, row->attempts == 1 ? "" : "s",
			   row->error);
	else if (row->error)
		buf_text(&note, row->error);
	else if (row->reason)
		buf_text(&note, row->reason);
	if (note.size)
		table_note(table, buf_str(&note));
}

static void print_json_row(struct listing *listing, const struct outbox_delivery *row)
{
	json_t *object = json_delivery(row);

	fputs(listing->printed ? ",\n" : "", stdout);
	if (object)
		json_dumpf(object, stdout, JSON_COMPACT);
	json_decref(object);
}

static void print_page(struct listing *listing, const struct outbox_page *page)
{
	struct cli *cli = listing->cli;

	if (cli->json && !listing->begun)
		fputs("{\"deliveries\":[", stdout);
	listing->begun = true;
	for (size_t i = 0; i < page->count; i++) {
		if (cli->json)
			print_json_row(listing, &page->rows[i]);
		else
			print_row(listing, &page->rows[i], cli->clock->wall(cli->clock));
		listing->printed++;
	}
	if (!cli->json)
		table_print(&listing->table, stdout);
}

/* Without a target there is no delivery, although messages may be there in plenty. */
static void print_no_target(const struct listing *listing)
{
	char count[COUNT_TEXT_MAX];

	safe_say(stdout,
		 "no deliveries: no target is registered yet, and %s message%s; outbox relay%s makes one",
		 capped_text(listing->messages, count),
		 listing->messages == 1 ? " waits" : "s wait", listing->cli->relay_option);
}

static void print_end(const struct listing *listing, const char *cursor)
{
	json_t *next;

	if (listing->cli->json) {
		next = json_text(cursor);
		fputs("],\"next\":", stdout);
		json_dumpf(next, stdout, JSON_ENCODE_ANY);
		fputs("}\n", stdout);
		json_decref(next);
	} else if (listing->printed == 0 && listing->n_targets == 0) {
		print_no_target(listing);
	} else if (listing->printed == 0) {
		puts("no deliveries match");
	} else if (cursor) {
		safe_say(stdout, "there are more: the same command with --after %s", cursor);
	}
}

/* Pages until the last one, or one page; *ret_cursor (in cursor) is where the next begins. */
static int list_pages(struct listing *listing, struct outbox_filter *filter, char *cursor,
		      size_t size, struct outbox_error *err)
{
	struct cli *cli = listing->cli;
	struct outbox_page page;
	int r;

	do {
		outbox_arena_reset(cli->arena);
		r = cli->store->ops->list(cli->store, filter, cli->arena, &page, err);
		if (r)
			return r;
		print_page(listing, &page);
		snprintf(cursor, size, "%s", page.cursor ? page.cursor : "");
		filter->cursor = cursor;
	} while (page.cursor && listing->given->all && !ferror(stdout));
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	/* what the options fix needs no column */
	struct column columns[] = {
		{ "ID", false, 36 },
		{ given->select.target ? NULL : "TARGET", false, 6 },
		{ "TYPE", false, 8 },
		{ given->select.key ? NULL : "KEY", false, 4 },
		{ given->select.state && outbox_state_parse(given->select.state) != OUTBOX_PENDING
			  ? NULL
			  : "STATE",
		  false, 0 },
		{ "SINCE", true, 0 },
	};
	struct listing listing = { .cli = cli, .given = given };
	struct outbox_filter filter;
	struct outbox_stats stats;
	char cursor[512] = "";
	int r;

	r = selection_filter(&given->select, &filter, err);
	if (r == OUTBOX_OK)
		r = cli_open_target(cli, given->select.target, &stats, err);
	if (r)
		return r;
	listing.n_targets = stats.n_targets;
	listing.messages = stats.messages;
	filter.limit = (size_t)given->limit;
	filter.cursor = given->after;
	filter.ids = cli->n_words ? cli->words : NULL;
	filter.n_ids = cli->n_words;
	table_init(&listing.table, cli, columns, ARRAY_SIZE(columns));
	r = list_pages(&listing, &filter, cursor, sizeof(cursor), err);
	if (listing.begun)
		print_end(&listing, *cursor ? cursor : NULL);
	table_deinit(&listing.table);
	return r;
}

const struct command cmd_list = {
	.name = "list",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "list deliveries: one message to one target each",
	.words = "[ID...]",
	.max_words = 1000,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct values),
	.about = "A pending delivery is shown by why it is pending: new, retry, deferred, parked behind its key, paused. SINCE is how long it has been so.",
	.example = "outbox list --state failed\noutbox list --why retry --target partner --all",
	.exits = "0  printed, also when nothing matches\n3  no such target",
	.run = run,
};
