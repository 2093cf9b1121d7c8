/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to a place inside the broker, and its answer: $cbs takes tokens, and Artemis tells about itself. Two links of
 * their own for each question; they are rare.
 */

#include "transport/amqp1/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/session.h>
#include <proton/terminus.h>

#define REPLY_MAX 65536 /* of an answer more is nonsense */

static void free_link(pn_link_t **link)
{
	if (!*link)
		return;
	pn_link_close(*link);
	pn_link_free(*link);
	*link = NULL;
}

void request_end(struct amqp1_transport *t)
{
	struct amqp1_request *q = &t->request;

	free_link(&q->sender);
	free_link(&q->receiver);
	if (q->reply)
		pn_message_free(q->reply);
	*q = (struct amqp1_request){ 0 };
}

static void refuse(struct amqp1_request *q, pn_condition_t *condition)
{
	if (q->refused)
		return;
	q->refused = true;
	amqp1_condition_read(condition, q->why, sizeof(q->why));
}

bool request_closed(struct amqp1_transport *t, pn_link_t *link)
{
	struct amqp1_request *q = &t->request;

	if (!link || (link != q->sender && link != q->receiver))
		return false;
	refuse(q, pn_link_remote_condition(link));
	return true;
}

static void take_reply(struct amqp1_request *q, pn_delivery_t *delivery)
{
	size_t size = pn_delivery_pending(delivery);
	char *bytes = size && size <= REPLY_MAX ? malloc(size) : NULL;
	ssize_t n = bytes ? pn_link_recv(q->receiver, bytes, size) : -1;

	q->answered = n > 0 && pn_message_decode(q->reply, bytes, (size_t)n) == 0;
	if (!q->answered && !q->refused) {
		q->refused = true;
		snprintf(q->why, sizeof(q->why), "the answer cannot be read");
	}
	free(bytes);
	pn_delivery_update(delivery, PN_ACCEPTED);
	pn_delivery_settle(delivery);
}

bool request_delivery(struct amqp1_transport *t, pn_delivery_t *delivery)
{
	struct amqp1_request *q = &t->request;
	pn_link_t *link = pn_delivery_link(delivery);

	if (link == q->sender) {
		if (pn_delivery_remote_state(delivery) == PN_REJECTED)
			refuse(q, pn_disposition_condition(pn_delivery_remote(delivery)));
		return true;
	}
	if (link != q->receiver)
		return false;
	if (pn_delivery_readable(delivery) && !pn_delivery_partial(delivery))
		take_reply(q, delivery);
	return true;
}

static void attach(struct amqp1_transport *t, const char *address, bool dynamic)
{
	struct amqp1_request *q = &t->request;
	char name[64];

	snprintf(name, sizeof(name), "outbox-ask-%llu", (unsigned long long)++t->number);
	q->sender = pn_sender(t->session, name);
	pn_terminus_set_address(pn_link_target(q->sender), address);
	pn_terminus_set_address(pn_link_source(q->sender), name);
	snprintf(name, sizeof(name), "outbox-answer-%llu", (unsigned long long)t->number);
	q->receiver = pn_receiver(t->session, name);
	if (dynamic)
		pn_terminus_set_dynamic(pn_link_source(q->receiver), true);
	else
		pn_terminus_set_address(pn_link_source(q->receiver), address);
	pn_terminus_set_address(pn_link_target(q->receiver), name);
	pn_link_open(q->sender);
	pn_link_open(q->receiver);
	pn_link_flow(q->receiver, 1);
	q->reply = pn_message();
}

static bool may_ask(const struct amqp1_transport *t)
{
	const struct amqp1_request *q = &t->request;

	return q->refused ||
	       ((pn_link_state(q->receiver) & PN_REMOTE_ACTIVE) &&
		(pn_link_state(q->sender) & PN_REMOTE_ACTIVE) && pn_link_credit(q->sender) > 0);
}

static bool is_answered(const struct amqp1_transport *t)
{
	return t->request.answered || t->request.refused;
}

static int send_question(struct amqp1_transport *t, bool dynamic, pn_message_t *question,
			 struct outbox_error *err)
{
	struct amqp1_request *q = &t->request;
	pn_terminus_t *place =
		dynamic ? pn_link_remote_source(q->receiver) : pn_link_target(q->receiver);

	pn_message_set_reply_to(question, pn_terminus_get_address(place));
	pn_delivery(q->sender, pn_dtag((const char *)&t->number, sizeof(t->number)));
	if (pn_message_send(question, q->sender, NULL) < 0)
		return outbox_fail(err, OUTBOX_EINTERNAL, "a request cannot be encoded");
	return OUTBOX_OK;
}

int amqp1_request(struct amqp1_transport *t, const char *address, bool dynamic,
		  pn_message_t *question, outbox_time deadline, pn_message_t **ret_reply,
		  struct outbox_error *err)
{
	struct amqp1_request *q = &t->request;
	int r;

	request_end(t);
	attach(t, address, dynamic);
	r = amqp1_await(t, may_ask, "asking", deadline, err);
	if (r == OUTBOX_OK && !q->refused)
		r = send_question(t, dynamic, question, err);
	if (r == OUTBOX_OK)
		r = amqp1_await(t, is_answered, "asking", deadline, err);
	free_link(&q->sender);
	free_link(&q->receiver);
	if (r != OUTBOX_OK)
		return r;
	if (!q->answered)
		return outbox_fail(err, OUTBOX_EAUTH, "%s: %s refused: %s", t->broker.shown,
				   address, q->why);
	*ret_reply = q->reply;
	return OUTBOX_OK;
}
