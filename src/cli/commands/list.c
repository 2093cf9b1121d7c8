/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/selection.h"
#include "cli/sources.h"
#include "cli/table.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	struct selection select;
	size_t limit;
	const char *after;
	bool all;
};

static const struct field options[] = {
	SELECTION_OPTIONS("pending, sending, delivered, failed, discarded, or a word of --why"),
	OPTION_WHY,
	OPTION_RANGE("limit", FIELD_COUNT, limit, 1, 1000, "deliveries per page (default: 100)"),
	OPTION("after", FIELD_TEXT, after, "CURSOR",
	       "the page after this cursor, which the previous page prints"),
	OPTION("all", FIELD_BOOL, all, NULL, "every page, one after the other"),
};

struct listing {
	struct cli *cli;
	const struct values *given;
	const struct column *columns;
	size_t n_columns;
	struct table table;
	size_t printed;
	size_t n_targets;
	int64_t messages;
	bool begun;   /* the JSON's head is out: it must be closed */
	bool several; /* sources, each in a part of its own */
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
		buf_printf(&note, "reason: %s", row->reason);
	if (note.size)
		table_note(table, buf_str(&note));
}

/* A piece of the JSON, which is written as it is read: there may be more rows than memory. */
static void print_json(const char *before, json_t *value)
{
	fputs(before, stdout);
	if (value)
		json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(value);
}

static void print_page(struct listing *listing, const struct outbox_page *page)
{
	struct cli *cli = listing->cli;

	if (cli->json && !listing->begun)
		printf("%s\"deliveries\":[", listing->several ? "" : "{");
	listing->begun = true;
	for (size_t i = 0; i < page->count; i++) {
		if (cli->json)
			print_json(listing->printed ? ",\n" : "",
				   fields_json(&view_delivery, &page->rows[i]));
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

	printable_printf(
		stdout,
		"no deliveries: no target is registered yet, and %s message%s; outbox relay%s registers one",
		capped_text(listing->messages, count), listing->messages == 1 ? " waits" : "s wait",
		listing->cli->relay_option);
}

static void print_end(const struct listing *listing, const char *cursor)
{
	if (listing->cli->json) {
		print_json("],\"next\":", json_text(cursor));
		if (!listing->several)
			fputs("}\n", stdout);
	} else if (listing->printed == 0 && listing->n_targets == 0) {
		print_no_target(listing);
	} else if (listing->printed == 0) {
		puts("no deliveries match");
	} else if (cursor && listing->several) {
		printable_printf(stdout,
				 "there are more: repeat the command with --source and --after %s",
				 cursor);
	} else if (cursor) {
		printable_printf(stdout, "there are more: repeat the command with --after %s",
				 cursor);
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
		r = store_list(cli->store, filter, cli->arena, &page, err);
		if (r)
			return r;
		print_page(listing, &page);
		snprintf(cursor, size, "%s", page.cursor ? page.cursor : "");
		filter->cursor = cursor;
	} while (page.cursor && listing->given->all && !ferror(stdout));
	return OUTBOX_OK;
}

/* One source, or one of several. */
static int list_source(struct listing *listing, struct outbox_filter filter, struct outbox_error *err)
{
	const struct values *given = listing->given;
	struct cli *cli = listing->cli;
	struct outbox_stats stats;
	char cursor[512] = "";
	int r = cli_open_target(cli, given->select.target, &stats, err);

	if (r)
		return r;
	listing->n_targets = stats.n_targets;
	listing->messages = stats.messages;
	filter.limit = given->limit;
	filter.cursor = given->after;
	filter.ids = cli->n_words ? cli->words : NULL;
	filter.n_ids = cli->n_words;
	table_init(&listing->table, cli, listing->columns, listing->n_columns);
	r = list_pages(listing, &filter, cursor, sizeof(cursor), err);
	if (listing->begun)
		print_end(listing, *cursor ? cursor : NULL);
	table_deinit(&listing->table);
	return r;
}

static void print_source(const struct listing *listing, size_t i, const char *name)
{
	if (!listing->cli->json) {
		printf("%s%s%s%s\n", i ? "\n" : "", colour_on(listing->cli, BOLD), name,
		       colour_off(listing->cli));
		return;
	}
	print_json(i ? ",\n{\"source\":" : "{\"sources\":[{\"source\":", json_text(name));
	fputs(",", stdout);
}

/* A source that does not answer hides no other. */
static void print_trouble(const struct listing *listing, const struct outbox_error *err)
{
	if (!listing->cli->json) {
		printable_printf(stdout, "%s", err->message);
		return;
	}
	print_json(listing->begun ? ",\"error\":" : "\"deliveries\":[],\"next\":null,\"error\":",
		   json_text(err->message));
	fputs("}", stdout);
}

static int list_sources(struct listing *listing, const struct outbox_filter *filter,
			struct outbox_error *err)
{
	struct cli *cli = listing->cli;

	if (listing->given->after)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--after needs --source: each source has pages of its own");
	for (size_t i = 0; i < cli->n_sources; i++) {
		struct outbox_error own = OUTBOX_ERROR_INIT;
		int r;

		sources_use(cli, i);
		listing->printed = 0;
		listing->begun = false;
		print_source(listing, i, cli->sources[i].name);
		r = list_source(listing, *filter, &own);
		if (r && !cli->exit)
			cli->exit = exit_of(r);
		if (r)
			print_trouble(listing, &own);
		else if (cli->json)
			fputs("}", stdout);
	}
	if (cli->json)
		fputs("]}\n", stdout);
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
	struct listing listing = { .cli = cli, .given = given, .several = cli->n_sources > 1 };
	struct outbox_filter filter;
	int r = selection_filter(&given->select, NAMED_AS_OPTION, &filter, err);

	if (r)
		return r;
	listing.columns = columns;
	listing.n_columns = ARRAY_SIZE(columns);
	return listing.several ? list_sources(&listing, &filter, err)
			       : list_source(&listing, filter, err);
}

const struct command cmd_list = {
	.name = "list",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "list deliveries: one message to one target each",
	TAKES_WORDS("[ID...]", 0, 1000),
	TAKES_OPTIONS(options, struct values),
	.about = "A pending delivery is shown by why it is pending: new, retry, deferred, parked behind its key, paused. SINCE is how long it has been in that state. With --config and without --source all sources are listed.",
	.example = "outbox list --state failed\noutbox list --why retry --target partner --all",
	.exits = "0  printed, also when nothing matches\n3  no such target",
	.run = run,
};
