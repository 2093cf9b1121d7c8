/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requeue, discard, defer over HTTP. One call is one short transaction of at most `limit` deliveries: the relay is
 * never kept waiting, and whoever calls decides how fast it goes. While there is more, the next call gets `before`
 * and `cursor` from the answer: what fails again meanwhile is not picked up again, so it ends.
 */
#include "base/text.h"
#include "http/api.h"
#include "http/views.h"
#include "operate/act.h"

#include <string.h>

#define LIMIT_MAX 1000

static const char *const states[] = { "failed", "pending", NULL };
static const char *const failed[] = { "failed", NULL };
static const char *const pending[] = { "pending", NULL };
static const char *const whys[] = { "new", "retry", "deferred", "parked", "paused", NULL };

struct act_body {
	const char *source, *target, *type, *key, *state, *why, *reason, *cursor;
	struct field_texts ids;
	outbox_time before, until;
	size_t limit;
	bool dry_run;
};

#define B(name_, kind_, flags_, help_) FIELD(struct act_body, name_, kind_, flags_, help_)
#define WORD(name_, values_, help_)                                                             \
	{                                                                                       \
		.name = #name_, .type = FIELD_TEXT, .offset = offsetof(struct act_body, name_), \
		.words = (values_), .help = (help_)                                             \
	}

#define SELECTION                                                                                               \
	B(source, FIELD_TEXT, 0, "wanted where there are several"),                                             \
		{ .name = "ids",                                                                                \
		  .type = FIELD_LIST,                                                                           \
		  .offset = offsetof(struct act_body, ids),                                                     \
		  .min = 1,                                                                                     \
		  .max = LIMIT_MAX,                                                                             \
		  .help = "of messages; instead of a filter" },                                                 \
		B(target, FIELD_TEXT, 0, "with ids: wanted where there are several"),                           \
		B(type, FIELD_TEXT, 0, "* and ? match: order.*"),                                               \
		B(key, FIELD_TEXT, 0, "this key exactly"),                                                      \
		B(before, FIELD_AGO, 0,                                                                         \
		  "what was made later is not meant, of a requeue also what changed later: now, unless given"), \
		B(cursor, FIELD_TEXT, 0, "of the answer before"),                                               \
		FIELD_LIMIT(struct act_body, LIMIT_MAX,                                                         \
			    "deliveries in this call; 1000 unless given"),                                      \
		B(dry_run, FIELD_BOOL, 0, "say what would be done, change nothing")

static const struct field requeue_fields[] = {
	SELECTION,
	WORD(state, failed, "nothing else can be requeued"),
	B(reason, FIELD_TEXT, 0, "why, for the audit"),
};
static const struct field discard_fields[] = {
	SELECTION,
	WORD(state, states, "wanted with a filter"),
	WORD(why, whys, "of pending ones"),
	B(reason, FIELD_TEXT, FIELD_REQUIRED, "why, for the audit"),
};
static const struct field defer_fields[] = {
	SELECTION,
	WORD(state, pending, "nothing else can be deferred"),
	WORD(why, whys, NULL),
	B(until, FIELD_TIME, FIELD_REQUIRED, "not before this"),
	B(reason, FIELD_TEXT, 0, "why, for the audit"),
};

const struct record api_requeue_body = RECORD("Requeue", requeue_fields);
const struct record api_discard_body = RECORD("Discard", discard_fields);
const struct record api_defer_body = RECORD("Defer", defer_fields);

struct work {
	const struct admin_request *request;
	const char *name;
	struct act_body body;
	struct outbox_filter filter;
	struct outbox_act act;
	struct outbox_store *store;
};

/* ---- what is meant ------------------------------------------------------------------------- */

static int check_selection(struct work *work, struct outbox_error *err)
{
	const struct act_body *body = &work->body;
	bool filter = body->state || body->why || body->type || body->key;

	if (body->ids.count && filter)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "ids: give them or a filter, not both (target goes with ids)");
	if (body->ids.count)
		return OUTBOX_OK;
	if (!filter && !body->target)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "what? give ids, or select with state, target, type, key");
	if (work->act.action == OUTBOX_DISCARD && !body->state && !body->why)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "state is missing; write which ones to discard: failed or pending");
	if (body->why && body->state && strcmp(body->state, "pending") != 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "why: is for pending deliveries; leave it out with state %s",
				   body->state);
	return OUTBOX_OK;
}

static void fill(struct work *work)
{
	const struct act_body *body = &work->body;

	work->filter = (struct outbox_filter){ .struct_size = sizeof(work->filter),
					       .ids = body->ids.items,
					       .n_ids = body->ids.count,
					       .target = body->target,
					       .type = body->type,
					       .key = body->key,
					       .why = body->why ? outbox_why_parse(body->why) : 0,
					       .cursor = body->cursor,
					       .limit = body->limit ? body->limit : LIMIT_MAX };
	if (!body->ids.count) {
		work->filter.state = OUTBOX_PENDING;
		if (work->act.action == OUTBOX_REQUEUE ||
		    (body->state && strcmp(body->state, "failed") == 0))
			work->filter.state = OUTBOX_FAILED;
	}
	work->act.actor = work->request->actor;
	work->act.reason = body->reason;
	work->act.until = body->until;
	work->act.dry_run = body->dry_run;
	work->act.filter = &work->filter;
}

/* Ids want the target they are meant for; of a filter the store's own clock says what came later. */
static int settle_what(struct work *work, const struct outbox_stats *stats, struct outbox_error *err)
{
	int r;

	if (work->filter.n_ids) {
		r = act_choose_target(stats, "target", &work->filter, err);
		return r ? r : act_check_ids(work->store, &work->filter, err);
	}
	if (!work->body.before)
		work->body.before = stats->store_now;
	act_bound(work->act.action, work->body.before, &work->filter);
	return OUTBOX_OK;
}

/* ---- doing it ------------------------------------------------------------------------------ */

static int work_off(struct work *work, struct admin_response *response, struct outbox_error *err)
{
	struct acted_view view = { .action = work->name, .dry_run = work->body.dry_run };
	struct outbox_stats stats;
	int r = work->store->ops->stats(work->store, work->request->arena, &stats, err);

	if (r == OUTBOX_OK)
		r = settle_what(work, &stats, err);
	if (r == OUTBOX_OK)
		r = act_page(work->store, &work->act, &view.acted, err);
	if (r == OUTBOX_OK)
		r = act_check_refused(&view.acted, &work->filter, err);
	if (r)
		return r;
	view.before = work->filter.n_ids ? 0 : work->body.before;
	return api_answer(response, json_acted(&view), err);
}

static int act(const struct admin_request *request, int action, const struct record *record,
	       struct admin_response *response, struct outbox_error *err)
{
	static const char *const names[] = {
		[OUTBOX_REQUEUE] = "requeue", [OUTBOX_DISCARD] = "discard", [OUTBOX_DEFER] = "defer"
	};
	_cleanup_(daemon_close_storep) struct daemon_store *store = NULL;
	struct work work = { .request = request, .name = names[action], .act = { .action = action } };
	int r;

	r = api_body(request, record, &work.body, err);
	if (r == OUTBOX_OK)
		r = check_selection(&work, err);
	if (r == OUTBOX_OK)
		r = api_open(request, work.body.source, work.body.target, &store, err);
	if (r)
		return r;
	fill(&work);
	work.store = daemon_store_of(store);
	return work_off(&work, response, err);
}

API_HANDLER(api_requeue)
{
	return act(request, OUTBOX_REQUEUE, &api_requeue_body, response, err);
}

API_HANDLER(api_discard)
{
	return act(request, OUTBOX_DISCARD, &api_discard_body, response, err);
}

API_HANDLER(api_defer)
{
	return act(request, OUTBOX_DEFER, &api_defer_body, response, err);
}
