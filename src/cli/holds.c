/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/holds.h"

#include "base/text.h"
#include "cli/format.h"
#include "cli/safe.h"
#include "config/config.h"
#include "fields/json_value.h"

#include <stdio.h>

#define RETAIN_DEFAULT (7 * OUTBOX_DAYS)

static outbox_time before(outbox_time now, outbox_time retain)
{
	return retain == OUTBOX_NEVER || retain >= now ? 0 : now - retain;
}

struct outbox_purge holds_retention(const struct cli *cli, outbox_time now)
{
	const struct config_relay *relay = cli->config ? &cli->config->relay : NULL;
	outbox_time delivered = relay ? relay->retain_delivered : RETAIN_DEFAULT;
	outbox_time failed = relay ? relay->retain_failed : OUTBOX_NEVER;

	return (struct outbox_purge){ .delivered_before =
					      before(now, delivered ? delivered : RETAIN_DEFAULT),
				      .failed_before = failed ? before(now, failed) : 0 };
}

const char *hold_text(const struct hold *hold, outbox_time now, char out[HOLD_TEXT_MAX])
{
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];
	const char *more = hold->more ? "at least " : "";
	int64_t n = hold->unfinished ? hold->unfinished : hold->failed;
	int at;

	at = snprintf(out, HOLD_TEXT_MAX, "%s %s%s message%s that %s",
		      hold->unfinished ? "holds back" : "keeps", more, count_human(n, count),
		      n == 1 ? "" : "s", hold->unfinished ? "it still has to get" : "failed there");
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
		safe_say(stdout, "%s %s", holds->list[i].target,
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
