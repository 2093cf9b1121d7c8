/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sender for each address, and a bounded number of them: the one that was not used for the longest time makes room.
 *
 * They are attached one after the other. Some brokers end the session, and with it everything, at an address that they do
 * not like; so it is known which one that was, and its messages alone are charged.
 */

#include "transport/amqp1/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <proton/codec.h>
#include <proton/session.h>
#include <proton/terminus.h>

void links_free_one(struct amqp1_link *link)
{
	if (link->link) {
		pn_link_set_context(link->link, NULL);
		pn_link_close(link->link);
		pn_link_free(link->link);
	}
	free(link->address);
	*link = (struct amqp1_link){ .state = LINK_FREE };
}

void links_free_all(struct amqp1_transport *t)
{
	for (int64_t i = 0; i < t->n_links; i++)
		links_free_one(&t->links[i]);
}

bool links_any_attaching(const struct amqp1_transport *t)
{
	for (int64_t i = 0; i < t->n_links; i++)
		if (t->links[i].state == LINK_ATTACHING)
			return true;
	return false;
}

/* ---- attach ------------------------------------------------------------------------------------------- */

static void attach(struct amqp1_transport *t, struct amqp1_link *link)
{
	char name[64];
	pn_terminus_t *target;

	snprintf(name, sizeof(name), "outbox-%llu", (unsigned long long)++t->number);
	link->link = pn_sender(t->session, name);
	target = pn_link_target(link->link);
	pn_terminus_set_address(target, link->address);
	if (link->capability != CAPABILITY_NONE) {
		const char *word = link->capability == CAPABILITY_QUEUE ? "queue" : "topic";

		pn_data_put_symbol(pn_terminus_capabilities(target), pn_bytes(strlen(word), word));
	}
	pn_terminus_set_address(pn_link_source(link->link), t->broker.client);
	pn_link_set_snd_settle_mode(link->link, PN_SND_UNSETTLED);
	pn_link_set_rcv_settle_mode(link->link, PN_RCV_FIRST);
	pn_link_set_context(link->link, link);
	pn_link_open(link->link);
	link->state = LINK_ATTACHING;
}

bool links_attach_again(struct amqp1_transport *t, struct amqp1_link *link)
{
	if (link->attached_again)
		return false;
	pn_link_set_context(link->link, NULL);
	pn_link_close(link->link);
	pn_link_free(link->link);
	link->in_flight = 0;
	link->attached_again = true;
	attach(t, link);
	return true;
}

/* Free, or the one of those that nobody needs that was used first. NULL: all are needed. */
static struct amqp1_link *make_room(struct amqp1_transport *t)
{
	struct amqp1_link *oldest = NULL;

	for (int64_t i = 0; i < t->n_links; i++) {
		struct amqp1_link *link = &t->links[i];

		if (link->state == LINK_FREE)
			return link;
		if (link->waiting == 0 && link->in_flight == 0 && link->state == LINK_READY &&
		    (!oldest || link->used < oldest->used))
			oldest = link;
	}
	if (oldest)
		links_free_one(oldest);
	return oldest;
}

static struct amqp1_link *find(struct amqp1_transport *t, const char *address,
			       enum amqp1_capability capability)
{
	for (int64_t i = 0; i < t->n_links; i++) {
		struct amqp1_link *link = &t->links[i];

		if (link->state != LINK_FREE && link->capability == capability &&
		    strcmp(link->address, address) == 0)
			return link;
	}
	return NULL;
}

int links_get(struct amqp1_transport *t, const char *address, enum amqp1_capability capability,
	      outbox_time deadline, struct amqp1_link **ret_link, struct outbox_error *err)
{
	struct amqp1_link *link = find(t, address, capability);
	outbox_time token_ends = link ? link->token_ends : 0;
	bool is_new = !link;
	int r;

	*ret_link = NULL;
	if (is_new && links_any_attaching(t))
		return OUTBOX_OK;
	if (is_new)
		link = make_room(t);
	if (!link)
		return OUTBOX_OK;
	r = cbs_refresh(t, address, &token_ends, deadline, err);
	if (r != OUTBOX_OK)
		return r;
	if (is_new) {
		link->address = strdup(address);
		if (!link->address)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		link->capability = capability;
		attach(t, link);
	}
	link->token_ends = token_ends;
	link->used = ++t->number;
	*ret_link = link;
	return OUTBOX_OK;
}

/* ---- what the broker says ------------------------------------------------------------------------------ */

/* A target that is not there is refused by an attach without one, and the reason comes with the detach behind it. */
void links_opened(struct amqp1_transport *t, pn_link_t *link)
{
	struct amqp1_link *ours = pn_link_get_context(link);

	(void)t;
	if (!ours || ours->link != link || ours->state != LINK_ATTACHING ||
	    pn_terminus_get_type(pn_link_remote_target(link)) == PN_UNSPECIFIED)
		return;
	ours->state = LINK_READY;
}

void links_closed(struct amqp1_transport *t, pn_link_t *link)
{
	struct amqp1_link *ours = pn_link_get_context(link);

	(void)t;
	if (!ours || ours->link != link)
		return;
	ours->state = LINK_CLOSED;
	ours->row =
		amqp1_condition_read(pn_link_remote_condition(link), ours->why, sizeof(ours->why));
}

/* ---- the only one -------------------------------------------------------------------------------------- */

static bool is_attached(const struct amqp1_transport *t)
{
	return !links_any_attaching(t);
}

int links_attach_only(struct amqp1_transport *t, outbox_time deadline, struct outbox_error *err)
{
	enum amqp1_capability capability;
	struct amqp1_link *link = NULL;
	int r = amqp1_address(t, NULL, &capability, err);

	if (r == OUTBOX_OK)
		r = links_get(t, buf_str(&t->text), capability, deadline, &link, err);
	if (r == OUTBOX_OK)
		r = amqp1_await(t, is_attached, "attaching to the address", deadline, err);
	if (r != OUTBOX_OK || !link || link->state == LINK_READY)
		return r;
	return outbox_fail(err, link->row->closed, "%s: the address \"%s\" was refused: %s",
			   t->broker.shown, link->address, link->why);
}
