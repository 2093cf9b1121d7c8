/* SPDX-License-Identifier: Apache-2.0 */
#include "../series.h"
#include "plain.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdlib.h>
#include <string.h>

struct rabbit {
	amqp_connection_state_t connection;
	uint64_t sent, confirmed;
};

static void check(amqp_rpc_reply_t reply, const char *what)
{
	if (reply.reply_type != AMQP_RESPONSE_NORMAL)
		die(what, amqp_error_string2(reply.library_error));
}

static void make(void *broker)
{
	amqp_connection_state_t c = ((struct rabbit *)broker)->connection;
	amqp_table_entry_t quorum = { .key = amqp_cstring_bytes("x-queue-type"),
				      .value = { .kind = AMQP_FIELD_KIND_UTF8,
						 .value.bytes = amqp_cstring_bytes("quorum") } };
	amqp_table_t arguments = { .num_entries = 1, .entries = &quorum };

	amqp_queue_declare(c, 1, amqp_cstring_bytes("bench"), 0, 1, 0, 0, arguments);
	check(amqp_get_rpc_reply(c), "queue");
	amqp_queue_purge(c, 1, amqp_cstring_bytes("bench"));
	check(amqp_get_rpc_reply(c), "purge");
}

static long count(void *broker)
{
	amqp_connection_state_t c = ((struct rabbit *)broker)->connection;
	amqp_queue_declare_ok_t *ok =
		amqp_queue_declare(c, 1, amqp_cstring_bytes("bench"), 1, 0, 0, 0, amqp_empty_table);

	check(amqp_get_rpc_reply(c), "count");
	return (long)ok->message_count;
}

static void *open_rabbitmq(const char *url)
{
	struct rabbit *r = calloc(1, sizeof(*r));
	char host[256];
	int port;

	plain_address(url, host, &port);
	r->connection = amqp_new_connection();
	if (amqp_socket_open(amqp_tcp_socket_new(r->connection), host, port))
		die("rabbitmq", "no connection");
	check(amqp_login(r->connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
	      "login");
	amqp_channel_open(r->connection, 1);
	check(amqp_get_rpc_reply(r->connection), "channel");
	amqp_confirm_select(r->connection, 1);
	check(amqp_get_rpc_reply(r->connection), "confirms");
	return r;
}

static amqp_table_entry_t header(const char *name, const char *value)
{
	return (amqp_table_entry_t){ .key = amqp_cstring_bytes(name),
				     .value = { .kind = AMQP_FIELD_KIND_UTF8,
						.value.bytes = amqp_cstring_bytes(value) } };
}

static void publish_one(struct rabbit *r, const struct plain_message *m)
{
	amqp_table_entry_t headers[] = { header("cloudEvents:specversion", "1.0"),
					 header("cloudEvents:id", m->id),
					 header("cloudEvents:source", PLAIN_SOURCE),
					 header("cloudEvents:type", m->type),
					 header("cloudEvents:time", m->time),
					 header("cloudEvents:partitionkey", m->key) };
	amqp_basic_properties_t properties = {
		._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
			  AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG,
		.content_type = amqp_cstring_bytes(PLAIN_CONTENT_TYPE),
		.delivery_mode = 2,
		.message_id = amqp_cstring_bytes(m->id),
		.headers = { .num_entries = 6, .entries = headers },
	};

	if (amqp_basic_publish(r->connection, 1, amqp_empty_bytes, amqp_cstring_bytes("bench"), 1, 0,
			       &properties, (amqp_bytes_t){ m->size, (void *)(uintptr_t)m->body }))
		die("rabbitmq", "publish");
	r->sent++;
}

/* Confirms of one node come in order: the highest tells how far it is; each one counts once. */
static void read_confirm(struct rabbit *r)
{
	amqp_frame_t frame;

	if (amqp_simple_wait_frame(r->connection, &frame) != AMQP_STATUS_OK)
		die("rabbitmq", "the connection broke");
	if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
		die("rabbitmq", "not an ack");
	if (((amqp_basic_ack_t *)frame.payload.method.decoded)->multiple)
		r->confirmed = ((amqp_basic_ack_t *)frame.payload.method.decoded)->delivery_tag;
	else
		r->confirmed++;
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct rabbit *r = broker;

	for (size_t i = 0; i < n; i++)
		publish_one(r, &messages[i]);
	while (r->confirmed < r->sent)
		read_confirm(r);
	amqp_maybe_release_buffers(r->connection);
}

static void close_rabbitmq(void *broker)
{
	struct rabbit *r = broker;

	amqp_connection_close(r->connection, AMQP_REPLY_SUCCESS);
	amqp_destroy_connection(r->connection);
	free(r);
}

const struct plain_ops plain_rabbitmq = { .name = "rabbitmq",
					  .env = "OUTBOX_TEST_RABBITMQ",
					  .options = "?routing_key=bench",
					  .open = open_rabbitmq,
					  .make = make,
					  .count = count,
					  .publish = publish,
					  .close = close_rabbitmq };
