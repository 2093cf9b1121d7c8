/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From answers to verdicts, and from all verdicts of a batch to what they say of the target.
 *
 * A stream that is full, or without a leader, refuses everything, and that is an outage: nobody is to be charged
 * for it. One refusal alone does not tell an outage from a message whose stream, one of several that the target
 * writes to, is full. What tells is what came behind it: the messages were answered in order, so when a later one
 * was stored, the target works and the refused ones have a problem of their own.
 *
 * A target with stream=, or with one subject for all, has no other stream: there a refusal is an outage whatever
 * came behind it (a consumer may drain a full stream in the middle of a batch). And when the one subject is not
 * permitted, or no stream takes it, or the stream that was named is not there, that is not a message's problem either.
 */

#include "transport/nats/driver.h"

#include "base/text.h"
#include "transport/nats/verdict.h"

#include <string.h>

/* Looking for a stream must not eat the deadline. */
#define LOOK_FOR (2 * OUTBOX_SECONDS)

/* ---- one message ------------------------------------------------------------------------------------ */

static void close_slot(struct nats_transport *t, struct slot *slot, enum slot_state state)
{
	struct window *w = &t->window;

	w->unheard -= slot->unheard;
	slot->unheard = false;
	slot->state = state;
	w->open--;
	w->acked += state == SLOT_ACKED;
}

static void refuse(struct nats_transport *t, struct slot *slot, const struct answer *answer)
{
	static const enum slot_state states[] = {
		[CLASS_RETRY] = SLOT_DONE, [CLASS_PLACE] = SLOT_PLACE, [CLASS_REJECT] = SLOT_DONE,
		[CLASS_FULL] = SLOT_FULL,  [CLASS_AWAY] = SLOT_AWAY,
	};
	enum verdict_class class = verdict_of(answer->code);

	/* discard_new_per_subject: the others are not full. */
	if (class == CLASS_FULL && !t->constant && strstr(answer->description, "per subject"))
		class = CLASS_RETRY;
	outbox_batch_verdict(t->window.batch, slot->item,
			     class == CLASS_REJECT ? OUTBOX_REJECTED : OUTBOX_RETRY, answer->code,
			     "JetStream refused it: %s (%d)", answer->description, answer->code);
	close_slot(t, slot, states[class]);
}

static void settle_answer(struct nats_transport *t, size_t index, const char *json, size_t size)
{
	struct outbox_batch *batch = t->window.batch;
	struct slot *slot = &t->window.slots[index];
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct answer answer;

	if (slot->state != SLOT_OPEN)
		return;
	if (answer_parse(json, size, &answer, &why) != OUTBOX_OK) {
		outbox_batch_verdict(batch, slot->item, OUTBOX_UNKNOWN, 0, "%s", why.message);
		close_slot(t, slot, SLOT_DONE);
	} else if (answer.code) {
		refuse(t, slot, &answer);
	} else if (t->stream && strcmp(t->stream, answer.stream) != 0) {
		outbox_batch_verdict(batch, slot->item, OUTBOX_REJECTED, 0,
				     "it was stored by stream \"%s\", not by \"%s\"", answer.stream,
				     t->stream);
		close_slot(t, slot, SLOT_DONE);
	} else if (answer.duplicate && !t->suffix) {
		doubts_add(t, index, answer.stream, answer.seq);
		close_slot(t, slot, SLOT_DOUBT);
	} else {
		if (answer.duplicate)
			outbox_batch_duplicate(batch, slot->item);
		else
			outbox_batch_verdict(batch, slot->item, OUTBOX_ACKED, 0, NULL);
		close_slot(t, slot, SLOT_ACKED);
	}
}

static void mark_unheard(struct window *w, struct slot *slot)
{
	if (slot->state != SLOT_OPEN || slot->unheard)
		return;
	slot->unheard = true;
	w->unheard++;
}

void settle_message(struct nats_transport *t, const struct nats_frame *message)
{
	const bool unheard = message->status == NATS_NO_RESPONDERS;
	struct window *w = &t->window;
	uint64_t number;

	if (!pump_number(t, message->text, &number))
		return;
	if (number < w->first || number - w->first >= w->count) {
		if (unheard)
			doubts_unheard(t, number);
		else
			doubts_answer(t, number, message->data, message->size);
		return;
	}
	if (unheard)
		mark_unheard(w, &w->slots[number - w->first]);
	else
		settle_answer(t, (size_t)(number - w->first), message->data, message->size);
}

/* Is this the subject of the message? */
static bool has_subject(struct nats_transport *t, const struct slot *slot, const char *subject,
			size_t length)
{
	const struct outbox_item *item = t->window.batch->items[slot->item];

	return nats_subject(t, item->message, NULL) == OUTBOX_OK && t->text.size == length &&
	       memcmp(t->text.data, subject, length) == 0;
}

/* 'Permissions Violation for Publish to "x"': such a message is never answered. */
void settle_note(struct nats_transport *t, const char *text)
{
	struct window *w = &t->window;
	const char *begin = strstr(text, "Publish to \""), *end;

	begin = begin ? strchr(begin, '"') : NULL;
	end = begin ? strrchr(begin + 1, '"') : NULL;
	if (!end)
		return;
	doubts_forbidden(t, begin + 1, (size_t)(end - begin) - 1, text);
	for (size_t i = 0; i < w->count; i++) {
		struct slot *slot = &w->slots[i];

		if (slot->state != SLOT_OPEN ||
		    !has_subject(t, slot, begin + 1, (size_t)(end - begin) - 1))
			continue;
		outbox_batch_verdict(w->batch, slot->item, OUTBOX_RETRY, NATS_NOT_PERMITTED,
				     "%s; grant it to the relay's user", text);
		close_slot(t, slot, SLOT_PLACE);
	}
}

/* ---- the batch ---------------------------------------------------------------------------------------- */

/* Everything that is still open: nobody listens on its subject, or nobody answered. */
static void settle_open(struct nats_transport *t, bool unheard)
{
	struct window *w = &t->window;
	char shown[200];

	for (size_t i = 0; i < w->count; i++) {
		struct slot *slot = &w->slots[i];

		if (slot->state != SLOT_OPEN)
			continue;
		shown[0] = '\0';
		if (nats_subject(t, w->batch->items[slot->item]->message, NULL) == OUTBOX_OK)
			text_shown(shown, sizeof(shown), t->text.data);
		if (unheard)
			outbox_batch_verdict(w->batch, slot->item, OUTBOX_RETRY, NATS_NO_RESPONDERS,
					     "no stream accepts the subject \"%s\"; create one, or correct "
					     "the target's subject",
					     shown);
		else
			outbox_batch_verdict(w->batch, slot->item, OUTBOX_UNKNOWN, 0,
					     "sent to \"%s\", and no answer came", shown);
		close_slot(t, slot, unheard ? SLOT_PLACE : SLOT_DONE);
	}
}

/* The streams that take a message's subject. */
static int streams_for(struct nats_transport *t, const struct slot *slot, outbox_time deadline,
		       struct stream_names *ret_names, struct outbox_error *err)
{
	outbox_time limit = t->broker.clock->mono(t->broker.clock) + LOOK_FOR;
	char subject[NATS_SUBJECT_MAX + 1];
	int r = nats_subject(t, t->window.batch->items[slot->item]->message, err);

	if (r != OUTBOX_OK)
		return r;
	memcpy(subject, t->text.data, t->text.size + 1);
	return nats_stream_names(t, subject, limit < deadline ? limit : deadline, ret_names, err);
}

/* Is there a stream for the first message that nobody answered for? OK: no, JetStream says. */
static int look_for_stream(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	const struct window *w = &t->window;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct stream_names found;
	size_t i = 0;
	int r;

	while (i < w->count && w->slots[i].state != SLOT_OPEN)
		i++;
	if (i == w->count)
		return OUTBOX_OK;
	r = streams_for(t, &w->slots[i], deadline, &found, &why);
	if (r == OUTBOX_ENOTFOUND)
		return outbox_fail_native(err, OUTBOX_ECONN, NATS_NO_RESPONDERS,
					  "%s: JetStream does not answer on this server or for this "
					  "account; enable it (nats-server -js)",
					  t->broker.shown);
	if (r == OUTBOX_OK && found.count > 0)
		return outbox_fail_native(err, OUTBOX_ECONN, NATS_NO_RESPONDERS,
					  "%s: stream \"%s\" takes nothing now; it has no leader",
					  t->broker.shown, found.names[0]);
	if (r == OUTBOX_ECONN)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	return OUTBOX_OK;
}

bool settle_silence(struct nats_transport *t, size_t index, outbox_time deadline)
{
	struct slot *slot = &t->window.slots[index];
	struct stream_names found;

	if (slot->state != SLOT_OPEN || slot->unheard)
		return true;
	if (streams_for(t, slot, deadline, &found, NULL) != OUTBOX_OK || found.count > 0)
		return false;
	/* Its answer may have come while we asked, and a note on another's subject: ours is made again. */
	if (slot->state == SLOT_OPEN &&
	    nats_subject(t, t->window.batch->items[slot->item]->message, NULL) == OUTBOX_OK) {
		outbox_batch_verdict(
			t->window.batch, slot->item, OUTBOX_RETRY, 0,
			"no stream accepts the subject \"%s\", though something else subscribes to it; "
			"create one, or correct the target's subject",
			buf_str(&t->text));
		close_slot(t, slot, SLOT_PLACE);
	}
	return true;
}

/* Nobody listens on the subjects of what is open. */
static int settle_unheard(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = t->window.acked ? OUTBOX_OK : look_for_stream(t, deadline, err);

	if (r == OUTBOX_OK)
		settle_open(t, true);
	return r;
}

/* Was it the target that was refused? EAUTH says that nothing was stored, and that somebody must repair it. */
static int outage_of(const struct nats_transport *t, const struct slot *slot)
{
	if (slot->state == SLOT_FULL)
		return OUTBOX_EFULL;
	if (slot->state == SLOT_AWAY)
		return OUTBOX_ECONN;
	return slot->state == SLOT_PLACE && (t->constant || t->window.no_stream) ? OUTBOX_EAUTH
										 : OUTBOX_OK;
}

/* No message found a place, and the target has a stream of its own: is it there? */
static void look_for_own_stream(struct nats_transport *t, outbox_time deadline)
{
	outbox_time limit = t->broker.clock->mono(t->broker.clock) + LOOK_FOR;
	struct window *w = &t->window;
	bool homeless = false;

	for (size_t i = 0; i < w->count; i++)
		homeless |= w->slots[i].state == SLOT_PLACE;
	if (homeless && t->stream && !w->acked && !t->wire.ended)
		w->no_stream =
			nats_stream_missing(t, t->stream, limit < deadline ? limit : deadline);
}

/* Take back the verdicts of refusals that were the target's, not the messages'. */
static int settle_refused(struct nats_transport *t, struct outbox_error *err)
{
	struct window *w = &t->window;
	size_t first = 0, last_acked = 0;
	const struct outbox_item *item;
	int status;

	while (first < w->count && outage_of(t, &w->slots[first]) == OUTBOX_OK)
		first++;
	for (size_t i = 0; i < w->count; i++)
		if (w->slots[i].state == SLOT_ACKED)
			last_acked = i;
	if (first == w->count || (last_acked > first && !t->stream && !t->constant))
		return OUTBOX_OK;
	item = w->batch->items[w->slots[first].item];
	status = outage_of(t, &w->slots[first]);
	if (w->no_stream)
		status = outbox_fail_native(err, status, item->native,
					    "%s: there is no stream \"%s\"; create it, or correct "
					    "the target's stream=",
					    t->broker.shown, t->stream);
	else
		status = outbox_fail_native(err, status, item->native, "%s: %s", t->broker.shown,
					    item->reason ? item->reason : "JetStream refused it");
	for (size_t i = first; i < w->count; i++)
		if (outage_of(t, &w->slots[i]) != OUTBOX_OK)
			outbox_batch_verdict(w->batch, w->slots[i].item, OUTBOX_VERDICT_UNSET, 0,
					     NULL);
	return status;
}

int settle_batch(struct nats_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct window *w = &t->window;
	bool silent = w->count > 0 && w->open == w->count && w->unheard == 0;
	int r = OUTBOX_OK;

	if (t->wire.ended)
		r = pump_why(t, err);
	else if (w->open > 0 && w->open == w->unheard)
		r = settle_unheard(t, deadline, err);
	t->stale |= w->open > 0;
	if (r == OUTBOX_OK && silent)
		r = outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", t->broker.shown);
	settle_open(t, false);
	if (r == OUTBOX_OK) {
		look_for_own_stream(t, deadline);
		r = settle_refused(t, err);
	}
	return r;
}
