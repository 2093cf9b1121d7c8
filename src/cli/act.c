/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' acts on deliveries. Ids are one call, all told one by one; filters are in act_bulk.c. */
#include "cli/act.h"

#include "base/safe.h"
#include "base/text.h"
#include "cli/format.h"

#include <stdio.h>
#include <string.h>

static const struct act_verb verbs[] = {
	[OUTBOX_REQUEUE] = { "requeue", "requeued" },
	[OUTBOX_DISCARD] = { "discard", "discarded" },
	[OUTBOX_DEFER] = { "defer", "deferred" },
};

int act_finish(struct act_work *work, const struct outbox_acted *acted, struct outbox_error *err)
{
	struct cli *cli = work->cli;
	char count[COUNT_TEXT_MAX];

	int r = act_check_refused(acted, &work->filter, err);

	if (r)
		return r;
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

int act_work_page(struct act_work *work, size_t limit, struct outbox_acted *ret_acted,
		  struct outbox_error *err)
{
	work->filter.limit = limit;
	return act_page(work->cli->store, &work->act, ret_acted, err);
}

/* ---- by ids -------------------------------------------------------------------------------- */

static int by_ids(struct act_work *work, struct outbox_error *err)
{
	struct outbox_acted acted = { 0 };
	int r = act_choose_target(work->stats, "--target", &work->filter, err);

	work->filter.ids = work->cli->words;
	work->filter.n_ids = work->cli->n_words;
	work->filter.state = 0;
	if (r == OUTBOX_OK)
		r = act_check_ids(work->cli->store, &work->filter, err);
	if (r == OUTBOX_OK)
		r = act_work_page(work, work->filter.n_ids, &acted, err);
	return r ? r : act_finish(work, &acted, err);
}

/* ---- both ---------------------------------------------------------------------------------- */

/* Which states each act is for; the store would select nothing else. */
static int check_state(const struct act_work *work, struct outbox_error *err)
{
	int state = work->filter.state;

	switch (work->act.action) {
	case OUTBOX_REQUEUE:
		return state == OUTBOX_FAILED
			       ? OUTBOX_OK
			       : outbox_fail(err, OUTBOX_EINVAL,
					     "only failed deliveries can be requeued: --state failed");
	case OUTBOX_DEFER:
		return state == OUTBOX_PENDING
			       ? OUTBOX_OK
			       : outbox_fail(
					 err, OUTBOX_EINVAL,
					 "only pending deliveries can be deferred: --state pending");
	default:
		return state == OUTBOX_FAILED || state == OUTBOX_PENDING
			       ? OUTBOX_OK
			       : outbox_fail(err, OUTBOX_EINVAL,
					     "say which ones to discard: --state failed or --state "
					     "pending");
	}
}

static int check_selection(const struct act_work *work, struct outbox_error *err)
{
	struct selection select = work->given->select;
	bool ids = work->cli->n_words > 0;

	if (!ids && selection_empty(&select))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "what? give ids, or select with --state, --target, --type, --key");
	select.target = NULL;
	if (ids && !selection_empty(&select))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "give ids or a filter, not both (--target goes with ids)");
	return ids ? OUTBOX_OK : check_state(work, err);
}

int act_run(struct cli *cli, int action, const struct act_values *given, struct outbox_error *err)
{
	struct act_work work = {
		.cli = cli, .given = given, .verb = &verbs[action], .targets = BUF_INIT(1000)
	};
	struct outbox_stats stats;
	int r;

	r = selection_filter(&given->select, &work.filter, err);
	if (r)
		return r;
	if (action == OUTBOX_REQUEUE && !work.filter.state)
		work.filter.state = OUTBOX_FAILED;
	if (action == OUTBOX_DEFER && !work.filter.state)
		work.filter.state = OUTBOX_PENDING;
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
	work.stats = &stats;
	r = cli->n_words ? by_ids(&work, err) : act_by_filter(&work, err);
	buf_deinit(&work.targets);
	return r;
}
