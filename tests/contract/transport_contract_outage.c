/* SPDX-License-Identifier: Apache-2.0 */
/* The place goes away, at every moment: nothing that is not there is ever ACKED. */

#include "transport_case.h"

#include "transport/transport.h"

#include <string.h>

static bool is_outage(int status)
{
	return status == OUTBOX_ECONN || status == OUTBOX_EAUTH || status == OUTBOX_ETIMEDOUT ||
	       status == OUTBOX_EFULL;
}

/* Publish during an outage: it fails as one, with a text. */
static int publish_fails(struct transport_case *c, struct outbox_transport *transport)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = transport->ops->publish(transport, &c->batch, soon(), &err);

	assert_true(is_outage(r));
	assert_int_equal(err.status, r);
	assert_true(err.message[0] != '\0');
	assert_null(strchr(err.message, '\n'));
	return r;
}

static void publish_without_connection_fails(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->url(c->place), 0);

	case_messages(c, "a", 0, 3);
	publish_fails(c, transport);
	for (size_t i = 0; i < c->batch.count; i++)
		assert_int_equal(c->batch.items[i]->verdict, OUTBOX_VERDICT_UNSET);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	transport->ops->disconnect(transport);
	assert_true(is_outage(transport->ops->publish(transport, &c->batch, soon(), NULL)));
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_int_equal(c->arrivals.count, 0);
}

static void connect_fails_during_an_outage(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->url(c->place), 0);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	c->fixture->outage(c->place, true);
	assert_int_not_equal(connect_to(transport, &err), OUTBOX_OK);
	assert_true(err.message[0] != '\0');
	/* Half open: let go and come back. */
	transport->ops->disconnect(transport);
	c->fixture->outage(c->place, false);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_messages(c, "a", 0, 3);
	case_publish_acked(c, transport);
	transport_close(transport);
	case_read_back(c);
	assert_arrived_in_order(c);
}

static void close_during_an_outage(struct transport_case *c)
{
	struct outbox_transport *opened = case_open(c, c->fixture->url(c->place), 0);
	struct outbox_transport *connected = case_connect(c);
	struct outbox_transport *refused = case_open(c, c->fixture->url(c->place), 0);

	c->fixture->outage(c->place, true);
	assert_int_not_equal(connect_to(refused, NULL), OUTBOX_OK);
	transport_close(opened);
	transport_close(connected);
	transport_close(refused);
	c->fixture->outage(c->place, false);
}

static size_t find_place(const struct transport_case *c, const char *id)
{
	size_t at = 0;

	while (at < c->arrivals.count && strcmp(c->arrivals.items[at].id, id) != 0)
		at++;
	return at;
}

/* Who keeps order by itself leaves no gap: the suite's messages have one key. Repeats do not count. */
static void assert_no_gap(const struct transport_case *c, const struct outbox_batch *batch)
{
	size_t before = 0, at;

	for (size_t i = 0; i < batch->count; i++) {
		at = find_place(c, batch->items[i]->message->id);
		if (i && at < before)
			fail_msg("%s overtook the one before it", batch->items[i]->message->id);
		before = at;
	}
}

/* Break after k of n messages, then come back and send what has no ACK. */
static void break_and_go_on(struct transport_case *c, size_t k, size_t n)
{
	struct outbox_transport *transport = case_connect(c);
	bool keeps_order = transport->ops->flags & OUTBOX_TRANSPORT_KEEPS_ORDER;
	struct outbox_batch first;
	int r;

	case_messages(c, "a", 0, n);
	first = c->batch;
	c->fixture->outage_after(c->place, k);
	r = publish_fails(c, transport);
	transport->ops->disconnect(transport);
	c->fixture->outage(c->place, false);

	case_read_back(c);
	assert_acked_arrived(c);
	if (keeps_order)
		assert_no_gap(c, &first);
	/* EFULL and EAUTH promise that what has no verdict was not accepted. */
	for (size_t i = 0; i < n && (r == OUTBOX_EFULL || r == OUTBOX_EAUTH); i++)
		if (first.items[i]->verdict == OUTBOX_VERDICT_UNSET)
			assert_null(case_find(c, first.items[i]->message->id));

	/* The rest again, as the engine would. */
	c->batch.items = outbox_arena_alloc(c->arena, n * sizeof(struct outbox_item *));
	assert_non_null(c->batch.items);
	c->batch.count = 0;
	for (size_t i = 0; i < n; i++)
		if (first.items[i]->verdict != OUTBOX_ACKED)
			c->batch.items[c->batch.count++] = first.items[i];
	case_reset_verdicts(c);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(c, transport);
	transport_close(transport);
	c->batch = first;
	case_read_back(c);
	assert_acked_arrived(c);
	if (keeps_order)
		assert_no_gap(c, &first);
	case_new_batch(c);
}

static void outage_before_the_first_message(struct transport_case *c)
{
	break_and_go_on(c, 0, 10);
}

static void outage_in_the_middle_of_a_batch(struct transport_case *c)
{
	break_and_go_on(c, 7, 20);
}

static void outage_at_the_last_message(struct transport_case *c)
{
	break_and_go_on(c, 19, 20);
}

static void outage_in_a_large_batch(struct transport_case *c)
{
	break_and_go_on(c, 2100, 3000);
}

static void outage_between_two_batches(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);
	struct outbox_batch first;

	case_messages(c, "a", 0, 5);
	case_publish_acked(c, transport);
	first = c->batch;
	c->fixture->outage(c->place, true);
	case_new_batch(c);
	case_messages(c, "b", 0, 5);
	publish_fails(c, transport);
	for (size_t i = 0; i < c->batch.count; i++)
		assert_int_not_equal(c->batch.items[i]->verdict, OUTBOX_ACKED);
	transport->ops->disconnect(transport);
	c->fixture->outage(c->place, false);
	case_reset_verdicts(c);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(c, transport);
	transport_close(transport);
	case_read_back(c);
	assert_acked_arrived(c);
	c->batch = first;
	assert_acked_arrived(c);
}

/* The deadline has passed: late is legal, ACKED without being there is not. */
static void a_passed_deadline_acks_nothing_wrongly(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);
	struct outbox_clock *clock = outbox_clock_system();
	int r;

	case_messages(c, "a", 0, 50);
	r = transport->ops->publish(transport, &c->batch, clock->mono(clock) - 1, NULL);
	assert_true(r == OUTBOX_OK || r == OUTBOX_ETIMEDOUT);
	for (size_t i = 0; r == OUTBOX_OK && i < c->batch.count; i++)
		assert_int_not_equal(c->batch.items[i]->verdict, OUTBOX_VERDICT_UNSET);
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_acked_arrived(c);
}

const struct contract_case outage_cases[] = {
	{ "publish_without_connection_fails", publish_without_connection_fails, 0 },
	{ "connect_fails_during_an_outage", connect_fails_during_an_outage, CONTRACT_NO_OUTAGE },
	{ "close_during_an_outage", close_during_an_outage, CONTRACT_NO_OUTAGE },
	{ "outage_before_the_first_message", outage_before_the_first_message, CONTRACT_NO_OUTAGE },
	{ "outage_in_the_middle_of_a_batch", outage_in_the_middle_of_a_batch, CONTRACT_NO_OUTAGE },
	{ "outage_at_the_last_message", outage_at_the_last_message, CONTRACT_NO_OUTAGE },
	{ "outage_in_a_large_batch", outage_in_a_large_batch, CONTRACT_NO_OUTAGE },
	{ "outage_between_two_batches", outage_between_two_batches, CONTRACT_NO_OUTAGE },
	{ "a_passed_deadline_acks_nothing_wrongly", a_passed_deadline_acks_nothing_wrongly, 0 },
	{ NULL, NULL, 0 },
};
