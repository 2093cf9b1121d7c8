/* SPDX-License-Identifier: Apache-2.0 */
#include "transport_case.h"

#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define BATCH_MAX 4096

/* ---- transports ---------------------------------------------------------------------------- */

outbox_time soon(void)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + CONTRACT_DEADLINE;
}

int case_try_open(struct transport_case *c, const char *url, int envelope,
		  struct outbox_transport **ret_transport, struct outbox_error *err)
{
	const struct transport_fixture *fixture = c->fixture;
	char borrowed[4096];
	struct outbox_transport_config config = {
		.struct_size = sizeof(config),
		.url = borrowed,
		.target = "target",
		.envelope = envelope,
		.clock = outbox_clock_system(),
		.context = fixture->context ? fixture->context(c->place) : NULL,
	};
	int r;

	snprintf(borrowed, sizeof(borrowed), "%s", url);
	r = fixture->ops->open(&config, ret_transport, err);
	/* The configuration is borrowed for the call only. */
	memset(borrowed, 'x', sizeof(borrowed));
	memset(&config, 0xee, sizeof(config));
	return r;
}

struct outbox_transport *case_open(struct transport_case *c, const char *url, int envelope)
{
	struct outbox_transport *transport = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (case_try_open(c, url, envelope, &transport, &err) != OUTBOX_OK)
		fail_msg("open %s: %s", url, err.message);
	assert_non_null(transport);
	assert_ptr_equal(transport->ops, c->fixture->ops);
	return transport;
}

int connect_to(struct outbox_transport *transport, struct outbox_error *err)
{
	return transport->ops->connect(transport, soon(), err);
}

struct outbox_transport *case_connect(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->url(c->place), 0);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (connect_to(transport, &err) != OUTBOX_OK)
		fail_msg("connect: %s", err.message);
	return transport;
}

/* ---- batches ------------------------------------------------------------------------------- */

void case_new_batch(struct transport_case *c)
{
	c->items = outbox_arena_alloc(c->arena, BATCH_MAX * sizeof(*c->items));
	c->messages = outbox_arena_alloc(c->arena, BATCH_MAX * sizeof(*c->messages));
	c->batch.items = outbox_arena_alloc(c->arena, BATCH_MAX * sizeof(struct outbox_item *));
	c->batch.count = 0;
	c->batch.memory = c->arena;
	c->capacity = BATCH_MAX;
	assert_non_null(c->items);
	assert_non_null(c->messages);
	assert_non_null(c->batch.items);
}

struct outbox_message *case_message(struct transport_case *c, const char *prefix, size_t n)
{
	size_t i = c->batch.count++;
	struct outbox_message *m = &c->messages[i];
	char text[128];

	assert_true(i < c->capacity);
	*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	m->type = "order.placed";
	snprintf(text, sizeof(text), "%s-%zu", prefix, n);
	m->id = outbox_arena_text(c->arena, text);
	snprintf(text, sizeof(text), "{\"n\":%zu}", n);
	m->data = outbox_arena_text(c->arena, text);
	m->size = strlen(text);
	m->key = "42";
	m->content_type = "application/json";
	m->kind = OUTBOX_KIND_EVENT;
	m->source = "/outbox/test";
	m->event_time = 1763197200 * OUTBOX_SECONDS;
	c->items[i] = (struct outbox_item){ .message = m, .seq = (int64_t)n + 1 };
	c->items[i].created_at = m->event_time;
	c->batch.items[i] = &c->items[i];
	return m;
}

void case_messages(struct transport_case *c, const char *prefix, size_t first, size_t count)
{
	for (size_t n = first; n < first + count; n++)
		case_message(c, prefix, n);
}

void case_reset_verdicts(struct transport_case *c)
{
	for (size_t i = 0; i < c->batch.count; i++) {
		c->batch.items[i]->verdict = OUTBOX_VERDICT_UNSET;
		c->batch.items[i]->reason = NULL;
	}
}

void case_publish(struct transport_case *c, struct outbox_transport *transport)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (transport->ops->publish(transport, &c->batch, soon(), &err) != OUTBOX_OK)
		fail_msg("publish: %s", err.message);
	assert_int_equal(err.status, 0);
	for (size_t i = 0; i < c->batch.count; i++) {
		const struct outbox_item *item = c->batch.items[i];

		assert_in_range(item->verdict, OUTBOX_ACKED, OUTBOX_UNKNOWN);
		if (item->verdict != OUTBOX_ACKED)
			assert_non_null(item->reason);
	}
}

void case_publish_acked(struct transport_case *c, struct outbox_transport *transport)
{
	case_publish(c, transport);
	for (size_t i = 0; i < c->batch.count; i++)
		if (c->batch.items[i]->verdict != OUTBOX_ACKED)
			fail_msg("%s: %s", c->batch.items[i]->message->id, c->batch.items[i]->reason);
}

/* ---- what arrived -------------------------------------------------------------------------- */

void arrivals_add(struct arrivals *arrivals, const char *id, const void *body, size_t size)
{
	struct arrival *arrival;

	if (arrivals->count == arrivals->capacity) {
		size_t capacity = arrivals->capacity ? 2 * arrivals->capacity : 256;
		struct arrival *grown =
			outbox_arena_alloc(arrivals->arena, capacity * sizeof(*grown));

		assert_non_null(grown);
		if (arrivals->count)
			memcpy(grown, arrivals->items, arrivals->count * sizeof(*grown));
		arrivals->items = grown;
		arrivals->capacity = capacity;
	}
	arrival = &arrivals->items[arrivals->count++];
	memset(arrival, 0, sizeof(*arrival));
	arrival->id = outbox_arena_text(arrivals->arena, id);
	arrival->body = outbox_arena_copy(arrivals->arena, body ? body : "", size);
	arrival->size = size;
	arrival->headers = outbox_arena_alloc(arrivals->arena,
					      2 * OUTBOX_HEADERS_MAX * sizeof(struct outbox_header));
	assert_non_null(arrival->id);
	assert_non_null(arrival->body);
	assert_non_null(arrival->headers);
}

void arrivals_header(struct arrivals *arrivals, const char *name, const char *value)
{
	struct arrival *arrival = &arrivals->items[arrivals->count - 1];
	struct outbox_header *header = &arrival->headers[arrival->n_headers++];

	assert_true(arrival->n_headers <= 2 * (size_t)OUTBOX_HEADERS_MAX);
	header->name = outbox_arena_text(arrivals->arena, name);
	header->value = outbox_arena_text(arrivals->arena, value);
	assert_non_null(header->name);
	assert_non_null(header->value);
}

void case_read_back(struct transport_case *c)
{
	c->arrivals = (struct arrivals){ .arena = c->arena };
	c->fixture->read_back(c->place, &c->arrivals);
}

const struct arrival *case_find(const struct transport_case *c, const char *id)
{
	for (size_t i = 0; i < c->arrivals.count; i++)
		if (strcmp(c->arrivals.items[i].id, id) == 0)
			return &c->arrivals.items[i];
	return NULL;
}

static void assert_same(const struct outbox_message *m, const struct arrival *arrival)
{
	assert_string_equal(arrival->id, m->id);
	assert_int_equal(arrival->size, m->size);
	if (m->size)
		assert_memory_equal(arrival->body, m->data, m->size);
	for (size_t i = 0; i < m->n_headers; i++) {
		const char *value = NULL;

		for (size_t k = 0; k < arrival->n_headers && !value; k++)
			if (strcasecmp(arrival->headers[k].name, m->headers[i].name) == 0)
				value = arrival->headers[k].value;
		if (!value)
			fail_msg("%s: header \"%s\" did not arrive", m->id, m->headers[i].name);
		assert_string_equal(value, m->headers[i].value);
	}
}

void assert_acked_arrived(const struct transport_case *c)
{
	for (size_t i = 0; i < c->batch.count; i++) {
		const struct outbox_message *m = c->batch.items[i]->message;
		const struct arrival *arrival = case_find(c, m->id);

		if (c->batch.items[i]->verdict != OUTBOX_ACKED)
			continue;
		if (!arrival)
			fail_msg("%s was ACKED and did not arrive", m->id);
		assert_same(m, arrival);
	}
}

void assert_arrived_in_order(const struct transport_case *c)
{
	assert_int_equal(c->arrivals.count, c->batch.count);
	for (size_t i = 0; i < c->batch.count; i++)
		assert_same(c->batch.items[i]->message, &c->arrivals.items[i]);
}
