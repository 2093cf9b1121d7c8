/* SPDX-License-Identifier: Apache-2.0 */
#include "courier.h"
#include "drive.h"

#include <outbox/arena.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bag {
	struct outbox_message messages[COURIER_ITEMS];
	struct outbox_item items[COURIER_ITEMS];
	struct outbox_item *refs[COURIER_ITEMS];
	char ids[COURIER_ITEMS][8];
	bool done[COURIER_ITEMS]; /* ACKED or REJECTED */
	struct outbox_arena *arena;
};

static const struct outbox_header headers[] = { { "tenant", "t-1" } };

static void fill(struct bag *bag)
{
	memset(bag, 0, sizeof(*bag));
	bag->arena = outbox_arena_new((size_t)1 << 20);
	if (!bag->arena)
		abort();
	for (size_t i = 0; i < COURIER_ITEMS; i++) {
		struct outbox_message *m = &bag->messages[i];

		snprintf(bag->ids[i], sizeof(bag->ids[i]), "c-%zu", i);
		*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		m->type = "order.placed";
		m->id = bag->ids[i];
		m->key = "k";
		m->source = "/torture";
		m->content_type = "application/json";
		m->data = i == COURIER_BAD ? "{\"n\":" : "{\"n\":1}";
		m->size = strlen(m->data);
		m->headers = headers;
		m->n_headers = 1;
		m->event_time = m->expires_at = 1700000000 * OUTBOX_SECONDS;
		bag->items[i] = (struct outbox_item){ .message = m, .seq = (int64_t)i + 1 };
	}
}

static outbox_time soon(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + 20 * OUTBOX_SECONDS;
}

static void check_failure(int r, const struct outbox_error *err)
{
	bool was_on = fault_pause();

	torture_check_error(r, err);
	fault_resume(was_on);
}

/* What a verdict or its absence promises. */
static void check_item(const struct courier *c, struct bag *bag, size_t i, int r)
{
	const struct outbox_item *item = &bag->items[i];
	bool bad = i == COURIER_BAD && c->rejects;

	switch (item->verdict) {
	case OUTBOX_ACKED:
		if (!c->arrived(bag->ids[i], true))
			torture_wrong("%s is ACKED and not there", bag->ids[i]);
		bag->done[i] = true;
		break;
	case OUTBOX_REJECTED:
		if (!bad)
			torture_wrong("%s is REJECTED: %s", bag->ids[i], item->reason);
		bag->done[i] = true;
		break;
	case OUTBOX_RETRY:
		torture_wrong("%s is charged: %s", bag->ids[i], item->reason);
		break;
	case OUTBOX_VERDICT_UNSET:
		if (r == OUTBOX_OK)
			torture_wrong("%s has no verdict", bag->ids[i]);
		if ((r == OUTBOX_EFULL || r == OUTBOX_EAUTH) && c->arrived(bag->ids[i], false))
			torture_wrong("%s was promised not to be sent and is there", bag->ids[i]);
		break;
	default:
		torture_count_unknown();
	}
}

/* Items first to last of the bag that are not done. */
static int publish(const struct courier *c, struct outbox_transport *t, struct bag *bag,
		   size_t first, size_t last)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_batch batch = { .items = bag->refs, .memory = bag->arena };
	bool was_on;
	int r;

	for (size_t i = first; i < last; i++) {
		bag->items[i].verdict = 0;
		if (!bag->done[i])
			bag->refs[batch.count++] = &bag->items[i];
	}
	if (!batch.count)
		return OUTBOX_OK;
	r = t->ops->publish(t, &batch, soon(), &err);
	was_on = fault_pause();
	if (r != OUTBOX_OK)
		torture_check_error(r, &err);
	for (size_t i = first; i < last; i++) {
		if (!bag->done[i])
			check_item(c, bag, i, r);
	}
	fault_resume(was_on);
	return r;
}

static int live(const struct courier *c, struct bag *bag)
{
	struct outbox_transport_config config = {
		.struct_size = sizeof(config),
		.url = c->url,
		.target = "events",
		.envelope = c->envelope,
		.clock = outbox_clock_system(),
		.context = c->context,
	};
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *t = NULL;
	int r;

	r = c->ops->open(&config, &t, &err);
	if (r != OUTBOX_OK) {
		check_failure(r, &err);
		return r;
	}
	for (size_t half = 0; half < 2 && r == OUTBOX_OK; half++) {
		r = t->ops->connect(t, soon(), &err);
		if (r != OUTBOX_OK)
			check_failure(r, &err);
		else
			r = publish(c, t, bag, half * COURIER_ITEMS / 2,
				    (half + 1) * COURIER_ITEMS / 2);
		t->ops->disconnect(t);
	}
	/* The same transport comes back by itself once the fault is over. */
	fault_off();
	if (r != OUTBOX_OK) {
		r = t->ops->connect(t, soon(), &err);
		if (r != OUTBOX_OK)
			torture_wrong("does not connect again: %s", err.message);
		else if (publish(c, t, bag, 0, COURIER_ITEMS) != OUTBOX_OK)
			torture_wrong("does not publish again");
	}
	t->ops->close(t);
	return OUTBOX_OK;
}

void courier_run(const struct courier *c)
{
	struct bag bag;
	int r;

	fill(&bag);
	fault_on();
	r = live(c, &bag);
	fault_off();
	if (r != OUTBOX_OK && live(c, &bag) != OUTBOX_OK)
		torture_wrong("does not open again");
	for (size_t i = 0; i < COURIER_ITEMS; i++) {
		if (!bag.done[i])
			torture_wrong("%s never arrived", bag.ids[i]);
	}
	outbox_arena_free(bag.arena);
}
