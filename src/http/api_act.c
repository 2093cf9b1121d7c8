/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requeue, discard, defer over HTTP. One call is one short transaction of at most `limit` deliveries: the relay is
 * never kept waiting, and whoever calls decides how fast it goes. While there is more, the next call gets `before`
 * and `cursor` from the answer: what fails again meanwhile is not picked up again, so it ends.
 */
#include "base/clock.h"
#include "core/lifecycle.h"
#include "http/api.h"
#include "http/views.h"
#include "operate/act.h"
#include "store/store.h"

#define LIMIT_MAX 1000

static const char *const states[] = { "failed", "pending", NULL };
static const char *const failed[] = { "failed", NULL };
static const char *const pending[] = { "pending", NULL };

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

#define SELECTION                                                                                    \
	API_SOURCE(struct act_body),                                                                 \
		{ .name = "ids",                                                                     \
		  .type = FIELD_TEXTS,                                                               \
		  .offset = offsetof(struct act_body, ids),                                          \
		  .min = 1,                                                                          \
		  .max = LIMIT_MAX,                                                                  \
		  .help = "message ids, instead of a filter" },                                      \
		B(target, FIELD_TEXT, 0, "required with ids when there are several targets"),        \
		B(type, FIELD_TEXT, 0, "* and ? match: order.*"),                                    \
		B(key, FIELD_TEXT, 0, "this key exactly"),                                           \
		B(before, FIELD_AGO, 0,                                                              \
		  "only if created before this and, for requeue, changed before it (default: now)"), \
		B(cursor, FIELD_TEXT, 0, "the cursor of the previous answer"),                       \
		FIELD_LIMIT(struct act_body, LIMIT_MAX,                                              \
			    "deliveries in this call; 1000 unless given"),                           \
		B(dry_run, FIELD_BOOL, 0, "say what would be done, change nothing")

static const struct field requeue_fields[] = {
	SELECTION,
	WORD(state, failed, "nothing else can be requeued"),
	B(reason, FIELD_TEXT, 0, "why, for the audit"),
};
static const struct field discard_fields[] = {
	SELECTION,
	WORD(state, states, "required with a filter"),
	WORD(why, why_names, "why the delivery is pending"),
	B(reason, FIELD_TEXT, FIELD_REQUIRED, "why, for the audit"),
};
static const struct field defer_fields[] = {
	SELECTION,
	WORD(state, pending, "nothing else can be deferred"),
	WORD(why, why_names, NULL),
	B(until, FIELD_TIME, FIELD_REQUIRED, "the earliest time to send"),
	B(reason, FIELD_TEXT, 0, "why, for the audit"),
};

const struct record api_requeue_body = RECORD("Requeue", requeue_fields);
const struct record api_discard_body = RECORD("Discard", discard_fields);
const struct record api_defer_body = RECORD("Defer", defer_fields);

static int fill_filter(const struct act_body *body, const struct outbox_act *act,
		       struct outbox_filter *filter, struct outbox_error *err)
{
	const struct selection selection = { .state = body->state,
					     .why = body->why,
					     .target = body->target,
					     .type = body->type,
					     .key = body->key };
	int r = selection_filter(&selection, NAMED_AS_FIELD, filter, err);

	if (r)
		return r;
	filter->ids = body->ids.items;
	filter->n_ids = body->ids.count;
	filter->cursor = body->cursor;
	filter->limit = body->limit ? body->limit : LIMIT_MAX;
	r = act_check(act, NAMED_AS_FIELD, wall_now(), filter, err);
	if (filter->n_ids)
		return r;
	/* a bound for the calls that follow; by itself it selects nothing, and ids need none */
	filter->created_before = body->before;
	filter->changed_before = act->action == OUTBOX_REQUEUE ? body->before : 0;
	return r;
}

static int act(const struct http_request *request, int action, const struct record *record,
	       struct http_response *response, struct outbox_error *err)
{
	struct acted_view view = { .action = action_names[action] };
	struct act_body body = { 0 };
	struct outbox_filter filter = { 0 };
	struct outbox_act act = { .action = action, .actor = request->actor, .filter = &filter };
	struct outbox_stats stats;
	struct outbox_store *store;
	int r = api_body(request, record, &body, err);

	act.reason = body.reason;
	act.until = body.until;
	act.dry_run = view.dry_run = body.dry_run;
	if (r == OUTBOX_OK)
		r = fill_filter(&body, &act, &filter, err);
	if (r == OUTBOX_OK)
		r = api_open(request, body.source, body.target, &store, err);
	if (r)
		return r;
	r = store_stats(store, request->arena, &stats, err);
	if (r == OUTBOX_OK)
		r = act_settle(store, &stats, action, NAMED_AS_FIELD, &filter, err);
	if (r == OUTBOX_OK)
		r = act_page(store, &act, &view.acted, err);
	if (r)
		return r;
	view.before = filter.n_ids ? 0 : filter.created_before;
	return api_answer(response, fields_json(&view_acted, &view), err);
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
