/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define POLL (100 * OUTBOX_MILLISECONDS)
#define PAGE 500

struct values {
	const char *target;
	int64_t limit;
};

static const struct field options[] = {
	OPTION("target", FIELD_TEXT, target, "NAME", "only this target"),
	OPTION_RANGE("limit", FIELD_NUMBER, limit, 1, INT32_MAX, "end after N deliveries"),
};

/* "09:00:12 events  order.placed 42  delivered ID": fixed places, since the list has no end. */
static void print_line(const struct cli *cli, const struct outbox_delivery *row)
{
	static const size_t widths[] = { 7, 10, 5 }; /* 80 columns with the rest */
	const char *texts[] = { row->target, row->type, row->key ? row->key : "-" };
	_cleanup_(buf_deinit) struct buf cell = BUF_INIT(10000);
	char time[TIME_TEXT_MAX];
	bool uncut = cli->width == UNCUT;

	time_format(row->last_status_at ? row->last_status_at : row->created_at, time);
	printf("%.8s", strlen(time) > 19 ? time + 11 : time);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t wide;

		buf_clear(&cell);
		printable_append(&cell, texts[i], strlen(texts[i]), uncut ? UNCUT : widths[i]);
		wide = printable_width(buf_str(&cell));
		printf(" %s%*s", buf_str(&cell), wide < widths[i] ? (int)(widths[i] - wide) : 0, "");
	}
	printf(" %s%-9s%s ", colour_on(cli, delivery_colour(row)), delivery_word(row),
	       colour_off(cli));
	/* the id comes last, whole: the next command needs it */
	buf_clear(&cell);
	printable_append(&cell, row->id, strlen(row->id), uncut ? UNCUT : 36);
	puts(buf_str(&cell));
}

static int print_page(struct cli *cli, const struct values *given, const struct outbox_page *page,
		      int64_t *printed, struct outbox_error *err)
{
	int r;

	for (size_t i = 0; i < page->count; i++) {
		const struct outbox_delivery *row = &page->rows[i];

		if (given->target && strcmp(row->target, given->target) != 0)
			continue;
		if (cli->json) {
			r = json_print(fields_json(&view_delivery, row), err);
			if (r)
				return r;
		} else {
			print_line(cli, row);
		}
		if (++*printed == given->limit)
			break;
	}
	fflush(stdout);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct outbox_stats stats;
	struct outbox_page page = { 0 };
	char cursor[512] = "";
	int64_t printed = 0;
	sigset_t signals;
	int r = cli_open_target(cli, given->target, &stats, err);

	if (r)
		return r;
	signals_block(&signals);
	fputs("waiting for deliveries; Ctrl-C ends\n", stderr);
	do {
		outbox_arena_reset(cli->arena);
		r = store_tail(cli->store, *cursor ? cursor : NULL, PAGE, cli->arena, &page, err);
		if (r == OUTBOX_EBUSY)
			continue;
		if (r == OUTBOX_OK)
			r = print_page(cli, given, &page, &printed, err);
		if (r)
			return r;
		snprintf(cursor, sizeof(cursor), "%s", page.cursor);
		if ((given->limit && printed >= given->limit) || ferror(stdout))
			break;
	} while (!signals_wait(&signals, page.count == PAGE ? 0 : POLL));
	return OUTBOX_OK;
}

const struct command cmd_tail = {
	.name = "tail",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE,
	.summary = "print deliveries as they happen",
	TAKES_OPTIONS(options, struct values),
	.about = "From now on, until Ctrl-C. Times are UTC. With --json one JSON object a line.",
	.example = "outbox tail --target events",
	.exits = "0  ended by Ctrl-C, SIGTERM or --limit",
	.run = run,
};
