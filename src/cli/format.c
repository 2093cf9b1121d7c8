/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/format.h"

#include "base/buf.h"
#include "base/printable.h"
#include "cli/table.h"
#include "config/config.h"
#include "store/store.h"

#include <stdio.h>

const char *age_text(outbox_time now, outbox_time then, char out[DURATION_TEXT_MAX])
{
	char text[DURATION_TEXT_MAX];

	if (then == 0) {
		snprintf(out, DURATION_TEXT_MAX, "-");
		return out;
	}
	if (then <= now)
		return duration_human(now - then, out);
	duration_human(then - now, text);
	snprintf(out, DURATION_TEXT_MAX, "in %.30s", text);
	return out;
}

const char *capped_text(int64_t count, char out[COUNT_TEXT_MAX])
{
	char text[COUNT_TEXT_MAX];

	if (count <= OUTBOX_COUNT_CAP)
		return count_human(count, out);
	count_human(OUTBOX_COUNT_CAP, text);
	snprintf(out, COUNT_TEXT_MAX, "> %.30s", text);
	return out;
}

void detail_text(struct buf *out, const char *detail)
{
	json_auto_t *object = json_loads(detail, 0, NULL);
	const char *name, *before = "before: ";
	json_t *value;

	if (!json_is_object(object)) {
		buf_text(out, detail);
		return;
	}
	json_object_foreach(object, name, value)
	{
		if (json_is_string(value))
			buf_printf(out, "%s%s %s", before, name, json_string_value(value));
		else if (json_is_integer(value))
			buf_printf(out, "%s%s %lld", before, name,
				   (long long)json_integer_value(value));
		else
			continue;
		before = ", ";
	}
}

#define RETAIN_DEFAULT (7 * OUTBOX_DAYS)

static outbox_time before(outbox_time now, outbox_time retain)
{
	return retain == OUTBOX_NEVER || retain >= now ? 0 : now - retain;
}

int holds_retention(struct cli *cli, const struct outbox_stats *stats, struct holds *ret_holds,
		    struct outbox_error *err)
{
	const struct config_relay *relay = cli->config ? &cli->config->relay : NULL;
	outbox_time delivered = relay ? relay->retain_delivered : RETAIN_DEFAULT;
	outbox_time failed = relay ? relay->retain_failed : OUTBOX_NEVER;

	struct outbox_purge purge = {
		.delivered_before = before(stats->store_now, delivered ? delivered : RETAIN_DEFAULT),
		.failed_before = failed ? before(stats->store_now, failed) : 0,
	};

	return holds_find(cli->store, &purge, stats, cli->arena, ret_holds, err);
}

int holds_read(struct cli *cli, const struct outbox_purge *purge, struct holds *ret_holds,
	       outbox_time *ret_now, struct outbox_error *err)
{
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(cli->arena);
	r = store_stats(cli->store, cli->arena, &stats, err);
	if (r)
		return r;
	*ret_now = stats.store_now;
	return holds_find(cli->store, purge, &stats, cli->arena, ret_holds, err);
}

const char *hold_text(const struct hold *hold, outbox_time now, char out[HOLD_TEXT_MAX])
{
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];
	const char *more = hold->more ? "at least " : "";
	int64_t n = hold->unfinished ? hold->unfinished : hold->failed;
	int at = snprintf(out, HOLD_TEXT_MAX, "%s %s%s message%s that %s",
			  hold->unfinished ? "holds back" : "keeps", more, count_human(n, count),
			  n == 1 ? "" : "s",
			  hold->unfinished ? "it still has to receive" : "failed there");

	if (hold->unfinished && hold->failed)
		at += snprintf(out + at, HOLD_TEXT_MAX - (size_t)at,
			       " and keeps %s%s that failed there", more,
			       count_human(hold->failed, count));
	snprintf(out + at, HOLD_TEXT_MAX - (size_t)at, "; the oldest was published %s ago",
		 age_text(now, hold->oldest, age));
	return out;
}

void holds_print(const struct holds *holds, outbox_time now)
{
	char text[HOLD_TEXT_MAX];

	for (size_t i = 0; i < holds->count; i++)
		printable_printf(stdout, "%s %s", holds->list[i].target,
				 hold_text(&holds->list[i], now, text));
}

json_t *holds_json(const struct holds *holds)
{
	json_t *list = json_array();

	for (size_t i = 0; i < holds->count; i++) {
		const struct hold *hold = &holds->list[i];

		json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:o, s:b}", "target",
						      json_text(hold->target), "unfinished",
						      (json_int_t)hold->unfinished, "failed",
						      (json_int_t)hold->failed, "oldest",
						      json_time(hold->oldest), "more", hold->more));
	}
	return list;
}

int json_print(json_t *value, struct outbox_error *err)
{
	int r = -1;

	if (value) {
		r = json_dumpf(value, stdout, JSON_STYLE);
		fputc('\n', stdout);
		json_decref(value);
	}
	if (r && !ferror(stdout))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory while writing JSON");
	return OUTBOX_OK; /* main() reports what stdout could not take */
}

const char *delivery_word(const struct outbox_delivery *row)
{
	const char *word = NULL;

	if (row->state == OUTBOX_PENDING)
		word = outbox_why_name(row->why);
	if (!word)
		word = outbox_state_name(row->state);
	return word ? word : "?";
}

int delivery_colour(const struct outbox_delivery *row)
{
	switch (row->state) {
	case OUTBOX_FAILED:
		return RED;
	case OUTBOX_DELIVERED:
		return GREEN;
	case OUTBOX_DISCARDED:
		return DIM;
	default:
		return row->state == OUTBOX_PENDING && row->why != OUTBOX_NEW ? YELLOW : PLAIN;
	}
}
