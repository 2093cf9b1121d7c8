/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' acts on deliveries. Ids are one call, all told one by one; filters are in act_bulk.c. */
#include "cli/act.h"

#include "base/text.h"
#include "cli/json_out.h"
#include "cli/safe.h"

#include <stdio.h>
#include <string.h>

#define BUSY_TRIES 5

static const struct act_verb verbs[] = {
	[OUTBOX_REQUEUE] = { "requeue", "requeued" },
	[OUTBOX_DISCARD] = { "discard", "discarded" },
	[OUTBOX_DEFER] = { "defer", "deferred" },
};

int act_finish(struct act_work *work, const struct outbox_acted *acted, struct outbox_error *err)
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

int act_page(struct act_work *work, size_t limit, struct outbox_acted *ret_acted,
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

static int choose_target(struct act_work *work, const struct outbox_stats *stats,
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
static int check_ids(struct act_work *work, struct outbox_error *err)
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

static int by_ids(struct act_work *work, struct outbox_error *err)
{
	struct outbox_acted acted = { 0 };
	int r = choose_target(work, work->stats, err);

	work->filter.ids = work->cli->words;
	work->filter.n_ids = work->cli->n_words;
	work->filter.state = 0;
	if (r == OUTBOX_OK)
		r = check_ids(work, err);
	if (r == OUTBOX_OK)
		r = act_page(work, work->filter.n_ids, &acted, err);
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
