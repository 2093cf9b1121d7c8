/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/rules.h"

#include "base/text.h"
#include "operate/status.h"

#include <stdio.h>
#include <string.h>

#define SAY(view_, ...) ((void)snprintf((view_)->text, sizeof((view_)->text), __VA_ARGS__))

/* Store time as wall time: the two clocks may differ. */
static outbox_time as_wall(const struct rule_view *view, outbox_time store_time)
{
	return view->wall - (view->source->stats->store_now - store_time);
}

static const char *count_text(int64_t count, char out[COUNT_TEXT_MAX + 8])
{
	char plain[COUNT_TEXT_MAX];

	if (count > OUTBOX_COUNT_CAP)
		snprintf(out, COUNT_TEXT_MAX + 8, "more than %s",
			 count_human(OUTBOX_COUNT_CAP, plain));
	else
		snprintf(out, COUNT_TEXT_MAX + 8, "%s", count_human(count, plain));
	return out;
}

/* Why it stands still, where that is known; "" else. */
static const char *because(const struct rule_view *view, char out[120])
{
	const struct outbox_target_stats *target = view->target;

	out[0] = 0;
	if (target->paused)
		snprintf(out, 120, "; the target is paused by %.80s",
			 target->paused_by ? target->paused_by : "somebody");
	else if (target->outage)
		snprintf(out, 120, "; the target is unreachable");
	return out;
}

/* why: "", or because() where a target that stands still explains it. */
static enum truth above(struct rule_view *view, int64_t count, int64_t limit, const char *one,
			const char *many, const char *why)
{
	char shown[COUNT_TEXT_MAX + 8], bound[COUNT_TEXT_MAX];

	if (count <= limit)
		return TRUTH_FALSE;
	SAY(view, "%s %s, the limit is %s%s", count_text(count, shown), count == 1 ? one : many,
	    count_human(limit, bound), why);
	return TRUTH_TRUE;
}

static enum truth source_down(struct rule_view *view)
{
	if (view->source->stats)
		return TRUTH_FALSE;
	SAY(view, "the store does not answer: %.200s",
	    view->source->trouble ? view->source->trouble : "no reason known");
	return TRUTH_TRUE;
}

static enum truth relay_down(struct rule_view *view)
{
	if (!view->source->stats)
		return TRUTH_UNKNOWN;
	if (!view->source->trouble)
		return TRUTH_FALSE;
	SAY(view, "its relay does not run: %.200s", view->source->trouble);
	return TRUTH_TRUE;
}

static enum truth no_target(struct rule_view *view)
{
	char count[COUNT_TEXT_MAX + 8];

	if (!view->source->stats)
		return TRUTH_UNKNOWN;
	if (view->source->stats->n_targets > 0 || view->source->stats->messages <= 0)
		return TRUTH_FALSE;
	SAY(view, "%s message%s, and no target is registered",
	    count_text(view->source->stats->messages, count),
	    view->source->stats->messages == 1 ? "" : "s");
	return TRUTH_TRUE;
}

/* Only the relay that does it knows, and its log has the reason. */
static enum truth cleanup(struct rule_view *view)
{
	outbox_time since = 0;

	for (size_t i = 0; i < view->source->n_metrics; i++) {
		outbox_time one = view->source->metrics[i].untidy_since;

		if (one && (!since || one < since))
			since = one;
	}
	if (!since)
		return TRUTH_FALSE;
	view->since = since;
	SAY(view,
	    "the clean-up fails: messages stay past their retention; the relay's log says why (cleanup.failed)");
	return TRUTH_TRUE;
}

static enum truth failed(struct rule_view *view)
{
	return above(view, view->target->failed, view->limits->failed, "failed delivery",
		     "failed deliveries", "");
}

static enum truth refused(struct rule_view *view)
{
	size_t count;
	const struct outbox_lane_stats *lane = status_refused(view->target, &count);

	if (!lane)
		return TRUTH_FALSE;
	SAY(view, "relays refuse %zu of %zu lanes: %.200s", count, view->target->n_lanes,
	    lane->refused);
	return TRUTH_TRUE;
}

static enum truth unserved(struct rule_view *view)
{
	if (!view->target->unserved)
		return TRUTH_FALSE;
	view->since = as_wall(view, view->target->unserved_since);
	SAY(view, "not served: %.280s", view->target->unserved);
	return TRUTH_TRUE;
}

static enum truth outage(struct rule_view *view)
{
	if (!view->target->outage)
		return TRUTH_FALSE;
	view->since = as_wall(view, view->target->outage_since);
	SAY(view, "unreachable: %.250s", view->target->outage);
	return TRUTH_TRUE;
}

/* Lanes that are refused are held by nobody, and that is told already. */
static bool lanes_are_free(const struct rule_view *view)
{
	size_t count;

	return !status_refused(view->target, &count) && view->target->n_lanes > 0;
}

static enum truth no_relay(struct rule_view *view)
{
	if (!lanes_are_free(view) || status_held(view->source->stats, view->target) > 0)
		return TRUTH_FALSE;
	if (view->target->n_lanes == 1)
		SAY(view, "no relay works on it: no relay holds its lane");
	else
		SAY(view, "no relay works on it: no relay holds any of its %zu lanes",
		    view->target->n_lanes);
	return TRUTH_TRUE;
}

static enum truth lanes_idle(struct rule_view *view)
{
	size_t held = status_held(view->source->stats, view->target);

	if (!lanes_are_free(view) || held == 0 || held == view->target->n_lanes)
		return TRUTH_FALSE;
	SAY(view, "no relay holds %zu of its %zu lanes", view->target->n_lanes - held,
	    view->target->n_lanes);
	return TRUTH_TRUE;
}

static enum truth overdue(struct rule_view *view)
{
	char age_text[DURATION_TEXT_MAX], limit[DURATION_TEXT_MAX], why[120];
	outbox_time age = view->source->stats->store_now - view->target->oldest;

	if (!view->target->oldest || age <= view->limits->overdue)
		return TRUTH_FALSE;
	view->since = as_wall(view, view->target->oldest + view->limits->overdue);
	SAY(view, "an unfinished delivery has been ready to send for %s; the limit is %s%s",
	    duration_human(age, age_text), duration_human(view->limits->overdue, limit),
	    because(view, why));
	return TRUTH_TRUE;
}

static enum truth backlog(struct rule_view *view)
{
	char why[120];

	return above(view, status_lag(view->target), view->limits->backlog, "unfinished delivery",
		     "unfinished deliveries", because(view, why));
}

static enum truth pending(struct rule_view *view)
{
	char why[120];

	return above(view, view->target->pending, view->limits->pending, "unread message",
		     "unread messages", because(view, why));
}

static enum truth sending(struct rule_view *view)
{
	char age_text[DURATION_TEXT_MAX], limit[DURATION_TEXT_MAX], count[COUNT_TEXT_MAX + 8];
	outbox_time age = view->mono - view->progress->moved;

	if (!view->progress->begun || view->target->sending <= 0 || age <= view->limits->sending)
		return TRUTH_FALSE;
	view->since = view->wall - age + view->limits->sending;
	SAY(view, "%s being sent, and nothing has moved for %s; the limit is %s",
	    count_text(view->target->sending, count), duration_human(age, age_text),
	    duration_human(view->limits->sending, limit));
	return TRUTH_TRUE;
}

static enum truth latency(struct rule_view *view)
{
	const struct rule_checkpoint *from = &view->progress->older;
	char shown[DURATION_TEXT_MAX], limit[DURATION_TEXT_MAX];
	outbox_time average;
	uint64_t count;

	if (!view->metrics || !view->progress->begun)
		return TRUTH_FALSE;
	count = view->metrics->latency.count - from->count;
	if (count == 0)
		return TRUTH_FALSE;
	average = (view->metrics->latency.sum - from->sum) / (int64_t)count;
	if (average <= view->limits->latency)
		return TRUTH_FALSE;
	SAY(view,
	    "on average, %s from when a message could be sent to its acknowledgement; the limit is %s",
	    duration_human(average, shown), duration_human(view->limits->latency, limit));
	return TRUTH_TRUE;
}

static enum truth retry_rate(struct rule_view *view)
{
	int64_t retries = view->target->retries_minute;
	int64_t tries = view->target->delivered_minute + retries;

	if (tries < RETRY_RATE_MIN || retries * 100 <= view->limits->retry_rate * tries)
		return TRUTH_FALSE;
	SAY(view, "%lld %% of %lld tries in the last minute were refused, the limit is %lld %%",
	    (long long)(retries * 100 / tries), (long long)tries,
	    (long long)view->limits->retry_rate);
	return TRUTH_TRUE;
}

/* Wall; 0: not known. */
static outbox_time paused_since(const struct rule_view *view)
{
	for (size_t i = 0; i < view->source->n_acts; i++) {
		const struct outbox_audit *act = &view->source->acts[i];

		if (act->target && strcmp(act->target, view->target->name) == 0 &&
		    strcmp(act->action, "pause") == 0)
			return as_wall(view, act->at);
	}
	return 0;
}

static enum truth closed(struct rule_view *view)
{
	if (!status_closed(view->target))
		return TRUTH_FALSE;
	view->since = paused_since(view);
	SAY(view, "paused, since it said that it is gone: %.220s",
	    view->target->paused_reason ? view->target->paused_reason : "no reason known");
	return TRUTH_TRUE;
}

static enum truth paused(struct rule_view *view)
{
	if (!view->target->paused || status_closed(view->target))
		return TRUTH_FALSE;
	view->since = paused_since(view);
	SAY(view, "paused by %.80s: %.160s",
	    view->target->paused_by ? view->target->paused_by : "somebody",
	    view->target->paused_reason ? view->target->paused_reason : "no reason given");
	return TRUTH_TRUE;
}

const struct rule rules[RULE_COUNT] = {
	[RULE_SOURCE_DOWN] = { LEVEL_UNHEALTHY, false, false, source_down,
			       "the store does not answer" },
	[RULE_RELAY_DOWN] = { LEVEL_UNHEALTHY, false, false, relay_down,
			      "the store answers, but its relay does not run" },
	[RULE_NO_TARGET] = { LEVEL_DEGRADED, false, false, no_target,
			     "messages wait, and no target is registered" },
	[RULE_CLEANUP] = { LEVEL_DEGRADED, false, false, cleanup,
			   "retention fails, to archive messages or to remove them" },
	[RULE_FAILED] = { LEVEL_UNHEALTHY, true, true, failed,
			  "deliveries failed: they wait for a decision" },
	[RULE_REFUSED] = { LEVEL_UNHEALTHY, true, true, refused,
			   "relays refuse lanes: their positions do not match the log" },
	[RULE_UNSERVED] = { LEVEL_UNHEALTHY, true, false, unserved,
			    "a relay that is configured for the target does not serve it" },
	[RULE_OUTAGE] = { LEVEL_UNHEALTHY, true, false, outage, "a relay cannot reach the target" },
	[RULE_CLOSED] = { LEVEL_UNHEALTHY, true, true, closed,
			  "the target said that it is gone for good, and its relay paused it" },
	[RULE_NO_RELAY] = { LEVEL_UNHEALTHY, true, false, no_relay, "no relay works on the target" },
	[RULE_LANES_IDLE] = { LEVEL_DEGRADED, true, false, lanes_idle,
			      "relays work on only some of the target's lanes" },
	[RULE_OVERDUE] = { LEVEL_DEGRADED, true, false, overdue,
			   "a delivery has been unfinished for too long" },
	[RULE_BACKLOG] = { LEVEL_DEGRADED, true, false, backlog, "too many unfinished deliveries" },
	[RULE_PENDING] = { LEVEL_DEGRADED, true, false, pending,
			   "too many unread messages for too long" },
	[RULE_SENDING] = { LEVEL_DEGRADED, true, false, sending, "what is being sent does not move" },
	[RULE_LATENCY] = { LEVEL_DEGRADED, true, false, latency,
			   "on average, messages take too long to be acknowledged" },
	[RULE_RETRY_RATE] = { LEVEL_DEGRADED, true, false, retry_rate, "too many tries are refused" },
	[RULE_PAUSED] = { LEVEL_HEALTHY, true, true, paused, "somebody paused the target" },
};

bool rule_is_off(const struct config_health *limits, enum health_rule rule)
{
	for (size_t i = 0; i < limits->off.count; i++)
		if (glob_match(limits->off.items[i], rule_names[rule]))
			return true;
	return false;
}

enum health_level rule_worst(const struct config_health *limits, const struct outbox_stats *stats,
			     struct rule_reason *ret_why)
{
	const struct health_source source = { .name = "", .stats = stats };
	struct rule_progress none = { 0 };
	struct rule_view view = { .limits = limits, .source = &source, .progress = &none };
	enum health_level worst = LEVEL_HEALTHY;

	/* the source itself, then its targets */
	for (size_t i = 0; i <= stats->n_targets; i++) {
		view.target = i ? &stats->targets[i - 1] : NULL;
		for (int k = 0; k < RULE_COUNT; k++)
			if (rules[k].of_target == (view.target != NULL) && rules[k].level > worst &&
			    !rule_is_off(limits, (enum health_rule)k) &&
			    !(k == RULE_NO_RELAY && status_idle(view.target)) &&
			    rules[k].test(&view) == TRUTH_TRUE) {
				worst = rules[k].level;
				*ret_why = (struct rule_reason){ .rule = (enum health_rule)k };
				ret_why->target = view.target ? view.target->name : NULL;
				snprintf(ret_why->text, sizeof(ret_why->text), "%s", view.text);
			}
	}
	return worst;
}

static void note_latency(struct rule_progress *progress, const struct rule_view *view)
{
	const struct histogram_view *now = &view->metrics->latency;
	struct rule_checkpoint checkpoint = { view->mono, now->count, now->sum };

	/* another relay counts from zero */
	if (now->count < progress->newer.count) {
		progress->older = progress->newer = (struct rule_checkpoint){ view->mono, 0, 0 };
	} else if (view->mono - progress->newer.mono >= LATENCY_STEPS * view->limits->settle) {
		progress->older = progress->newer;
		progress->newer = checkpoint;
	}
}

void rule_progress_note(struct rule_progress *progress, const struct rule_view *view)
{
	int64_t receipts = 0;

	for (size_t i = 0; i < view->target->n_lanes; i++)
		receipts += view->target->lanes[i].receipts;
	if (!progress->begun) {
		progress->moved = view->mono;
		progress->older.mono = progress->newer.mono = view->mono;
		if (view->metrics) {
			progress->older.count = progress->newer.count = view->metrics->latency.count;
			progress->older.sum = progress->newer.sum = view->metrics->latency.sum;
		}
	}
	if (receipts != progress->receipts || view->target->sending == 0)
		progress->moved = view->mono;
	progress->receipts = receipts;
	progress->begun = true;
	if (view->metrics)
		note_latency(progress, view);
}
