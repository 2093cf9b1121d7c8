/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JetStream compares Nats-Msg-Id within a stream, not within a subject. When two targets write to one stream, the
 * second one's messages are answered "duplicate" and are not stored under its subject: taken as acknowledgements,
 * they would be lost. So a duplicate is not believed: the stream is asked for the message that it has, by the
 * sequence that it named, and only one under the same subject is this one. Everything else is RETRY: after the
 * duplicate window it is stored.
 *
 * With msg_id=target the ids of two targets differ, and nothing is asked.
 *
 * Repeats come in lots, after a crash or a lost answer, so several questions are under way at a time; not too
 * many, since every answer holds a whole message.
 */

#include "transport/nats/driver.h"

#include "base/text.h"
#include "transport/nats/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTIONS_MAX 16

/* ---- what becomes of it --------------------------------------------------------------------------- */

static void settled(struct nats_transport *t, struct doubt *doubt)
{
	if (doubt < t->doubts.list + t->doubts.asked)
		t->doubts.open--;
	doubt->settled = true;
}

/* It cannot be told. Not stored, for all we know. */
static void leave(struct nats_transport *t, struct doubt *doubt, int native, const char *why)
{
	outbox_batch_verdict(
		t->window.batch, t->window.slots[doubt->slot].item, OUTBOX_RETRY, native,
		"stream \"%s\" has this id already, and cannot tell under which subject: %s; "
		"it is sent again until the duplicate window has passed; with msg_id=target "
		"there is no need to ask",
		doubt->stream, why);
	settled(t, doubt);
}

static void compare(struct nats_transport *t, struct doubt *doubt, const char *subject)
{
	struct window *w = &t->window;
	struct slot *slot = &w->slots[doubt->slot];
	char has[200], wants[200];

	if (nats_subject(t, w->batch->items[slot->item]->message, NULL) == OUTBOX_OK &&
	    strcmp(buf_str(&t->text), subject) == 0) {
		outbox_batch_duplicate(w->batch, slot->item);
		slot->state = SLOT_ACKED;
		w->acked++;
	} else {
		outbox_batch_verdict(
			w->batch, slot->item, OUTBOX_RETRY, 0,
			"stream \"%s\" has this id already under the subject \"%s\" and did "
			"not store it under \"%s\"; add msg_id=target to the URLs of targets "
			"that share a stream",
			doubt->stream, text_shown(has, sizeof(has), subject),
			text_shown(wants, sizeof(wants), buf_str(&t->text)));
	}
	settled(t, doubt);
}

/* ---- questions and answers -------------------------------------------------------------------------- */

static bool grow(struct doubts *d)
{
	size_t capacity = d->capacity ? 2 * d->capacity : QUESTIONS_MAX;
	struct doubt *list;

	if (d->count < d->capacity)
		return true;
	list = reallocarray(d->list, capacity, sizeof(*list));
	if (!list)
		return false;
	d->list = list;
	d->capacity = capacity;
	return true;
}

void doubts_add(struct nats_transport *t, size_t slot, const char *stream, int64_t seq)
{
	struct doubts *d = &t->doubts;
	size_t item = t->window.slots[slot].item;
	char *copy = grow(d) ? strdup(stream) : NULL;

	/* Whatever comes between, it is not lost. */
	outbox_batch_verdict(t->window.batch, item, OUTBOX_UNKNOWN, 0,
			     "stream \"%s\" has this id already, and was not asked under which subject",
			     stream);
	if (copy)
		d->list[d->count++] = (struct doubt){ .slot = slot, .stream = copy, .seq = seq };
}

static bool ask(struct nats_transport *t, struct doubt *doubt)
{
	char subject[sizeof(NATS_MSG_GET) + 256], question[40];

	/* The name comes from outside, and becomes a subject. */
	if (!nats_tokens_valid(doubt->stream, false))
		return false;
	snprintf(subject, sizeof(subject), NATS_MSG_GET "%s", doubt->stream);
	snprintf(question, sizeof(question), "{\"seq\":%lld}", (long long)doubt->seq);
	doubt->number = pump_next_reply(t);
	pump_put_request(t, subject, question);
	return true;
}

bool doubts_ask(struct nats_transport *t)
{
	struct doubts *d = &t->doubts;

	while (d->asked < d->count && d->open < QUESTIONS_MAX) {
		struct doubt *doubt = &d->list[d->asked++];

		if (doubt->settled)
			continue;
		d->open++;
		if (!ask(t, doubt))
			leave(t, doubt, 0, "the question cannot be sent");
	}
	return d->open > 0;
}

/* The open question with this number, or NULL. */
static struct doubt *find(struct doubts *d, uint64_t number)
{
	for (size_t i = 0; i < d->asked; i++)
		if (!d->list[i].settled && d->list[i].number == number)
			return &d->list[i];
	return NULL;
}

void doubts_unheard(struct nats_transport *t, uint64_t number)
{
	if (find(&t->doubts, number))
		doubts_end(t, "nothing answers to " NATS_MSG_GET "* in this account");
}

void doubts_answer(struct nats_transport *t, uint64_t number, const char *json, size_t size)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	char subject[NATS_SUBJECT_MAX + 1];
	struct doubt *doubt = find(&t->doubts, number);

	if (!doubt)
		return;
	if (stored_parse(json, size, subject, sizeof(subject), &why) == OUTBOX_OK)
		compare(t, doubt, subject);
	else
		leave(t, doubt, why.native, why.message);
}

void doubts_forbidden(struct nats_transport *t, const char *subject, size_t length, const char *text)
{
	const size_t prefix = strlen(NATS_MSG_GET);
	char why[400];

	if (length <= prefix || strncmp(subject, NATS_MSG_GET, prefix) != 0)
		return;
	snprintf(why, sizeof(why), "%.300s; grant it to the relay's user", text);
	for (size_t i = 0; i < t->doubts.count; i++) {
		struct doubt *doubt = &t->doubts.list[i];

		if (!doubt->settled && strlen(doubt->stream) == length - prefix &&
		    memcmp(doubt->stream, subject + prefix, length - prefix) == 0)
			leave(t, doubt, NATS_NOT_PERMITTED, why);
	}
}

void doubts_end(struct nats_transport *t, const char *why)
{
	for (size_t i = 0; i < t->doubts.count && why; i++)
		if (!t->doubts.list[i].settled)
			leave(t, &t->doubts.list[i], 0, why);
}

void doubts_clear(struct nats_transport *t)
{
	struct doubts *d = &t->doubts;

	for (size_t i = 0; i < d->count; i++)
		free(d->list[i].stream);
	d->count = d->asked = d->open = 0;
}
