/* SPDX-License-Identifier: Apache-2.0 */

/* Corrections and cancelling: what all stores say and what all callers want. */
#include "base/text.h"
#include "core/message.h"
#include "store/store.h"

int store_amend_judge(const char *target, int state, struct outbox_error *err)
{
	if (state == OUTBOX_SENDING)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it is being sent to %s right now; try again", target);
	if (state == OUTBOX_DELIVERED)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it was delivered to %s, so it cannot be amended: publish a correction, "
				   "and discard what is left of this one",
				   target);
	return OUTBOX_OK;
}

int store_amend_nothing(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "none of its deliveries is left to send, so there is nothing to amend: "
			   "publish a correction");
}

int store_amend_reroutes(const char *target, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "whether %s gets it goes by its headers: leave those as they are, or discard it "
			   "and publish a correction",
			   target);
}

/* As `outbox publish` does: what a relay would refuse later is refused now. */
static int check(const struct outbox_message *m, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;

	if (m->size <= OUTBOX_PAYLOAD_MAX && content_type_is_json(m->content_type) &&
	    json_text_check(m->data, m->size, &why) != OUTBOX_OK)
		return outbox_fail_detail(err, OUTBOX_EINVAL, OUTBOX_DETAIL_FIELD,
					  "data: the content type is %s, but this is not JSON: %.300s",
					  m->content_type, why.message);
	return outbox_message_validate(m, 0, err);
}

int store_correct(struct outbox_store *store, const struct store_correction *c,
		  struct outbox_arena *arena, struct outbox_amended *ret_amended,
		  struct outbox_error *err)
{
	struct outbox_amend amend = {
		.struct_size = sizeof(amend), .id = c->id, .actor = c->actor, .reason = c->reason
	};
	struct outbox_claimed found;
	int r;

	if (!c->data && !c->content_type && !c->set_headers)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "nothing to change: give data, content_type or headers");
	r = store_get(store, c->id, arena, &found, err);
	if (r != OUTBOX_OK)
		return r;
	if (c->data) {
		found.message.data = c->data;
		found.message.size = c->size;
	}
	if (c->content_type)
		found.message.content_type = c->content_type;
	if (c->set_headers) {
		found.message.headers = c->headers;
		found.message.n_headers = c->n_headers;
	} else if (found.malformed) {
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: the stored ones cannot be read (%.300s); give new ones",
				   found.malformed);
	}
	amend.message = &found.message;
	r = check(&found.message, err);
	return r == OUTBOX_OK ? store_amend(store, &amend, ret_amended, err) : r;
}

int store_cancel_check(outbox_time due_at, outbox_time now, struct outbox_error *err)
{
	char time[TIME_TEXT_MAX];

	if (!due_at)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it is not scheduled: only a message with a due_at in the future can be "
				   "cancelled; outbox discard stops what is not sent yet");
	if (due_at <= now)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it was due at %s: only a message that is due later can be cancelled; "
				   "outbox discard stops what is not sent yet",
				   time_format(due_at, time));
	return OUTBOX_OK;
}

int store_cancel_judge(const struct outbox_delivery *d, outbox_time now, bool *ret_wanted,
		       struct outbox_error *err)
{
	*ret_wanted = d->state == OUTBOX_PENDING;
	switch (d->state) {
	case OUTBOX_STATE_UNSET:
	case OUTBOX_DISCARDED:
		return OUTBOX_OK;
	case OUTBOX_SENDING:
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it is being sent to %s right now; try again", d->target);
	case OUTBOX_PENDING:
		if (d->why == OUTBOX_NEW || d->why == OUTBOX_PAUSED ||
		    (d->why == OUTBOX_DEFERRED && (!d->next_attempt_at || d->next_attempt_at > now)))
			return OUTBOX_OK;
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "it is due at %s already; outbox discard stops what is not sent yet",
				   d->target);
	default:
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "its delivery to %s is %s; only a message that was sent nowhere can "
				   "be cancelled",
				   d->target, outbox_state_name(d->state));
	}
}
