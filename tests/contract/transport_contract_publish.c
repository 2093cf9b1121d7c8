/* SPDX-License-Identifier: Apache-2.0 */
/* What is published arrives, byte for byte and in order. */

#include "transport_case.h"

#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

static void publish_and_read(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);

	case_publish_acked(c, transport);
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_arrived_in_order(c);
}

static void one_message(struct transport_case *c)
{
	case_message(c, "a", 1);
	publish_and_read(c);
}

static void a_thousand_messages_in_order(struct transport_case *c)
{
	case_messages(c, "a", 0, 1000);
	publish_and_read(c);
}

static void no_message_at_all(struct transport_case *c)
{
	publish_and_read(c);
}

static void many_batches_on_one_connection(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);
	struct outbox_batch whole = c->batch;

	case_messages(c, "a", 0, 60);
	whole.count = c->batch.count;
	for (size_t first = 0; first < whole.count; first += 20) {
		c->batch.items = whole.items + first;
		c->batch.count = 20;
		case_publish_acked(c, transport);
	}
	c->batch = whole;
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_arrived_in_order(c);
}

static void all_bytes_arrive(struct transport_case *c)
{
	struct outbox_message *m = case_message(c, "bytes", 1);
	char bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	m->data = bytes;
	m->size = sizeof(bytes);
	m->content_type = "application/octet-stream";
	publish_and_read(c);
}

static void text_that_looks_like_framing_arrives(struct transport_case *c)
{
	struct outbox_message *m = case_message(c, "text", 1);

	m->data = "one\ntwo\r\n\"three\"\\ \t{}\n\n";
	m->size = strlen(m->data);
	m->content_type = "text/plain";
	case_message(c, "after", 2);
	publish_and_read(c);
}

static void empty_payloads_arrive(struct transport_case *c)
{
	struct outbox_message *m = case_message(c, "empty", 1);

	m->data = NULL;
	m->size = 0;
	m->content_type = "application/octet-stream";
	m = case_message(c, "empty", 2);
	m->data = "";
	m->size = 0;
	m->content_type = "text/plain";
	case_message(c, "after", 3);
	publish_and_read(c);
}

static void a_mebibyte_arrives(struct transport_case *c)
{
	const size_t size = (size_t)1 << 20;
	struct outbox_message *m;
	unsigned char *data = malloc(size);
	uint32_t state = 1;

	assert_non_null(data);
	for (size_t i = 0; i < size; i++) {
		state = state * 1664525u + 1013904223u;
		data[i] = (unsigned char)(state >> 24);
	}
	case_message(c, "before", 1);
	m = case_message(c, "large", 2);
	m->data = data;
	m->size = size;
	m->content_type = "application/octet-stream";
	case_message(c, "after", 3);
	publish_and_read(c);
	free(data);
}

static void large_text_arrives(struct transport_case *c)
{
	const size_t size = (size_t)1 << 20;
	struct outbox_message *m = case_message(c, "large", 1);
	char *data = malloc(size);

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = "abc\"\\\n"[i % 6];
	m->data = data;
	m->size = size;
	m->content_type = "text/plain";
	publish_and_read(c);
	free(data);
}

static void headers_arrive(struct transport_case *c)
{
	static const struct outbox_header headers[] = {
		{ "tenant", "acme" },
		{ "x-empty", "" },
		{ "x-quote", "a \"b\" \\ c" },
		{ "X-Upper", "Größe 42 € \xf0\x9f\x93\xa6" },
	};
	struct outbox_message *m = case_message(c, "id with spaces \"and\" \\ more", 1);

	m->headers = headers;
	m->n_headers = sizeof(headers) / sizeof(headers[0]);
	case_message(c, "after", 2);
	publish_and_read(c);
}

static void non_ascii_arrives(struct transport_case *c)
{
	struct outbox_message *m = case_message(c, "schlüssel-\xe2\x82\xac", 1);

	m->type = "bestellung.größer.\xf0\x9f\x93\xa6";
	m->key = "größe";
	m->subject = "заказ";
	m->data = "{\"name\":\"Größe \xe2\x82\xac \xf0\x9f\x93\xa6\"}";
	m->size = strlen(m->data);
	publish_and_read(c);
}

static void what_is_not_json_is_rejected_alone(struct transport_case *c)
{
	static const char *const broken[] = { "{\"n\":", "nul", "\xff\xfe", "{} {}" };
	struct outbox_transport *transport;

	for (size_t i = 0; i < 4; i++) {
		struct outbox_message *m;

		case_message(c, "good", i);
		m = case_message(c, "broken", i);
		m->data = broken[i];
		m->size = strlen(broken[i]);
	}
	case_message(c, "good", 4);
	transport = case_open(c, c->fixture->url(c->place), OUTBOX_ENVELOPE_CE_STRUCTURED);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish(c, transport);
	for (size_t i = 0; i < c->batch.count; i++) {
		const struct outbox_item *item = c->batch.items[i];

		if (item->message->id[0] == 'g')
			assert_int_equal(item->verdict, OUTBOX_ACKED);
		else
			assert_int_equal(item->verdict, OUTBOX_REJECTED);
		if (item->message->id[0] == 'b')
			assert_true(item->reason && item->reason[0]);
	}
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_int_equal(c->arrivals.count, 5);
}

static void transports_live_side_by_side(struct transport_case *c)
{
	struct outbox_transport *a = case_connect(c), *b = case_connect(c);
	struct outbox_batch whole = c->batch;

	case_messages(c, "a", 0, 40);
	whole.count = c->batch.count;
	for (size_t first = 0; first < whole.count; first += 10) {
		c->batch.items = whole.items + first;
		c->batch.count = 10;
		case_publish_acked(c, first % 20 ? b : a);
		/* One of them going away is nothing to the other. */
		if (first == 20)
			a = transport_close(a);
	}
	c->batch = whole;
	transport_close(b);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_arrived_in_order(c);
}

static void a_repeat_is_sent_again(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);

	case_messages(c, "a", 0, 3);
	case_publish_acked(c, transport);
	case_reset_verdicts(c);
	case_publish_acked(c, transport);
	transport_close(transport);
	if (c->fixture->flags & CONTRACT_NO_READ_BACK)
		return;
	case_read_back(c);
	assert_acked_arrived(c);
}

const struct contract_case publish_cases[] = {
	{ "one_message", one_message, 0 },
	{ "a_thousand_messages_in_order", a_thousand_messages_in_order, 0 },
	{ "no_message_at_all", no_message_at_all, 0 },
	{ "many_batches_on_one_connection", many_batches_on_one_connection, 0 },
	{ "all_bytes_arrive", all_bytes_arrive, 0 },
	{ "text_that_looks_like_framing_arrives", text_that_looks_like_framing_arrives, 0 },
	{ "empty_payloads_arrive", empty_payloads_arrive, 0 },
	{ "a_mebibyte_arrives", a_mebibyte_arrives, 0 },
	{ "large_text_arrives", large_text_arrives, 0 },
	{ "headers_arrive", headers_arrive, 0 },
	{ "non_ascii_arrives", non_ascii_arrives, 0 },
	{ "what_is_not_json_is_rejected_alone", what_is_not_json_is_rejected_alone,
	  CONTRACT_NO_ENVELOPE },
	{ "transports_live_side_by_side", transports_live_side_by_side, 0 },
	{ "a_repeat_is_sent_again", a_repeat_is_sent_again, 0 },
	{ NULL, NULL, 0 },
};
