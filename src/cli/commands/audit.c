/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/table.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	size_t limit;
};

static const struct field options[] = {
	OPTION_RANGE("limit", FIELD_COUNT, limit, 1, 1000, "rows (default: 100)"),
};

static const struct column columns[] = {
	{ "WHEN", false, 0 },   { "WHO", false, 8 },      { "WHAT", false, 0 },
	{ "TARGET", false, 8 }, { "MESSAGE", false, 12 },
};

static void print_row(struct table *table, const struct outbox_audit *row, outbox_time now)
{
	_cleanup_(buf_deinit) struct buf detail = BUF_INIT(10000);
	char age[DURATION_TEXT_MAX];

	table_cell(table, PLAIN, age_text(now, row->at, age));
	table_cell(table, PLAIN, row->actor);
	table_cell(table, BOLD, row->action);
	table_cell(table, PLAIN, row->target);
	table_cell(table, PLAIN, row->id);
	if (row->reason)
		table_note(table, row->reason);
	if (!row->detail)
		return;
	detail_text(&detail, row->detail);
	table_note(table, buf_str(&detail));
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	_cleanup_(table_deinit) struct table table;
	struct outbox_claimed message;
	struct outbox_audit *rows;
	size_t n;
	int r;

	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	r = cli_open(cli, OPEN_READY, err);
	if (r == OUTBOX_OK)
		r = store_audit(cli->store, cli->n_words ? cli->words[0] : NULL,
				given->limit ? given->limit : 100, cli->arena, &rows, &n, err);
	/* nothing was done to it: is there such a message at all? */
	if (r == OUTBOX_OK && n == 0 && cli->n_words)
		r = store_get(cli->store, cli->words[0], cli->arena, &message, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_audits(rows, n), err);
	for (size_t i = 0; i < n; i++)
		print_row(&table, &rows[i], cli->clock->wall(cli->clock));
	table_print(&table, stdout);
	if (n == 0)
		puts(cli->n_words ? "no operator has acted on it yet" : "no operator has acted yet");
	return OUTBOX_OK;
}

const struct command cmd_audit = {
	.name = "audit",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "list who did what to which deliveries, newest first",
	TAKES_WORDS("[ID]", 0, 1),
	TAKES_OPTIONS(options, struct values),
	.example = "outbox audit --limit 20",
	.exits = "0  printed, also when there are no entries\n3  no such message",
	.run = run,
};
