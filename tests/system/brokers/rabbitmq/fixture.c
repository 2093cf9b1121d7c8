/* SPDX-License-Identifier: Apache-2.0 */
/* amqp: under the transport contract, against a real broker behind a proxy. Run it by with-rabbitmq. */

#include "contract/transport_case.h"
#include "contract/transport_proxied.h"
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops rabbitmq_transport_ops;

#define MESSAGE_BYTES 330 /* about one of the suite's small messages on the wire */

struct place {
	struct proxied link;
	amqp_connection_state_t admin;
	char name[40];
	struct outbox_arena *arena;
	struct arrivals taken; /* everything that was read so far */
};

static int broker_port(void)
{
	return atoi(getenv("OUTBOX_TEST_RABBITMQ_PORT"));
}

static const char *unavailable(void)
{
	return getenv("OUTBOX_TEST_RABBITMQ_PORT") ? NULL : "run it by tests/support/with-rabbitmq";
}

static void *setup(void)
{
	static int n;
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "case-%d", n++);
	p->admin = queue_connect(broker_port());
	queue_make(p->admin, p->name);
	p->link.message_bytes = MESSAGE_BYTES;
	p->link.proxy = proxy_start(broker_port());
	snprintf(p->link.url, sizeof(p->link.url), "amqp://guest:guest@127.0.0.1:%d/?exchange=%s",
		 proxy_port(p->link.proxy), p->name);
	snprintf(p->link.missing, sizeof(p->link.missing),
		 "amqp://guest:guest@127.0.0.1:%d/?exchange=no-such", proxy_port(p->link.proxy));
	p->arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(p->arena);
	p->taken.arena = p->arena;
	return p;
}

static void teardown(void *state)
{
	struct place *p = state;

	proxy_stop(p->link.proxy);
	queue_remove(p->admin, p->name);
	queue_disconnect(p->admin);
	outbox_arena_free(p->arena);
	free(p);
}

static const char *text_of(struct place *p, amqp_bytes_t bytes)
{
	return outbox_arena_copy(p->arena, bytes.bytes ? bytes.bytes : "", bytes.len);
}

static void take_all(struct place *p)
{
	amqp_message_t m;

	while (queue_take(p->admin, p->name, &m)) {
		const amqp_table_t *headers = &m.properties.headers;

		assert_int_equal(m.properties.delivery_mode, AMQP_DELIVERY_PERSISTENT);
		arrivals_add(&p->taken, text_of(p, m.properties.message_id), m.body.bytes,
			     m.body.len);
		for (int i = 0; i < headers->num_entries; i++)
			arrivals_header(&p->taken, text_of(p, headers->entries[i].key),
					text_of(p, headers->entries[i].value.value.bytes));
		amqp_destroy_message(&m);
	}
}

static void read_back(void *state, struct arrivals *arrivals)
{
	struct place *p = state;

	take_all(p);
	for (size_t i = 0; i < p->taken.count; i++) {
		const struct arrival *a = &p->taken.items[i];

		arrivals_add(arrivals, a->id, a->body, a->size);
		for (size_t k = 0; k < a->n_headers; k++)
			arrivals_header(arrivals, a->headers[k].name, a->headers[k].value);
	}
}

static const struct bad_url bad_urls[] = {
	{ "amqp:", "host" },
	{ "amqp://127.0.0.1/", "exchange" },
	{ "amqp://127.0.0.1/?exchnage=x", "exchnage" },
	{ "amqp://127.0.0.1:0/?exchange=x", "port" },
	{ "amqp://mq.example/?exchange=x", "user" },
	{ "amqp://relay@mq.example/?exchange=x", "password" },
	{ "amqp://127.0.0.1/?exchange={tipe}", "{tipe}" },
	{ "amqp://127.0.0.1/?exchange=x&routing_key={", "routing_key" },
	{ "amqp://127.0.0.1/?exchange=x&mandatory=perhaps", "perhaps" },
	{ "amqp://127.0.0.1/?exchange=x&heartbeat=-1", "heartbeat" },
	{ "amqp://127.0.0.1/?exchange=x&declare=round", "round" },
	{ "amqp://127.0.0.1/?exchange={type}&declare=topic", "declare" },
	{ "amqp://127.0.0.1/?routing_key=q&declare=topic", "declare" },
	{ "amqp://127.0.0.1/?exchange=x&queue_type=quorum", "queue_type" },
	{ "amqp://127.0.0.1/?exchange=x&queue=", "queue" },
	{ "amqp://127.0.0.1/?queue=q&bind=x", "bind" },
	{ "amqp://127.0.0.1/?queue=q&queue_type=mirror", "mirror" },
	{ "amqp://127.0.0.1/?queue={type}", "queue" },
	{ "amqp://127.0.0.1/?exchange=x&ca=/etc/hostname", "ca" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_rabbitmq",
	.ops = &rabbitmq_transport_ops,
	.unavailable = unavailable,
	.setup = setup,
	.teardown = teardown,
	PROXIED_OPS,
	.bad_urls = bad_urls,
	.missing_status = OUTBOX_ECONFIG,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
