/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators' acts on deliveries. Ids are one call, all told one by one. A filter is counted first, then
 * confirmed, then worked off in pages, each a transaction of its own, so that a relay is never kept
 * waiting and Ctrl-C in the middle leaves whole pages behind. A bulk requeue only takes what failed
 * before it began: what fails again meanwhile is not picked up again, so it ends.
 */
#include "cli/act.h"

#include "base/buf.h"
#include "cli/age.h"
#include "cli/confirm.h"
#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/safe.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PAGE 1000
#define BUSY_TRIES 5

static const struct verb {
	const char *now, *past;
} verbs[] = {
	[OUTBOX_REQUEUE] = { "requeue", "requeued" },
	[OUTBOX_DISCARD] = { "discard", "discarded" },
	[OUTBOX_DEFER] = { "defer", "deferred" },
};

struct work {
	struct cli *cli;
	const struct act_values *given;
	struct outbox_filter filter;
	struct outbox_act act;
	const struct verb *verb;
	/* what the filter selects */
	size_t count;
	bool capped;
	outbox_time oldest;
	struct buf targets; /* "events, partner" */
};

static int finish(struct work *work, const struct outbox_acted *acted, struct outbox_error *err)
{
	struct cli *cli = work->cli;
	char count[COUNT_TEXT_MAX];

	if (acted->refused && acted->done == 0 && acted->refused == work->filter.n_ids)
		return outbox_fail(err, OUTBOX_ECONFLICT, "%s", acted->why);
	if (acted->refused)
		cli->exit = EXIT_CONFLICT;
	if (cli->json)
		return json_print(json_acted(&(struct acted_view){ .action = work->verb->now,
								   .dry_run = work->act.dry_run,
								   .acted = *acted }),
				  err);
	safe_say(stdout, "%s%s %s deliver%s", work->act.dry_run ? "would " : "",
		 work->act.dry_run ? work->verb->now : work->verb->past,
		 count_human((int64_t)acted->done, count), acted->done == 1 ? "y" : "ies");
	if (acted->refused)
		safe_say(stderr, "refused %zu, the first: %s", acted->refused, acted->why);
	return OUTBOX_OK;
}

static int act_page(struct work *work, size_t limit, struct outbox_acted *ret_acted,
		    struct outbox_error *err)
{
	struct cli *cli = work->cli;
	int r = OUTBOX_EBUSY;

	work->filter.limit = limit;
	for (int i = 0; i < BUSY_TRIES && r == OUTBOX_EBUSY; i++)
		r = cli->store->ops->act(cli->store, &work->act, ret_acted, err);
	return r;
}

/* ---- by ids -------------------------------------------------------------------------------- */

static int choose_target(struct work *work, const struct outbox_stats *stats,
			 struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);

	if (work->filter.target || stats->n_targets == 0)
		return OUTBOX_OK;
	if (stats->n_targets == 1) {
		work->filter.target = stats->targets[0].name;
		return OUTBOX_OK;
	}
	for (size_t i = 0; i < stats->n_targets; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", stats->targets[i].name);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "--target is missing: a message has a delivery to each of %s",
			   buf_str(&names));
}

/* An id that is not in the log is a mistake of its own, told before anything is changed. */
static int check_ids(struct work *work, struct outbox_error *err)
{
	struct outbox_claimed message;
	struct outbox_arena *arena = outbox_arena_new((size_t)64 << 20);
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && i < work->filter.n_ids; i++) {
		outbox_arena_reset(arena);
		r = work->cli->store->ops->get(work->cli->store, work->filter.ids[i], arena,
					       &message, err);
	}
	outbox_arena_free(arena);
	return r;
}

static int by_ids(struct work *work, const struct outbox_stats *stats, struct outbox_error *err)
{
	struct outbox_acted acted = { 0 };
	int r = choose_target(work, stats, err);

	work->filter.ids = work->cli->words;
	work->filter.n_ids = work->cli->n_words;
	work->filter.state = 0;
	if (r == OUTBOX_OK)
		r = check_ids(work, err);
	if (r == OUTBOX_OK)
		r = act_page(work, work->filter.n_ids, &acted, err);
	return r ? r : finish(work, &acted, err);
}

/* ---- by filter ----------------------------------------------------------------------------- */

static void note_target(struct buf *targets, const char *name)
{
	char wanted[OUTBOX_TARGET_NAME_MAX + 4], all[1024];

	snprintf(wanted, sizeof(wanted), ", %s,", name);
	snprintf(all, sizeof(all), ", %s,", buf_str(targets));
	if (!strstr(all, wanted))
		buf_printf(targets, "%s%s", targets->size ? ", " : "", name);
}

static int count(struct work *work, struct outbox_error *err)
{
	struct cli *cli = work->cli;
	struct outbox_filter filter = work->filter;
	struct outbox_page page;
	char cursor[512];
	int r;

	filter.limit = PAGE;
	do {
		outbox_arena_reset(cli->arena);
		r = cli->store->ops->list(cli->store, &filter, cli->arena, &page, err);
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			const struct outbox_delivery *row = &page.rows[i];

			note_target(&work->targets, row->target);
			if (!work->oldest || row->created_at < work->oldest)
				work->oldest = row->created_at;
		}
		work->count += page.count;
		work->capped = page.cursor && work->count >= OUTBOX_COUNT_CAP;
		snprintf(cursor, sizeof(cursor), "%s", page.cursor ? page.cursor : "");
		filter.cursor = cursor;
	} while (page.cursor && !work->capped);
	return OUTBOX_OK;
}

/* "1,204 deliveries to partner (oldest 3 h)" */
static void describe(const struct work *work, char *out, size_t size)
{
	char number[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];

	snprintf(out, size, "%s%s deliver%s to %.100s (oldest %s)",
		 work->capped ? "more than " : "", count_human((int64_t)work->count, number),
		 work->count == 1 ? "y" : "ies", buf_str(&work->targets),
		 age_text(work->cli->clock->wall(work->cli->clock), work->oldest, age));
}

static void keep_rate(double rate, outbox_time began, size_t done)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time due, wait;
	struct timespec pause;

	if (rate <= 0)
		return;
	due = began + (outbox_time)((double)done / rate * (double)OUTBOX_SECONDS);
	wait = due - clock->mono(clock);
	if (wait <= 0)
		return;
	pause = (struct timespec){ .tv_sec = (time_t)(wait / OUTBOX_SECONDS),
				   .tv_nsec = (long)(wait % OUTBOX_SECONDS) * 1000 };
	nanosleep(&pause, NULL);
}

static int work_off(struct work *work, struct outbox_acted *total, struct outbox_error *err)
{
	double rate = work->given->rate;
	size_t page = rate > 0 && rate / 10 < PAGE ? (size_t)(rate / 10) + 1 : PAGE;
	outbox_time began = outbox_clock_system()->mono(outbox_clock_system());
	struct outbox_acted acted = { .more = true };
	struct progress progress;
	int r = OUTBOX_OK;

	progress_start(&progress, work->verb->past, (int64_t)work->count);
	while (r == OUTBOX_OK && acted.more) {
		r = act_page(work, page, &acted, err);
		if (r)
			break;
		total->done += acted.done;
		if (!total->oldest || (acted.oldest && acted.oldest < total->oldest))
			total->oldest = acted.oldest;
		progress_show(&progress, (int64_t)total->done);
		acted.more = acted.more && acted.done > 0;
		if (acted.more)
			keep_rate(rate, began, total->done);
	}
	progress_end(&progress);
	if (r && total->done)
		return outbox_wrap(err, "after %zu deliver%s", total->done,
				   total->done == 1 ? "y" : "ies");
	return r;
}

static int by_filter(struct work *work, const struct outbox_stats *stats, struct outbox_error *err)
{
	struct outbox_acted total = { 0 };
	char what[250], question[300];
	int r;

	/* what is published or fails after it was counted was not confirmed */
	work->filter.created_before = stats->store_now;
	if (work->act.action == OUTBOX_REQUEUE)
		work->filter.changed_before = stats->store_now;
	r = count(work, err);
	if (r)
		return r;
	total.done = work->count;
	total.oldest = work->oldest;
	if (work->count == 0 || (work->given->dry_run && work->cli->json))
		return finish(work, &total, err);
	describe(work, what, sizeof(what));
	if (work->given->dry_run) {
		safe_say(stdout,
			 "would %s %s. Run again without --dry-run; add --rate 100/s to go gently.",
			 work->verb->now, what);
		return OUTBOX_OK;
	}
	snprintf(question, sizeof(question), "%s %s", work->verb->now, what);
	r = confirm_yes(work->cli, work->given->yes, question, err);
	total = (struct outbox_acted){ 0 };
	if (r == OUTBOX_OK)
		r = work_off(work, &total, err);
	return r ? r : finish(work, &total, err);
}

/* ---- both ---------------------------------------------------------------------------------- */

static int check_selection(const struct work *work, struct outbox_error *err)
{
	const struct selection *select = &work->given->select;
	bool ids = work->cli->n_words > 0;

	if (ids && (select->state || select->why || select->type || select->key))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "give ids or a filter, not both (--target goes with ids)");
	if (ids)
		return OUTBOX_OK;
	if (selection_empty(select))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "what? give ids, or select with --state, --target, --type, --key");
	if (work->act.action == OUTBOX_REQUEUE && work->filter.state != OUTBOX_FAILED)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "only failed deliveries can be requeued: --state failed");
	if (work->act.action == OUTBOX_DISCARD && work->filter.state != OUTBOX_FAILED &&
	    work->filter.state != OUTBOX_PENDING)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "say which ones to discard: --state failed or --state pending");
	return OUTBOX_OK;
}

int act_run(struct cli *cli, int action, const struct act_values *given, struct outbox_error *err)
{
	struct work work = {
		.cli = cli, .given = given, .verb = &verbs[action], .targets = BUF_INIT(1000)
	};
	struct outbox_stats stats;
	int r;

	r = selection_filter(&given->select, &work.filter, err);
	if (r)
		return r;
	if (action == OUTBOX_REQUEUE && !work.filter.state)
		work.filter.state = OUTBOX_FAILED;
	work.act = (struct outbox_act){ .action = action,
					.reason = given->reason,
					.until = given->until,
					.dry_run = given->dry_run };
	r = check_selection(&work, err);
	if (r == OUTBOX_OK)
		r = cli_open_target(cli, given->select.target, &stats, err);
	if (r)
		return r;
	work.act.actor = cli->actor;
	work.act.filter = &work.filter;
	r = cli->n_words ? by_ids(&work, &stats, err) : by_filter(&work, &stats, err);
	buf_deinit(&work.targets);
	return r;
}
